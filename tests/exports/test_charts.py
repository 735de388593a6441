"""Which charts a report has."""

from __future__ import annotations

import re
from pathlib import Path

from batches import Training

from monitor.exports.charts import charts
from monitor.exports.choice import Choice
from monitor.store import Store

WHOLE = Choice()


def titles(store: Store, choice: Choice = WHOLE) -> list[str]:
    return [title for text in charts(store, choice) for title in re.findall("<figcaption>([^<]+)", text)]


def test_what_was_measured_is_shown_and_nothing_else(store: Store):
    """A run without a GPU has no GPU chart; several ranks are compared."""
    found = titles(store)
    assert {"Step time (ms)", "Loss", "Step time by rank (ms)", "Resident memory (MB)"} <= set(found)
    assert not [title for title in found if "GPU" in title]


def test_ranks_come_in_their_order_and_six_at_most(tmp_path: Path):
    """rank/2 before rank/10."""
    training = Training(ranks=12)
    with Store(tmp_path / "store.sqlite", create=True) as store:
        store.append(training.start())
        store.append(training.batch(10))
        [found] = [text for text in charts(store, Choice()) if "by rank" in text]
    assert re.findall(r"> (rank/\d+)</span>", found) == [f"rank/{i}" for i in range(6)]


def test_numbers_of_the_users_own_have_their_charts(tmp_path: Path):
    """Under the names that they were given, escaped."""
    training = Training()
    with Store(tmp_path / "store.sqlite", create=True) as store:
        store.append(training.start())
        store.append(training.sample("user/0", **{"accuracy": 0.9, "<b>": 1.0}))
        assert set(titles(store)) == {"accuracy", "&lt;b&gt;"}


def test_a_range_narrows_them(store: Store):
    """Nothing lies in an empty one."""
    assert titles(store, Choice(None, 1e9)) == []
