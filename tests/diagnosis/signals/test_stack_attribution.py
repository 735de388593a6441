"""Sampled lines are told apart by what they do: hand numbers on, read values, or neither."""

from __future__ import annotations

from typing import Any

import pytest
from windows import event, rank, window

from monitor.diagnosis.signals.stack_attribution import kind_of, lost, worst

SITE = "/venv/lib/python3.11/site-packages/"
MINE = "/home/me/train.py"


def line(source: str, func: str = "main", leaf: str | None = None, leaf_file: str = MINE) -> dict[str, Any]:
    own = {"file": MINE, "line": 7, "func": func, "source": source}
    return {**own, "leaf_func": leaf or func, "leaf_file": leaf_file, "count": 10}


@pytest.mark.parametrize(
    "frame",
    [
        line("tracker.log(step=i, loss=loss.item())"),
        line("time.sleep(0.040)", func="log", leaf="log"),
        line("wandb.log({'loss': loss})", leaf="_publish", leaf_file=SITE + "wandb/sdk/interface.py"),
        line(
            "writer.add_scalar('loss', loss, i)",
            leaf="write",
            leaf_file=SITE + "torch/utils/tensorboard/writer.py",
        ),
        line("print(f'step {i} loss {loss.item():.4f}', flush=True)"),
        line(
            "r = s.getresponse()",
            func="push_metrics",
            leaf="recv_into",
            leaf_file="/usr/lib/python3.11/socket.py",
        ),
        line("requests.post(url, json=metrics)", leaf="send", leaf_file=SITE + "requests/adapters.py"),
        line("fig.savefig('loss.png')", leaf="draw", leaf_file=SITE + "matplotlib/figure.py"),
        line("f.write(json.dumps(row) + '\\n')"),
        line("os.fsync(f.fileno())", func="write_row"),
        line("report_metrics(i, loss)", leaf="sleep"),
    ],
)
def test_logging_is_recognised(frame: dict[str, Any]):
    """By the name called, by the function the time is spent in, or by the library."""
    assert kind_of(frame) == "logging"


@pytest.mark.parametrize(
    "frame",
    [
        line(
            "scalars[k] = [t.norm().item(), t.mean().item()]",
            leaf="norm",
            leaf_file=SITE + "torch/_tensor.py",
        ),
        line("total += float(p.grad.norm())", leaf="norm", leaf_file=SITE + "torch/_tensor.py"),
        line("values = {n: p.abs().max().cpu() for n, p in model.named_parameters()}", func="<dictcomp>"),
        line("hist = torch.log(p).tolist()"),
        line("norms.append(p.norm().item())", leaf="norm", leaf_file=SITE + "torch/functional.py"),
        line("text = str(weights.cpu())", leaf="_str", leaf_file=SITE + "torch/_tensor_str.py"),
        line("assert torch.isfinite(p).all(), name"),
        line("total_norm += p.grad.norm().item() ** 2"),
        line("running += loss.item() * x.size(0)"),
        line("for key, value in [(k, v.item()) for k, v in values.items()]:"),
    ],
)
def test_reading_values_is_recognised(frame: dict[str, Any]):
    """Tensors turned into Python numbers, also where a logarithm stands on the line."""
    assert kind_of(frame) == "sync"


@pytest.mark.parametrize(
    "frame",
    [
        line("loss = loss_fn(out, y)", leaf="cross_entropy", leaf_file=SITE + "torch/nn/functional.py"),
        line(
            "loss = -F.log_softmax(out, 1).gather(1, y)",
            leaf="log_softmax",
            leaf_file=SITE + "torch/nn/functional.py",
        ),
        line("obs, reward = env.step(action)", func="step"),
        line(
            "action = int(Categorical(logits=policy(state)).sample())",
            leaf="logits_to_probs",
            leaf_file=SITE + "torch/distributions/utils.py",
        ),
        line("opt.zero_grad()", leaf="zero_grad", leaf_file=SITE + "torch/optim/optimizer.py"),
        line("replay.extend({'step': [i]} for k in range(8000))", func="<genexpr>"),
        line("time.sleep(0.01)"),
        line("total += g * min(1.0, 1.0 / (norm.item() + 1e-6))"),
        line("update = lr * g / norms[i].item()"),
        {},
    ],
)
def test_other_work_is_left_alone(frame: dict[str, Any]):
    """Losses, simulators, buffers, a sleep of which nothing is known, and an empty line."""
    assert kind_of(frame) == "unknown"


def test_on_a_gpu_reading_is_what_takes_long():
    """It waits for all that was launched, whatever else stands on the line."""
    frame = line("ema = 0.9 * ema + 0.1 * loss.item()")
    assert (kind_of(frame), kind_of(frame, waits=True)) == ("unknown", "sync")


def test_the_newest_stacks_count():
    """Each event replaces the one before it: counts grow, they do not add up."""
    frame = line("tracker.log(loss)")
    told = [event("other_stack", total=count, frames=[{**frame, "count": count}]) for count in (5, 10)]
    one = rank(other=16.0)
    found = lost(window(one, events=told), one, "logging")
    assert found is not None
    assert (found.samples, round(found.share, 2), found.location) == (10, 0.5, "train.py:7")


@pytest.mark.parametrize(("count", "least"), [(1, None), (2, 1 / 3), (20, 10 / 21)])
def test_few_stacks_prove_less(count: int, least: float | None):
    """One look says nothing; of two that agree, a third might not have."""
    one = rank(other=16.0)
    told = event("other_stack", total=count, frames=[{**line("log(x)"), "count": count}])
    found = lost(window(one, events=[told]), one, "logging")
    assert (found.least if found else None) == (pytest.approx(least, rel=0.01) if least else None)


def test_every_rank_has_its_own_stacks():
    """A rank that loses nothing is not named."""
    slow, fine = rank(number=0, other=16.0), rank(number=1, other=16.0)
    told = [
        event("other_stack", rank=number, total=10, frames=[line(source)])
        for number, source in ((0, "log(x)"), (1, "f(x)"))
    ]
    found = worst(window(slow, fine, events=told), "logging", 0.1)
    assert found is not None
    assert found[1] == (0,)
