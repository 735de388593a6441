"""Names tell what logs, and neither logits nor logarithms do."""

from __future__ import annotations

import pytest

from monitor.diagnosis.signals.logging_names import logging_call, logs


@pytest.mark.parametrize(
    "name",
    [
        "log",
        "log_metrics",
        "pushMetrics",
        "report",
        "write",
        "add_scalar",
        "notify_slack",
        "print_row",
        "fsync",
    ],
)
def test_names_that_log(name: str):
    """A word of the name, or the whole of it, says so."""
    assert logs(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "logits",
        "compute_logits",
        "catalog",
        "dialogue",
        "push",
        "compute_metrics",
        "step",
        "login",
        "<genexpr>",
    ],
)
def test_names_that_do_not_log(name: str):
    """Words that only contain one, buffers, and what computes a metric."""
    assert not logs(name)


@pytest.mark.parametrize(
    "source",
    [
        "tracker.log(step=i, loss=loss.item())", "self.logger.info('step %d', i)", "log(x)", "f.flush()",
        "run.log({'loss': loss})", "print(loss)", "fig.savefig(path)", "writer.add_scalars('a', d, i)",
    ],
)  # fmt: skip
def test_calls_that_log(source: str):
    """The function's name or its owner's says so."""
    assert logging_call(source)


@pytest.mark.parametrize(
    "source",
    [
        "x = torch.log(p)", "x = p.log()", "math.log(n)", "F.log_softmax(x, 1).sum()", "np.log(a)",
        "torch.logsumexp(x, 0)",
        "stats.append(loss.item())", "replay.push(obs)", "env.step(action)", "x = 1", "",
    ],
)  # fmt: skip
def test_calls_that_do_not_log(source: str):
    """Logarithms, buffers and simulators."""
    assert not logging_call(source)
