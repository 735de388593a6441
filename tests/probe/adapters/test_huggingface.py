"""Hugging Face Trainer: its optimizer steps, its micro-batches, its evaluation, its checkpoints."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from training import digits, network, watching, weights

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")


class Classifier(nn.Module):
    """A digits classifier in the form that the Trainer wants."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network()

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.net(input_ids)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def rows(count: int) -> list[dict[str, torch.Tensor]]:
    return [{"input_ids": x, "labels": y} for x, y in digits(count)]


def trainer(folder: Path, count: int = 96, model: nn.Module | None = None, **options: Any) -> Any:
    torch.manual_seed(1)
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"),
        **{
            "per_device_train_batch_size": 8,
            "num_train_epochs": 2,
            "report_to": [],
            "save_strategy": "no",
            "logging_steps": 3,
            "use_cpu": True,
            "disable_tqdm": True,
            "dataloader_pin_memory": False,
            **options,
        },
    )
    model = model or Classifier()
    return transformers.Trainer(model, arguments, train_dataset=rows(count), eval_dataset=rows(40))


def losses(target: Any) -> list[Any]:
    return [
        {k: v for k, v in entry.items() if "runtime" not in k and "second" not in k}
        for entry in target.state.log_history
    ]


@pytest.mark.parametrize("options", [{}, {"gradient_accumulation_steps": 3}, {"eval_strategy": "epoch"}])
def test_losses_and_weights_are_the_same(tmp_path: Path, options: dict[str, Any]) -> None:
    """To the last bit, with and without us, whatever the trainer does."""
    bare = trainer(tmp_path / "a", **options)
    bare.train()
    ours = trainer(tmp_path / "b", **options)
    with watching(tmp_path / "tape", ours):
        ours.train()
    assert losses(ours) == losses(bare)
    assert weights(ours.model) == weights(bare.model)


@pytest.mark.parametrize(("accumulate", "count"), [(1, 96), (3, 96), (4, 88), (2, 90)])
def test_a_step_is_an_optimizer_step(tmp_path: Path, accumulate: int, count: int) -> None:
    """As many as `global_step` says, with all samples of its micro-batches, also in an uneven last one."""
    target = trainer(tmp_path, count, gradient_accumulation_steps=accumulate)
    with watching(tmp_path / "tape", target) as seen:
        target.train()
    batches = -(-count // 8)
    assert seen.steps == target.state.global_step
    assert seen.sum("samples") == 2 * count
    assert seen.sum("backward_calls") == 2 * batches
    assert np.all(seen.columns["optimizer_steps"] == 1)
    assert seen.columns["samples"][0] == min(8 * accumulate, count)
    assert sorted(set(seen.columns["epoch"])) == [1, 2]


def test_the_loss_is_that_of_the_whole_step(tmp_path: Path) -> None:
    """The mean over micro-batches, as the trainer logs it."""
    target = trainer(tmp_path, gradient_accumulation_steps=2, logging_steps=1)
    with watching(tmp_path / "tape", target) as seen:
        target.train()
    logged = [entry["loss"] for entry in target.state.log_history if "loss" in entry]
    assert seen.columns["loss"] == pytest.approx(logged, abs=1e-3)


def test_tokens_are_counted(tmp_path: Path) -> None:
    """`input_ids` are tokens, as the trainer itself counts them."""
    target = trainer(tmp_path, include_num_input_tokens_seen="all")
    with watching(tmp_path / "tape", target) as seen:
        target.train()
    assert seen.sum("tokens") == target.state.num_input_tokens_seen


class Slow(Classifier):
    """30 ms a forward pass."""

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        time.sleep(0.03)
        return super().forward(input_ids, labels)


def test_evaluation_and_saving_are_phases_of_their_own(tmp_path: Path) -> None:
    """Evaluation is no forward time and its batches no samples; saving is one event, whatever it writes."""
    target = trainer(
        tmp_path, 32, Slow(), eval_strategy="steps", eval_steps=2, save_strategy="steps", save_steps=4
    )
    with watching(tmp_path / "tape", target) as seen:
        target.train()
    assert seen.steps == target.state.global_step == 8
    assert seen.sum("samples") == 64
    assert seen.sum("forward_ms") >= 8 * 30
    assert np.median(seen.columns["forward_ms"][[2, 4, 6]]) < 5 * 30
    after = seen.columns["eval_ms"][[2, 4, 6]]
    assert np.all(after >= 5 * 30)
    assert np.delete(seen.columns["eval_ms"], [2, 4, 6]).max() == 0
    assert len(seen.of("save")) == 2
    assert seen.columns["checkpoint_ms"][4] >= seen.of("save")[0]["ms"] - 1
    assert np.delete(seen.columns["checkpoint_ms"], 4).max() == 0


@pytest.mark.skipif(
    torch.__version__ < "2.6" and hasattr(transformers.utils.import_utils, "check_torch_load_is_safe"),
    reason="transformers loads no optimizer's state with a torch before 2.6 (CVE-2025-32434)",
)
def test_resumed_from_a_checkpoint(tmp_path: Path) -> None:
    """Only the steps that are taken are counted, in the epoch in which they are taken."""
    first = trainer(tmp_path, save_strategy="steps", save_steps=9, max_steps=9)
    first.train()
    target = trainer(tmp_path, max_steps=16)
    with watching(tmp_path / "tape", target) as seen:
        target.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-9"))
    assert target.state.global_step == 16
    assert seen.steps == 7
    assert list(seen.columns["epoch"]) == [1, 1, 1, 2, 2, 2, 2]
    assert seen.sum("samples") == 7 * 8


def test_a_trainer_that_descends_from_it(tmp_path: Path) -> None:
    """TRL's: its steps, its tokens, its evaluation, as it counts them itself."""
    trl = pytest.importorskip("trl", reason="trl is not installed")
    datasets, tokenizers = pytest.importorskip("datasets"), pytest.importorskip("tokenizers")
    words = ["<pad>", "<eos>", *map(str, range(10))]
    model = tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<pad>")
    inner = tokenizers.Tokenizer(model)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<pad>"
    )
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=len(words), **shape))
    texts = datasets.Dataset.from_list([{"text": " ".join("0123456789"[: 3 + i % 7])} for i in range(24)])
    arguments = trl.SFTConfig(
        str(tmp_path / "out"), per_device_train_batch_size=4, gradient_accumulation_steps=2, report_to=[],
        num_train_epochs=2, logging_steps=1, eval_strategy="epoch", save_strategy="no", use_cpu=True,
        bf16=False, max_length=32, disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    target = trl.SFTTrainer(
        llama, arguments, train_dataset=texts, eval_dataset=texts, processing_class=tokenizer
    )
    with watching(tmp_path / "tape", target) as seen:
        target.train()
    logged = [entry for entry in target.state.log_history if "num_tokens" in entry and "loss" in entry]
    assert seen.steps == target.state.global_step == 6
    assert seen.sum("samples") == 48
    assert seen.sum("tokens") >= logged[-1]["num_tokens"] > 0
    assert seen.columns["loss"] == pytest.approx([entry["loss"] for entry in logged], abs=2e-2)
    assert list(np.flatnonzero(seen.columns["eval_ms"])) == [3]


def test_numbers_that_the_trainer_logs_are_ours_too(tmp_path: Path) -> None:
    """Learning rate and the like become numbers of the run."""
    target = trainer(tmp_path)
    with watching(tmp_path / "tape", target) as seen:
        target.train()
    assert {"learning_rate", "grad_norm"} <= set().union(*(event["values"] for event in seen.of("log")))


def test_detach_takes_the_callback_back(tmp_path: Path) -> None:
    """After it the trainer is as it was, and goes on."""
    target, train = trainer(tmp_path, 16), transformers.Trainer.train
    before = [type(callback) for callback in target.callback_handler.callbacks]
    with watching(tmp_path / "tape", target):
        pass
    assert [type(callback) for callback in target.callback_handler.callbacks] == before
    assert transformers.Trainer.train is train
    target.train()
    assert target.state.global_step == 4


def test_an_exception_in_training_leaves_the_plain_rules(tmp_path: Path) -> None:
    """It reaches the user as it is, and a loop by hand is recorded afterwards."""

    class Broken(Classifier):
        def forward(self, input_ids: Any, labels: Any) -> Any:
            raise ZeroDivisionError

    target = trainer(tmp_path, 16, Broken())
    model, data = network(), digits(32)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(tmp_path / "tape", target) as seen:
        with pytest.raises(ZeroDivisionError):
            target.train()
        for x, y in torch.utils.data.DataLoader(data, 8):
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert seen.steps == 4


@pytest.mark.parametrize(
    ("options", "steps"), [({}, 24), ({"gradient_accumulation_steps": 3}, 8), ({"max_steps": 5}, 5)]
)
def test_the_number_of_steps_is_known(tmp_path: Path, options: dict[str, Any], steps: int) -> None:
    """What the trainer means to do is told as a fact, so that a page knows what is left."""
    ours = trainer(tmp_path, **options)
    with watching(tmp_path / "tape", ours) as seen:
        ours.train()
    plans = [event["value"] for event in seen.of("fact") if event["name"] == "plan"]
    assert plans == [{"steps": steps}]
    assert seen.steps == steps
