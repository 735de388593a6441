"""What was changed, told as few things as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from finished_runs import FACTS, LOADER, changed, keep

from monitor.compare import read
from monitor.compare.difference import differences, label


def told(tmp_path: Path, *sides: dict[str, Any]) -> list[dict[str, Any]]:
    """Differences of two runs, each given by `facts` and `meta`."""
    first, second = (read(keep(tmp_path, f"run-{i}", **side)) for i, side in enumerate(sides))
    return differences(first, second)


def names(changes: list[dict[str, Any]]) -> list[str]:
    return [change["name"] for change in changes]


def test_a_run_against_itself(tmp_path: Path) -> None:
    """Process ids, places in the code, counts and folders of output are no differences."""
    noise = {
        **changed("env", launcher_pid=99, restarts=1),
        "precision": {**FACTS["precision"], "backward_calls": 64},
    }
    noise["loader/1"] = {**LOADER, "location": "train.py:32", "workers_started_ms": 81.0}
    argv = ["/home/me/train.py", "--output-dir", "/tmp/b", "--run-name=b", "--port", "7008"]
    first = {"meta": {"argv": ["train.py", "--output-dir", "/tmp/a", "--run-name=a"]}}
    assert told(tmp_path, first, {"facts": noise, "meta": {"argv": argv}}) == []


def test_exactly_one_thing(tmp_path: Path) -> None:
    """More workers are one thing: what belongs to workers comes with them."""
    after = changed("loader/1", num_workers=4, prefetch_factor=2, persistent_workers=True)
    (change,) = told(tmp_path, {}, {"facts": after})
    assert (change["label"], change["before"], change["after"]) == ("num_workers", 0, 4)
    assert sorted(follower["label"] for follower in change["with"]) == [
        "persistent_workers",
        "prefetch_factor",
    ]
    assert change["kind"] == "setting"


def test_between_workers_their_settings_are_choices(tmp_path: Path) -> None:
    """From two workers to four, `persistent_workers` is a change of its own."""
    before = changed("loader/1", num_workers=2, prefetch_factor=2)
    after = changed("loader/1", num_workers=4, prefetch_factor=2, persistent_workers=True)
    found = told(tmp_path, {"facts": before}, {"facts": after})
    assert names(found) == ["loader/1.num_workers", "loader/1.persistent_workers"]


def test_an_option_and_what_it_sets_are_one(tmp_path: Path) -> None:
    """`--workers 4` is told with the loader's `num_workers`, not beside it."""
    after = changed("loader/1", num_workers=4, prefetch_factor=2)
    (change,) = told(
        tmp_path,
        {"meta": {"argv": ["train.py", "--workers", "0"]}},
        {"facts": after, "meta": {"argv": ["train.py", "--workers=4"]}},
    )
    assert (change["name"], change["via"]) == ("loader/1.num_workers", "--workers")


def test_a_configuration_value_and_what_it_sets_are_one(tmp_path: Path) -> None:
    """The same of `attach(config=…)`, however the number is spelt."""
    (change,) = told(
        tmp_path,
        {"meta": {"config": {"optim": {"lr": "0.1"}}}},
        {"facts": changed("optimizer/1", lr=0.2), "meta": {"config": {"optim": {"lr": "0.2"}}}},
    )
    assert (change["name"], change["via"]) == ("optimizer/1.lr", "optim.lr")


def test_one_option_explains_all_when_the_script_is_the_same(tmp_path: Path) -> None:
    """The same code and one flag more: whatever else differs follows from the flag."""
    after = {**changed("loader/1", num_workers=4), "model/1": {**FACTS["model/1"], "compiled": True}}
    (change,) = told(tmp_path, {}, {"facts": after, "meta": {"argv": ["train.py", "--fast"]}})
    assert (change["label"], change["before"], change["after"]) == ("--fast", None, True)
    assert {f["label"] for f in change["with"]} == {"num_workers", "model compiled"}


def test_not_when_the_script_was_edited(tmp_path: Path) -> None:
    """Then a flag proves nothing, and several things are several."""
    after = {**changed("loader/1", num_workers=4), "script": {"name": "train.py", "digest": "bbbb"}}
    after["optimizer/1"] = {**FACTS["optimizer/1"], "lr": 0.3}
    found = told(tmp_path, {}, {"facts": after, "meta": {"argv": ["train.py", "--fast"]}})
    assert names(found) == ["loader/1.num_workers", "optimizer/1.lr", "option.fast"]


def test_more_than_one_thing_is_said(tmp_path: Path) -> None:
    """Two settings that do not follow from one another are two, the environment after them."""
    after = {
        **changed("env", torch="2.14.0", cuda="13.0"),
        "optimizer/1": {**FACTS["optimizer/1"], "lr": 0.3},
    }
    after["loader/1"] = {**LOADER, "pin_memory": True}
    found = told(tmp_path, {}, {"facts": after})
    assert names(found) == ["loader/1.pin_memory", "optimizer/1.lr", "env.torch"]
    assert [change["kind"] for change in found] == ["setting", "setting", "environment"]
    assert [f["name"] for f in found[2]["with"]] == ["env.cuda"]


def test_another_machine_is_one_thing(tmp_path: Path) -> None:
    """CPUs, their kind and the threads torch chose for them come with the host."""
    after = {
        **changed("env", usable_cpus=16, threads=16, cpu_capability="AVX2"),
        "threads": {"threads": 16, "usable_cpus": 16},
    }
    (change,) = told(tmp_path, {}, {"facts": after, "meta": {"hosts": ["other"], "host": "other"}})
    assert (change["name"], change["kind"]) == ("host", "environment")


def test_a_variable_and_the_threads_that_it_sets(tmp_path: Path) -> None:
    """OMP_NUM_THREADS with what torch made of it is one thing; a run that told of no variables had none."""
    after = {**changed("env", threads=4, omp_num_threads="4"), "threads": {"threads": 4, "usable_cpus": 2}}
    after["variables"] = {"OMP_NUM_THREADS": "4"}
    (change,) = told(tmp_path, {"facts": {**FACTS, "variables": {}}}, {"facts": after})
    assert (change["label"], change["before"], change["after"]) == ("OMP_NUM_THREADS", None, "4")
    assert change["kind"] == "environment"


def test_another_model_is_one_thing(tmp_path: Path) -> None:
    """Its size and types follow from its class, and the optimizer's parameters from its size."""
    model = {**FACTS["model/1"], "class": "Big", "parameters": 5000, "trainable": 5000}
    optimizer = {**FACTS["optimizer/1"], "parameters": 5000, "param_dtypes": {"float32": 5000}}
    before = {**FACTS, "optimizer/1": {**FACTS["optimizer/1"], "param_dtypes": {"float32": 1000}}}
    after = {**FACTS, "model/1": model, "optimizer/1": optimizer}
    (change,) = told(tmp_path, {"facts": before}, {"facts": after})
    assert change["name"] == "model/1.class"


def test_mixed_precision_is_one_thing(tmp_path: Path) -> None:
    """Autocast with its type and its scaler."""
    before = changed("precision", autocast_dtype=None, scale_init=None)
    after = changed("precision", autocast=True, autocast_dtype="float16", scaler=True, scale_init=65536.0)
    (change,) = told(tmp_path, {"facts": before}, {"facts": after})
    assert change["name"] == "precision.autocast"
    assert len(change["with"]) == 3


def test_clipping_counts_as_on_or_off(tmp_path: Path) -> None:
    """How often gradients were clipped is no setting; that they were is one."""
    counts = {"facts": changed("precision", clips=10)}, {"facts": changed("precision", clips=99)}
    assert told(tmp_path, *counts) == []
    (change,) = told(tmp_path / "b", {}, counts[1])
    assert (change["name"], change["before"], change["after"]) == ("precision.clips", False, True)


def test_a_second_loader(tmp_path: Path) -> None:
    """A fact that only one run has is one difference, and what is told late is none."""
    extra = {**FACTS, "loader/2": LOADER, "compile": {"called": True}, "ddp": {"backend": "gloo"}}
    (change,) = told(tmp_path, {}, {"facts": extra})
    assert (change["name"], change["before"], change["after"]) == ("loader/2", "not there", "there")


def test_two_ranks_instead_of_one(tmp_path: Path) -> None:
    """What a second rank brings with it is one thing."""
    model = {**FACTS["model/1"], "class": "DistributedDataParallel", "distributed_data_parallel": True}
    after = {**FACTS, "model/1": model, "loader/1": {**LOADER, "sampler": "DistributedSampler", "length": 50}}
    after["model/1"]["class"] = "DistributedDataParallel"
    base = {**FACTS, "model/1": {**FACTS["model/1"], "distributed_data_parallel": False}}
    (change,) = told(tmp_path, {"facts": base}, {"facts": after, "meta": {"world_size": 2}})
    assert change["name"] == "world_size"


@pytest.mark.parametrize(
    "facts", [{}, {"env": {}}, {"odd": [1, 2]}, {"loader/1": None}, {"x": {"a": {"b": float("nan")}}}]
)
def test_odd_facts(tmp_path: Path, facts: dict[str, Any]) -> None:
    """Runs that told little, or what nobody knows yet, are compared all the same."""
    assert told(tmp_path, {"facts": facts}, {"facts": facts}) == []
    assert isinstance(told(tmp_path / "b", {}, {"facts": facts}), list)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("loader/1.num_workers", "num_workers"),
        ("loader/2.num_workers", "loader/2 num_workers"),
        ("option.lr", "--lr"),
        ("option.argument 1", "argument 1"),
        ("config.model.depth", "model.depth"),
        ("env.torch", "torch"),
        ("model/1.parameters", "model parameters"),
        ("optimizer/1.class", "optimizer class"),
        ("loader/1.length", "loader length"),
        ("variables.NCCL_ALGO", "NCCL_ALGO"),
        ("host", "host"),
        ("loader/2", "loader/2"),
    ],
)
def test_names_for_people(name: str, shown: str) -> None:
    """As a person would call it."""
    assert label(name) == shown
