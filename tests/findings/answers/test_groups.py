"""What is said of set-backs: an emergency while a group is behind, and past once it has caught up."""

from typing import Any

import pytest

from kforensics.evidence.coordinators.group_log import CommitKey, GroupLogReader
from kforensics.evidence.coordinators.replica_log import list_log
from kforensics.findings.answers.groups import JudgedGroups
from kforensics.findings.rules.coordinators import group_findings
from kforensics.reconcile.coordinator_topics import CoordinatorTopic
from kforensics.reconcile.groups.replay import Change, Position, Replay, Retention, with_return
from kforensics.reconcile.groups.views import GroupPosition, GroupView
from tests.builders.coordinators import NOW, batch, commit, write_log

HOUR_MS = 3_600_000


@pytest.fixture
def setbacks(tmp_path):
    """The set-backs of groups, each with offsets that it committed one after the other in t-0."""

    def of(**committed):
        content = b"".join(
            batch(at, [commit(group, "t", 0, offset, time_ms=NOW + number * HOUR_MS)], time_ms=NOW + number * HOUR_MS)
            for at, (group, number, offset) in enumerate(
                (group, number, offset) for group, offsets in committed.items() for number, offset in enumerate(offsets)
            )
        )
        place = write_log(tmp_path, "__consumer_offsets-0", (0, content))
        retention = Retention(retention_ms=None, removed_topics=lambda _topic, _since, _time: False)
        replay = Replay(place=place, known_from=0, retention=retention)
        found = [one for one in replay.play(GroupLogReader(list_log(place)).events()) if one.set_back]
        return [with_return(one, replay.positions.get(one.key)) for one in found]

    return of


def held(change):
    """The group of a change with its position, at the end of that change."""
    nowhere: Any = None
    position = Position(change.offset, change.time_ms, -1, -1, nowhere, nowhere)
    one = GroupPosition(topic=change.key.topic, partition=change.key.partition, position=position, log_end_offset=100)
    return GroupView(name=change.key.group, state=None, is_known_empty=True, positions=(one,))


def answer(found, groups=(), ahead=()):
    found = sorted(found, key=lambda one: (one.caught_up_ms is not None, -one.set_back))
    return JudgedGroups(
        groups=groups,
        setbacks=found,
        setback_count=len(found),
        ahead=ahead,
        topic=CoordinatorTopic(name="__consumer_offsets", present=frozenset({0}), count=1),
        asked=(),
        unread=0,
        skipped=0,
        why_skipped="",
        complete_since_ms=0,
    ).answer()


@pytest.mark.parametrize("last", [18, 25])
def test_a_set_back_that_was_caught_up_is_past(setbacks, last):
    found = setbacks(billing=(18, 0, 9, last))

    said = answer(found)

    assert said.headline.startswith(
        "billing was set back and has caught up again, so there is nothing to do: t-0 from 18 to 0"
    )
    assert said.now == ()
    assert said.tell == ("The owners of billing: up to 18 records were read twice, before the group had caught up.",)
    assert [one.severity for one in group_findings((), found)] == ["note"]


def test_a_group_that_is_still_behind_is_told_before_one_that_is_not(setbacks):
    found = setbacks(big=(90, 0, 90), small=(12, 5, 8))

    said = answer(found, [held(one) for one in found])

    assert said.headline.startswith("SMALL WAS SET BACK: t-0 from 12 to 5")
    assert said.headline.endswith("1 more, 1 of them caught up again.")
    (step,) = said.now
    assert step.commands == (
        "kafka-consumer-groups.sh --bootstrap-server HOST:PORT --group small --topic t:0 --reset-offsets --to-offset 12 --execute",
    )
    assert answer(found).now == (), "its position has expired since: there is nothing to set"
    assert not any("90" in words for words in said.now)
    assert said.tell[0] == "The owners of small: up to 7 records are read again."


@pytest.mark.parametrize(
    ("confidence", "state", "said"),
    [
        ("proven", "set-forward", "The log began at 20 by then: 15 offsets were deleted before it read them, at noon by retention."),
        ("likely", "set-forward", "The log began at 20 by then: up to 15 offsets were deleted before it read them, at noon by retention."),
        ("possible", "unknown", "Whether billing read offsets 5 to 19 of t-0 before they were deleted: it committed 5, then 24 at "),
    ],
)  # fmt: skip
def test_what_was_deleted_before_a_group_that_went_on_read_it(confidence, state, said):
    key = CommitKey("billing", "t", 0)
    change = Change(key, 24, 5, NOW, "member", confidence, "at noon by retention", (), had_members=True, log_start=20)

    found = answer((), ahead=(change,))

    assert found.state == state
    assert said in (found.unknown[0] if state == "unknown" else found.headline)
    # Where it need not have skipped anything, no position is to be set.
    assert [("--to-offset 20 " in one.commands[0]) for one in found.now] == [True] * (state != "unknown")
