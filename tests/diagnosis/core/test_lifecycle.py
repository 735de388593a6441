"""A finding's life: raised when sure, updated while it lasts, cleared when gone, never flapping."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.core.lifecycle import CONFIRM, ENOUGH_STEPS, FORGET, FindingLifecycle, Record

SLOW = Finding("data_starvation", "warning", "Training waits", "num_workers=0", first_step=5, last_step=30)
DEAD = Finding("process_died", "critical", "Died", "SIGKILL")
HUNG = Finding("stall", "critical", "No progress", "stalled in data (step 7)")


def kinds(course: FindingLifecycle, finding: Finding | None, times: int, start_s: float = 0.0) -> list[str]:
    """Kinds of all changes while one finding is shown `times` times, once a second."""
    shown = [finding] if finding else []
    return [change.kind for at in range(times) for change in course.update(shown, start_s + at)]


@pytest.fixture
def standing() -> FindingLifecycle:
    course = FindingLifecycle()
    kinds(course, SLOW, CONFIRM)
    return course


def test_a_single_sight_raises_nothing():
    """One look fewer than it takes to be sure says nothing."""
    assert kinds(FindingLifecycle(), SLOW, CONFIRM - 1) == []


def test_it_is_raised_when_seen_often_enough():
    """Seen in as many examinations in a row as it takes, it is raised once."""
    assert kinds(FindingLifecycle(), SLOW, CONFIRM + 2) == ["raised"]


def test_a_gap_starts_the_count_anew():
    """Sights that do not follow one another are no confirmation."""
    course = FindingLifecycle()
    shown = [SLOW, None, SLOW, SLOW]
    assert [kind for finding in shown for kind in kinds(course, finding, 1)] == []


def test_what_was_seen_over_many_steps_is_believed_at_once():
    """Enough steps in one look need no second look; one step fewer does."""
    enough = replace(SLOW, first_step=5, last_step=5 + ENOUGH_STEPS)
    assert kinds(FindingLifecycle(), enough, 1) == ["raised"]
    assert kinds(FindingLifecycle(), replace(enough, last_step=4 + ENOUGH_STEPS), 1) == []


def test_an_emergency_waits_for_nothing():
    """Critical findings are raised at the first sight."""
    assert kinds(FindingLifecycle(), DEAD, 1) == ["raised"]


def test_new_numbers_update_it(standing: FindingLifecycle):
    """Other evidence under the same identity is an update, not another finding."""
    newer = replace(SLOW, evidence={"data_share": 0.5}, last_step=60)
    assert kinds(standing, newer, 2) == ["updated"]
    assert [record.finding.evidence for record in standing.records] == [{"data_share": 0.5}]


def test_it_remembers_where_it_began(standing: FindingLifecycle):
    """A window that has moved on does not move the first step."""
    kinds(standing, replace(SLOW, first_step=100, last_step=200), 1)
    assert standing.standing[0].first_step == SLOW.first_step


def test_it_is_cleared_when_it_stays_away(standing: FindingLifecycle):
    """Away for one look fewer than it takes, it stands; then it is cleared, with the time."""
    assert kinds(standing, None, FORGET - 1, start_s=10) == []
    assert kinds(standing, None, 1, start_s=50) == ["cleared"]
    assert (standing.standing, standing.records[0].cleared_at_s) == ([], 50)


def test_it_does_not_flap(standing: FindingLifecycle):
    """A value that swings about its threshold is told once."""
    assert [kind for at in range(12) for kind in kinds(standing, None if at % 3 else SLOW, 1, at)] == []


def test_it_can_come_back(standing: FindingLifecycle):
    """Cleared and seen again, the same record stands again."""
    kinds(standing, None, FORGET)
    assert kinds(standing, SLOW, CONFIRM, start_s=60) == ["raised"]
    assert [(r.raised_at_s, r.cleared_at_s) for r in standing.records] == [(60 + CONFIRM - 1, None)]


def test_what_could_not_be_checked_stands(standing: FindingLifecycle):
    """A check that cannot run any more clears nothing."""
    changes = [standing.update([], at, unchecked={"data_starvation"}) for at in range(2 * FORGET)]
    assert (changes, standing.standing) == ([[]] * 2 * FORGET, [SLOW])


def test_the_end_confirms_what_it_shows():
    """Nothing can be confirmed after the last look, so what it shows is raised."""
    assert [change.kind for change in FindingLifecycle().update([SLOW], 9.0, finished=True)] == ["raised"]


def test_the_end_clears_nothing(standing: FindingLifecycle):
    """What stood when the run ended stays, however often the end is looked at."""
    for at in range(2 * FORGET):
        standing.update([], at, finished=True)
    assert standing.standing == [SLOW]


def test_an_emergency_that_is_over_is_a_warning():
    """A stall that is over stays on record, cleared when its own event says, and critical no more."""
    course = FindingLifecycle()
    assert kinds(course, HUNG, 1) == ["raised"]
    over = replace(HUNG, severity="warning", over_at_s=12.5)
    assert kinds(course, over, 3, start_s=20) == ["cleared"]
    record = course.records[0]
    assert (record.finding.severity, record.cleared_at_s) == ("warning", 12.5)


def test_what_came_and_went_between_two_looks_is_told():
    """A stall that began and ended unseen is raised and cleared in one go."""
    changes = FindingLifecycle().update([replace(HUNG, severity="warning", over_at_s=3.0)], 10)
    assert [(change.kind, change.record.cleared_at_s) for change in changes] == [
        ("raised", None),
        ("cleared", 3.0),
    ]


def test_nothing_ends_before_it_is_raised():
    """Told of late, a stall that is over was raised no later than it ended; one that was seen, no earlier."""
    late = FindingLifecycle()
    late.update([replace(HUNG, severity="warning", over_at_s=3.0)], 10)
    seen = FindingLifecycle()
    seen.update([HUNG], 12.0)
    seen.update([replace(HUNG, severity="warning", over_at_s=11.9)], 13.0)
    times = [(record.raised_at_s, record.cleared_at_s) for c in (late, seen) for record in c.records]
    assert times == [(3.0, 3.0), (12.0, 12.0)]


def test_what_is_over_is_not_told_again_under_another_cause():
    """At a stall's end its detector names another rank's: the one that stood is cleared, none is raised."""
    course = FindingLifecycle()
    course.update([HUNG], 12.0)
    other = replace(HUNG, severity="warning", cause="stalled in other (step 7)", over_at_s=17.9)
    assert [change.kind for change in course.update([other], 18.0)] == ["cleared"]
    assert [change.kind for at in range(5) for change in course.update([other], 19.0 + at)] == []
    assert [(r.finding.cause, r.cleared_at_s) for r in course.records] == [(HUNG.cause, 17.9)]


def test_a_better_cause_says_that_it_is_the_same_thing():
    """Cleared and raised in one go, both marked: nobody need be told of an end and a beginning."""
    course = FindingLifecycle()
    course.update([HUNG], 12.0)
    changes = course.update([replace(HUNG, cause="rank 1 ended")], 13.0)
    assert [(change.kind, change.renamed) for change in changes] == [("cleared", True), ("raised", True)]
    assert not any(change.renamed for change in course.update([DEAD], 14.0))


def test_a_cleared_emergency_loses_its_severity():
    """What is gone alarms nobody any more."""
    course = FindingLifecycle()
    kinds(course, DEAD, 1)
    kinds(course, None, FORGET)
    assert course.records[0].finding.severity == "warning"


def test_another_cause_takes_the_place_of_the_first(standing: FindingLifecycle):
    """A detector that learned better is not heard twice."""
    assert kinds(standing, replace(SLOW, cause="storage"), CONFIRM, start_s=20) == ["cleared", "raised"]
    assert [finding.cause for finding in standing.standing] == ["storage"]


def test_a_restarted_hub_goes_on_where_it_was():
    """Records of an earlier life are neither raised again nor lost."""
    course = FindingLifecycle([Record(SLOW, 4.0)])
    assert kinds(course, SLOW, CONFIRM, start_s=30) == []
    assert [record.raised_at_s for record in course.records] == [4.0]


def test_records_come_in_order_of_time():
    """Oldest first, whatever order they were met in."""
    course = FindingLifecycle([Record(SLOW, 9.0), Record(DEAD, 2.0)])
    assert [record.raised_at_s for record in course.records] == [2.0, 9.0]
