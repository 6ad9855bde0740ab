"""`groups` on recorded brokers: equal to kafka-consumer-groups at the same moments, each act named, and what was not found."""

import datetime as dt
import json
import os
import re
import shutil

import pytest

from kforensics import explain, triage
from kforensics.ask.model import Ask
from kforensics.case.opening import open_case
from kforensics.cli.app import run as run_line
from kforensics.commands.graver import no_calmer_than_order
from kforensics.commands.groups import run
from kforensics.damage import Absent
from kforensics.errors import InputsRefused, UsageError
from kforensics.evidence.coordinators.transaction_log import ShareLog
from kforensics.findings.answers.model import Answer, State
from kforensics.formats.log.batches import Message, encode_message_set
from kforensics.formats.messages.coordinators import GROUP_TABLES, SHARE_TABLES
from kforensics.units import OFFSETS_TOPIC, SHARE_TOPIC
from tests.builders.coordinators import NOW, batch, commit, group_metadata, marker, write_log
from tests.builders.directories import copied
from tests.builders.messages import encode_coordinator_record
from tests.builders.metadata_logs import TOPIC_ID, metadata_batch, metadata_log, metadata_record

RECORDINGS = ("groups-1.1", "groups-2.8", "groups-4.1")


def groups(*paths, **options):
    return run(Ask(paths=paths, jobs=1, **options))


def everything(root):
    """What is now, the broker logs, and all earlier snapshots."""
    *before, final = sorted((root / "snapshots").iterdir())
    return (final, root / "logs"), tuple(before)


def positions(result):
    return {
        (group.name, one.topic, one.partition): one.position.offset
        for group in result.body.groups
        for one in group.positions
    }


def moments(root, *, every):
    """What kafka-consumer-groups printed, as (times in the middle, after and before, positions with their log ends); moments at which it failed are left out."""
    lines = (root / "oracle" / "describe-all-groups.jsonl").read_text().splitlines()
    for line in lines:
        told = json.loads(line)
        is_failed = "Error: Executing" in told["text"] or (told["label"] == "unclean" and not told["text"])
        if is_failed or not (every or told["label"]):
            continue
        rows = [line.split() for line in told["text"].splitlines()]
        has_group = any(row[:1] == ["GROUP"] for row in rows)
        found = {}
        for row in rows:
            group, rest = (row[0], row[1:]) if has_group and row else ("", row)
            if len(rest) > 4 and rest[1].isdigit() and rest[2].isdigit():
                found[group, rest[0], int(rest[1]), int(rest[2])] = int(rest[3])
        start, end = told["from_ms"], told["to_ms"]
        yield ((start + end) // 2, end, start), found, has_group


def _seen(result, *, has_group):
    return {
        (group.name if has_group else "", one.topic, one.partition, one.position.offset): one.log_end_offset
        for group in result.body.groups
        for one in group.positions
    }


def check_moments(root, *, every):
    (final, _), before = everything(root)
    before = [one for one in before if every or "before" in one.name or "old-leader" in one.name]
    count = 0
    for times_ms, told, has_group in moments(root, every=every):
        # While the tool runs an offset may expire.
        assert any(
            told == _seen(groups(final, before=tuple(before), at_ms=at), has_group=has_group) for at in times_ms
        ), times_ms
        count += 1
    return count


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some("groups-2.8")
def test_positions_and_log_ends_are_those_of_kafka_at_each_moment(coordinators, name):
    assert check_moments(coordinators(name), every=False) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDINGS)
def test_they_are_at_every_moment_that_was_recorded(coordinators, name):
    assert check_moments(coordinators(name), every=True) >= 50


def acts(result):
    return [
        (one.key.group, f"{one.key.topic}-{one.key.partition}", one.previous, one.offset, one.by)
        for one in result.body.changes()
    ]


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some(2)
def test_each_act_is_named_and_none_is_invented(coordinators, name):
    paths, before = everything(coordinators(name))

    result = groups(*paths, before=before, history=True)

    found = acts(result)
    by_administrator = [one[:4] for one in found if one[4] == "administrator"]
    assert sorted(by_administrator, key=str) == sorted(
        [
            ("by-hand", "payments-0", None, 77),
            ("by-hand", "orders-1", None, 10),
            ("by-hand", "payments-0", 77, 80),
            ("billing", "orders-0", 91, 0),
            ("by-hand", "payments-0", 80, 50),
            ("billing", "orders-1", 60, 25),
            ("billing", "orders-1", 25, 100),
        ],
        key=str,
    )
    deleted = {one[:3] for one in found if one[4] == "deletion"}
    wanted = {("old", "payments-0", 12), ("audit", "short-lived-0", 70)}
    # Offsets alone are deleted since 2.4.
    assert deleted == (wanted if name == "groups-1.1" else {*wanted, ("by-hand", "orders-1", 10)})
    expired = {one[0] for one in found if one[4] == "expiry"}
    assert expired == ({"by-hand", "billing", "copy"} if name != "groups-1.1" else expired)
    assert {one[4] for one in found} <= {"administrator", "member", "deletion", "expiry", "truncation"}
    assert ("copy", "orders-0", None, 55, "member") in found
    assert 99 not in {one[3] for one in found if one[0] == "copy"}  # its transaction was aborted


def test_the_first_line_says_the_finding(coordinators):
    paths, before = everything(coordinators("groups-4.1"))

    result = groups(*paths, before=before)

    assert result.answer.headline == (
        "BILLING WAS SET BACK: orders-0 from 91 to 0 at 2026-11-22 11:01:40 UTC, while the group was empty: a reset, not a member. 3 more."
        " The position of billing in orders-1, 100, is gone since 2026-11-22 11:02:46 UTC: it had expired. So are 2 more."
    )
    assert (result.answer.state, result.exit_code) == ("set-back", 1)
    assert result.answer.unknown == ()


def test_what_a_truncation_took_is_in_the_history(coordinators):
    (final, _), before = everything(coordinators("groups-4.1"))

    with_snapshots = acts(groups(final, before=before, groups=frozenset({"watch"}), history=True))
    alone = acts(groups(final, groups=frozenset({"watch"}), history=True))

    where = ("watch", "payments-0")
    assert with_snapshots[-4:] == [
        (*where, 92, 95, "member"),
        (*where, 95, 98, "member"),
        (*where, 98, 95, "truncation"),
        (*where, 95, 97, "member"),
    ]
    assert alone[-2:] == [(*where, 92, 95, "member"), (*where, 95, 97, "member")]


@pytest.mark.slow
def test_a_position_is_the_truncated_one_until_the_truncation(coordinators):
    (final, _), before = everything(coordinators("groups-4.1"))
    played = groups(final, before=before, groups=frozenset({"watch"}), history=True)
    (taken,) = (one for one in played.body.changes() if one.by == "truncation")

    at = [
        positions(groups(final, before=before, at_ms=taken.time_ms + late))["watch", "payments", 0] for late in (-1, 0)
    ]

    assert at == [98, 95]


def test_expiry_without_any_configuration_is_possible_at_most(coordinators):
    (final, logs), _ = everything(coordinators("groups-4.1"))

    known = list(groups(final, logs, expired=True).body.changes())
    inferred = list(groups(final, expired=True).body.changes())

    assert {one.confidence for one in known} == {"likely"}
    assert {one.confidence for one in inferred} == {"possible"}
    assert {one.key for one in known} == {one.key for one in inferred}
    assert {one.by for one in inferred} == {"expiry"}


def test_types_states_and_members_are_those_of_the_records(coordinators):
    snapshots = coordinators("groups-4.1") / "snapshots"

    result = groups(snapshots / "01-before-live")

    found = {
        group.name: (group.state.type.value, group.state.name, group.state.member_count, group.state.generation)
        for group in result.body.groups
        if group.state is not None
    }
    assert found == {
        "audit": ("consumer", "Stable", 1, 1),
        "billing": ("classic", "Empty", 0, 2),
        "old": ("classic", "Empty", 0, 2),
        "watch": ("classic", "Stable", 1, 1),
    }
    assert {group.name for group in result.body.groups if group.state is None} == {"by-hand", "copy"}
    assert (result.answer.state, result.exit_code) == ("no-setback", 0)


def test_positions_past_the_end_are_the_headline(incident):
    snapshots = incident("consumer-ahead-4.x") / "snapshots"

    result = groups(snapshots / "99-final")

    past = {
        (group.name, one.topic, one.partition, one.position.offset, one.log_end_offset)
        for group in result.body.groups
        for one in group.positions
        if one.is_past_the_end
    }
    assert past == {
        (name, "billing", partition, offset, end)
        for name in ("billing-etl", "billing-audit")
        for partition, offset, end in ((0, 120, 90), (2, 105, 80))
    }
    assert result.answer.state == "past-the-end"
    assert "IS PAST THE END of billing-0: it committed 120, and the log ends at 90" in result.answer.headline
    (step,) = (one for one in result.answer.now if "auto.offset.reset" in one)
    assert step.commands[0].endswith(" --topic billing:0 --reset-offsets --to-offset OFFSET --execute")
    assert result.body.setbacks == ()
    assert groups(snapshots / "01-before-live").answer.state == "no-setback"


def test_a_dead_leader_promises_nothing_of_the_log_after_an_unclean_election(incident):
    root = incident("consumer-ahead-4.x")
    down = groups(root / "snapshots" / "03-old-leader-down-live", root / "logs")

    past = {
        (group.name, one.partition, one.log_end_offset)
        for group in down.body.groups
        for one in group.positions
        if one.is_past_the_end is True
    }
    assert past == {(name, *one) for name in ("billing-etl", "billing-audit") for one in ((0, 90), (2, 80))}
    assert (down.answer.state, down.answer.unknown) == ("past-the-end", ())


def test_a_reset_of_a_share_group_is_named(coordinators):
    root = coordinators("share-reset-4.3")
    told = json.loads((root / "oracle" / "describe-all-groups.jsonl").read_text().splitlines()[-1])
    rows = [line.split() for line in told["text"].splitlines()]

    result = groups(root / "snapshots" / "99-final", history=True)

    assert positions(result) == {
        (one[0], one[1], int(one[2])): int(one[3]) for one in rows if one[2:3] != ["PARTITION"] and one
    }
    # All 60 records were acknowledged, behind start offsets of 30 and 0, which the tool prints.
    for number, reset in enumerate(result.body.setbacks):
        assert (str(reset.key.group), reset.key.topic, reset.key.partition) == ("workers", "jobs", number)
        assert (reset.previous, reset.offset, reset.by, reset.confidence) == (60, 0, "administrator", "proven")
    assert [*result.body.setbacks] == [one for one in result.body.changes() if one.is_share]
    assert [60, 60, 55] == [one.lag for group in reversed(result.body.groups) for one in group.positions]
    assert result.answer.state == "set-back"


RESET_TO = {
    "to-earliest": 0,
    "to-latest": 20,
    "to-offset": 4,
    "shift-by": 9,
    "to-datetime": 0,
    "by-duration": 0,
    "to-current": 15,
    "from-file": 7,
    "by-admin": 3,
}
"""Where each way to set a position by hand put the group of its name, which had read up to 15."""


def test_each_tool_that_sets_positions_is_an_administrator_and_no_member(coordinators):
    root = coordinators("resets-4.4")
    result = groups(root / "snapshots/20-reset", root / "logs", history=True)
    last = {(one.key.group, one.key.topic): one for one in result.body.changes()}
    moved = {group: last[group, "orders"] for group in RESET_TO}
    assert {group: one.offset for group, one in moved.items()} == RESET_TO
    assert {(one.by, one.confidence, one.previous) for one in moved.values()} == {("administrator", "proven", 15)}
    assert ("member", "possible", 2) == (
        last["by-seek", "orders"].by,
        last["by-seek", "orders"].confidence,
        last["by-seek", "orders"].offset,
    )
    for group in ("offsets-deleted", "group-deleted"):
        gone = last[group, "orders"]
        assert (None, 15, "deletion", "proven") == (gone.offset, gone.previous, gone.by, gone.confidence)
    # kafka-streams-application-reset sets the input topics back, and deletes the topics between.
    reset, between = last["tally", "words"], last["tally", "tally-totals-repartition"]
    assert (0, 6, "administrator") == (reset.offset, reset.previous, reset.by)
    assert (None, "deletion", "the topic was deleted") == (between.offset, between.by, between.reason)
    behind = {one.key.group for one in result.body.setbacks}
    assert behind == {group for group, offset in RESET_TO.items() if offset < 15} | {"by-seek", "tally"}
    early = groups(root / "snapshots/10-read", root / "logs", groups=frozenset({"shift-by"}))
    assert early.answer.state == "no-setback"
    forward = groups(root / "snapshots/20-reset", root / "logs", groups=frozenset({"to-latest", "to-current"}))
    assert (forward.answer.state, forward.exit_code) == ("set-forward", 1)
    assert forward.answer.headline.startswith(
        "TO-LATEST WAS SET FORWARD: orders-0 from 15 to 20 at 2026-11-27 14:25:43 UTC"
    )
    assert "Nothing shows that it read the 5 offsets between." in forward.answer.headline


def test_a_streams_group_is_as_kafka_says(coordinators):
    root = coordinators("streams-4.4")
    told = {one["what"]: one["printed"] for one in json.loads((root / "told.json").read_text())}
    running, reset, put_back = (groups(root / "snapshots" / at) for at in ("10-running", "20-reset", "30-put-back"))
    (group,) = running.body.groups
    assert (str(group.name), group.state.type, group.state.name) == ("tally", "streams", "Stable")
    assert told["state"].splitlines()[1].split()[-2:] == ["Stable", "1"]
    lags = {(one.topic, one.partition): one.lag for one in group.positions}
    rows = [line.split() for line in told["running"].splitlines()]
    assert lags == {(row[1], int(row[2])): int(row[3]) for row in rows if row[0:1] == ["tally"]}
    assert (running.answer.state, reset.answer.state) == ("no-setback", "set-back")
    assert reset.answer.headline.startswith("TALLY WAS SET BACK: words-0 from 12 to 0")
    # Both tools put it back, and nobody read in between.
    assert all(told[f"put back by kafka-{name}-groups"].split()[-1] == "12" for name in ("consumer", "streams"))
    assert "was put forward by hand" in put_back.answer.headline
    assert "caught up" not in put_back.answer.headline
    assert put_back.answer.tell == ()


def test_a_streams_group_without_its_topics_is_not_ready(coordinators):
    root = coordinators("streams-4.4") / "snapshots" / "10-running"
    first = groups(root, at_ms=groups(root, history=True).body.complete_since_ms)
    assert [(one.state.name, one.state.member_count) for one in first.body.groups] == [("NotReady", 1)]


@pytest.mark.parametrize(("after_ms", "by"), [(30_000, "deletion"), (7 * 86_400_000 + 300_000, "expiry")])
def test_what_removed_the_positions_of_a_streams_group_is_told(coordinators, tmp_path, after_ms, by):
    before = coordinators("streams-4.4") / "snapshots" / "30-put-back"
    now = tmp_path / "now"
    shutil.copytree(before, now)
    (group,) = groups(before).body.groups
    at_ms = max(one.position.committed_ms for one in group.positions) + after_ms
    gone = [commit("tally", one.topic, one.partition, None, version=1) for one in group.positions]
    gone.append(encode_coordinator_record(GROUP_TABLES, 17, {"group_id": "tally"}, 0, None))
    (log,) = now.glob("broker-1/__consumer_offsets-0/*.log")
    log.write_bytes(log.read_bytes() + batch(10_000, gone, time_ms=at_ms))
    result = groups(now, before=(before,))

    assert {one.by for one in result.body.changes() if one.offset is None and one.time_ms == at_ms} == {by}
    assert "The position of tally in " in result.answer.headline
    assert f"it {'had expired' if by == 'expiry' else 'was deleted'}" in result.answer.headline
    assert any(one.startswith("The owners of tally: a position is gone") for one in result.answer.tell)


def test_groups_of_each_kind_are_as_their_acts_made_them(coordinators):
    root = coordinators("kinds-4.4")
    reset, expired = (root / "snapshots" / at for at in ("20-reset", "30-expired"))
    result = groups(expired, root / "logs", before=(reset,))
    removed = {
        (one.key.group, one.previous): (one.by, one.reason) for one in result.body.changes() if one.offset is None
    }

    # A topic that was made again keeps what was committed since; what the first one held went with it.
    assert removed["again", 18] == ("deletion", "the topic was deleted")
    assert removed.pop(("again", 4))[0] == "expiry"
    assert {name for name, (by, _) in removed.items() if by == "expiry"} == {
        ("back", 17),
        ("gens", 9),
        ("migrated", 5),
        ("static", 14),
    }
    assert removed["doomed", 12][0] == "deletion"
    # An aborted and an open transaction move nothing; share groups do not expire.
    assert positions(result) == {
        ("back", "orders", 0): 2,
        ("in-transactions", "orders", 0): 11,
        ("reset", "jobs", 0): 0,
        ("workers", "jobs", 0): 12,
    }
    assert {(one.key.group, one.previous, one.offset): one.recreated != "" for one in result.body.setbacks} == {
        ("back", 17, 2): True,
        ("reset", 12, 0): False,
        ("migrated", 13, 5): False,  # its protocol changed, and it kept its position
        ("gens", 12, 6): False,
    }
    assert "The position of static in orders-0, 14, is gone since " in result.answer.headline
    assert "it had expired. So are 3 more." in result.answer.headline
    alone = groups(expired, before=(reset,), groups=frozenset({"static"}))
    assert alone.answer.headline.startswith("The position of static in orders-0, 14, is gone since ")
    assert "it had expired." in alone.answer.headline  # by the broker's own settings
    first = groups(reset, before=(root / "snapshots" / "10-read",), groups=frozenset({"doomed"})).answer
    assert first.headline.startswith("The position of doomed in jobs-0, 12, is gone since ")
    assert "share.auto.offset.reset" in " ".join(map(str, first.tell))


def test_share_groups_start_where_kafka_says(coordinators, capsys):
    root = coordinators("share-4.1")
    printed = {}
    for line in (root / "oracle" / "describe-all-groups.jsonl").read_text().splitlines():
        rows = [row.split() for row in json.loads(line)["text"].splitlines()]
        at = json.loads(line)["label"]
        printed[at] = {(row[0], row[1], int(row[2])): int(row[3]) for row in rows if len(row) == 4 and row[2].isdigit()}
    senders = groups(root / "snapshots" / "02-senders-live")
    final = groups(root / "snapshots" / "99-final")

    assert positions(senders) == printed["senders"]
    assert positions(final) == printed["workers-all"]
    assert (senders.answer.state, final.answer.state) == ("no-setback", "no-setback")
    deliveries = {
        (one.topic, one.partition): [
            (each.first_offset, each.last_offset, each.state, each.delivered) for each in one.share.deliveries
        ]
        for group in final.body.groups
        for one in group.positions
    }
    # Ten were released, five of them rejected; all of the other topic were accepted.
    assert deliveries == {
        ("mail", 0): [(5, 9, 0, 1), (10, 59, 0, 0)],
        ("jobs", 0): [(0, 59, 2, 1)],
        ("jobs", 1): [(30, 59, 2, 1)],
    }


def test_a_log_end_in_the_past_is_unknown_without_the_leader_of_that_time(incident):
    """Broker 1 led until it was killed; broker 2 was elected uncleanly, and its log does not show what broker 1 had beyond it."""
    root = incident("consumer-ahead-4.x")
    final = root / "snapshots" / "99-final"
    inputs = [final / name for name in ("broker-2", "broker-3", "controller-100")]
    at_ms = max(one.position.committed_ms for group in groups(*inputs).body.groups for one in group.positions) - 30_000
    past = groups(*inputs, at_ms=at_ms)
    ends = {(one.topic, one.partition): one.log_end_offset for group in past.body.groups for one in group.positions}

    assert ends["billing", 0] is Absent.UNKNOWN
    assert any("broker 1 led there, and its log is not among the inputs" in words for words in past.answer.unknown)


def test_a_missing_partition_is_named_for_the_group_that_it_holds(coordinators, tmp_path):
    copied(coordinators("groups-4.1") / "snapshots" / "01-before-live", tmp_path / "copy")
    for directory in tmp_path.rglob("__consumer_offsets-1"):
        shutil.rmtree(directory)

    everyone = groups(tmp_path / "copy")
    there = groups(tmp_path / "copy", groups=frozenset({"by-hand"}))
    gone = groups(tmp_path / "copy", groups=frozenset({"watch"}))

    assert (everyone.answer.state, everyone.exit_code) == ("maybe-at-risk", 1)
    assert everyone.body.complete_since_ms is Absent.UNKNOWN
    assert there.answer.state == "no-setback"
    assert gone.answer.unknown == ("What __consumer_offsets-1 says of watch: it is not among the inputs.",)


def test_positions_in_logs_that_are_not_here_are_never_calm(coordinators, tmp_path):
    copied(coordinators("groups-4.1") / "snapshots" / "01-before-live", tmp_path / "copy")
    for directory in tmp_path.rglob("payments-0"):
        shutil.rmtree(directory)

    result = groups(tmp_path / "copy")

    assert result.answer.state == "unknown"
    assert "Whether positions in payments-0 are past the end" in " ".join(result.answer.unknown)


def test_damage_is_never_calm(coordinators, tmp_path):
    copied(coordinators("groups-4.1") / "snapshots" / "01-before-live", tmp_path / "copy")
    for log in tmp_path.rglob("__consumer_offsets-1/00000000000000000000.log"):
        content = bytearray(log.read_bytes())
        content[90] ^= 8
        log.write_bytes(content)

    result = groups(tmp_path / "copy")

    assert (result.answer.state, result.exit_code) == ("maybe-at-risk", 1)


def test_wrong_names_are_refused(coordinators):
    snapshot = coordinators("groups-4.1") / "snapshots" / "01-before-live"
    with pytest.raises(UsageError, match=r"no group biling is among the inputs.*did you mean billing"):
        groups(snapshot, groups=frozenset({"biling"}))
    with pytest.raises(UsageError, match="no group biling"):
        groups(snapshot, groups=frozenset({"biling"}), history=True)
    with pytest.raises(UsageError, match="no group has committed in topic order"):
        groups(snapshot, topics=frozenset({"order"}))
    with pytest.raises(UsageError, match=r"no group has committed in a partition 77 \(--partition\); there is 0"):
        groups(snapshot, partitions=frozenset({77}))
    with pytest.raises(UsageError, match=r"group watch has not committed in a partition 1 \(--partition\)"):
        groups(snapshot, groups=frozenset({"watch"}), partitions=frozenset({1}))


def test_several_clusters_are_refused(coordinators):
    with pytest.raises(InputsRefused, match="of 2 clusters"):
        groups(*(coordinators(name) / "snapshots" / "01-before-live" for name in ("groups-2.8", "groups-4.1")))


def test_lines_are_one_object_a_commit(coordinators, capsys):
    snapshot = coordinators("groups-4.1") / "snapshots" / "01-before-live"
    assert run_line(["groups", str(snapshot), "--group", "billing", "--format", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [(one["topic"], one["partition"], one["offset"], one["by"]) for one in lines] == [
        ("orders", 0, 40, "member"),
        ("orders", 1, 44, "member"),
        ("orders", 0, 91, "member"),
        ("orders", 1, 60, "member"),
    ]
    assert all(one["citations"][0]["path"].startswith("__consumer_offsets-") for one in lines)


@pytest.mark.parametrize("kept", [0, 20, 700])
def test_a_log_that_lost_its_end_is_not_where_a_group_is_past(coordinators, tmp_path, kept):
    copied(coordinators("groups-4.1") / "snapshots" / "99-final", tmp_path / "copy")
    for log in (tmp_path / "copy").glob("broker-*/orders-0/*.log"):
        log.write_bytes(log.read_bytes()[:kept])

    result = groups(tmp_path / "copy")

    assert result.answer.state == "set-back"
    ends = {one.log_end_offset for group in result.body.groups for one in group.positions if one.topic == "orders"}
    assert Absent.UNKNOWN in ends
    assert any("positions in orders-0 are past the end" in words for words in result.answer.unknown)


def test_a_log_of_commits_that_ends_below_its_checkpoints_may_lack_a_set_back(coordinators, tmp_path):
    root = coordinators("groups-4.1")
    copied(root / "snapshots" / "99-final", tmp_path / "copy")
    whole = groups(tmp_path / "copy", groups=frozenset({"billing"}))
    assert whole.answer.state == "set-back"
    assert {(one.code, str(one.confidence)) for one in whole.findings} == {("KF612", "proven")}
    for log in (tmp_path / "copy").glob("broker-*/__consumer_offsets-*/*.log"):
        log.write_bytes(log.read_bytes()[: log.stat().st_size // 4])

    result = groups(tmp_path / "copy")

    assert (result.answer.state, result.exit_code) != ("no-setback", 0)
    assert any("here ends below a high watermark" in words for words in result.answer.unknown)


def test_calm_names_since_when_every_commit_is_here(coordinators):
    paths, before = everything(coordinators("groups-4.1"))

    result = groups(*paths, before=before, groups=frozenset({"copy"}))

    assert (result.answer.state, result.answer.unknown) == ("no-setback", ())
    assert " since 2026-11-22 " in result.answer.headline


@pytest.mark.slow
def test_calm_about_a_time_ends_at_it_and_says_nothing_of_one_before_the_history(coordinators):
    paths, before = everything(coordinators("groups-4.1"))
    since = groups(*paths, before=before).body.complete_since_ms

    early, later = (groups(*paths, before=before, at_ms=since + one) for one in (-1, 1_000))

    assert (early.answer.state, early.exit_code) == ("unknown", 3)
    assert any("the history is complete since" in words for words in early.answer.unknown)
    assert later.answer.state == "no-setback"
    assert re.search(r"none was set back since [-0-9]+ [:0-9]+ UTC until ", later.answer.headline)


def test_an_unclean_election_on_record_leaves_it_unknown_where_the_log_of_the_leader_before_it_is_not_here(
    coordinators,
):
    snapshots = coordinators("groups-4.1") / "snapshots"

    alone = groups(snapshots / "99-final", groups=frozenset({"copy"}))
    too_early = groups(snapshots / "99-final", before=(snapshots / "01-before-live",), groups=frozenset({"copy"}))

    for result in (alone, too_early):
        assert (result.answer.state, result.exit_code) == ("unknown", 3)
        assert any("discarded by the unclean election in leader epoch" in words for words in result.answer.unknown)
        assert result.body.complete_since_ms is Absent.UNKNOWN


def test_what_an_elected_leader_lacks_is_a_set_back_though_nothing_replaced_it_yet(coordinators):
    """In a live copy the leader before the election is down, and its log is not truncated yet."""
    live = coordinators("groups-4.1") / "snapshots" / "04-old-leader-down-live"

    found = [one for one in acts(groups(live, history=True)) if one[4] == "truncation"]

    assert ("watch", "payments-0", 98, 95, "truncation") in found


@pytest.mark.parametrize("name", ["groups-1.1", "groups-2.8"])
def test_disks_alone_do_not_show_that_no_election_since_the_first_discarded_commits(coordinators, name):
    root = coordinators(name)
    before, later = (root / "snapshots" / one for one in ("01-before-live", "02-failed-over-live"))

    def doubts(*paths):
        return [one for one in groups(*paths).answer.unknown if "discarded by an unclean election" in one]

    assert len(doubts(later)) == 1
    assert "no input shows who led and who was in sync. Give " in doubts(later)[0]
    assert [] == doubts(later, root / "logs")
    # All of it was written in the first leader epoch.
    assert [] == doubts(before)
    assert "no-setback" == groups(before).answer.state


def test_calm_of_disks_alone_after_elections_needs_the_lines_about_them(incident):
    """Its broker logs show an unclean election that discarded commits."""
    final = incident("unclean-election-2.8") / "snapshots" / "99-final"

    result = groups(final)

    assert (result.answer.state, result.exit_code) == ("unknown", 3)
    assert result.body.complete_since_ms is Absent.UNKNOWN


def test_a_leader_that_came_back_after_a_crash_may_have_lost_commits_unless_its_disk_from_before_is_here(incident):
    snapshots = incident("all-codecs-4.x") / "snapshots"
    before = tuple(sorted(one for one in snapshots.iterdir() if one.name != "99-final"))

    alone = groups(snapshots / "99-final")
    beside = groups(snapshots / "99-final", before=before)

    assert (alone.answer.state, alone.exit_code) == ("unknown", 3)
    assert "No input shows whether anything was lost when broker 1 became leader in an unclean election" in str(
        alone.answer.unknown
    )
    assert (beside.answer.state, beside.answer.unknown) == ("no-setback", ())


def test_a_later_unclean_election_may_have_discarded_what_was_committed_before_the_time_in_question(coordinators):
    final = coordinators("groups-4.1") / "snapshots" / "99-final"
    elected = {one.time_ms for one in groups(final, history=True).body.changes()}

    result = groups(final, at_ms=min(elected) + 1)

    assert result.answer.state == "unknown"
    assert "discarded by the unclean election in leader epoch" in str(result.answer.unknown)


def test_a_clean_election_discards_no_commit(coordinators):
    live = coordinators("groups-4.1") / "snapshots" / "02-failed-over-live"

    result = groups(live, history=True)

    assert not [one for one in acts(result) if one[4] == "truncation"]
    assert not any("unclean election" in words for words in result.answer.unknown)


def test_the_log_of_a_broker_that_is_not_elected_next_does_not_speak_for_all_groups(incident):
    """At the end all brokers are down: the ELR is broker 1."""
    final = incident("power-loss-4.x") / "snapshots" / "99-final"

    outside = groups(final / "broker-2", final / "controller-100")
    eligible = groups(final / "broker-1", final / "controller-100")

    assert (outside.answer.state, outside.exit_code) == ("unknown", 3)
    assert any("it has no leader, and broker 1 of its ELR is not" in one for one in outside.answer.unknown)
    assert (eligible.answer.state, eligible.answer.unknown) == ("no-setback", ())


def test_one_broker_does_not_speak_for_all_groups_where_no_input_says_who_leads(coordinators, tmp_path):
    (tmp_path / "server.properties").write_text("offsets.topic.num.partitions=3\n")
    final = coordinators("groups-2.8") / "snapshots" / "99-final"

    result = groups(final / "broker-2", tmp_path / "server.properties", groups=frozenset({"audit"}))

    assert (result.answer.state, result.exit_code) == ("unknown", 3)
    assert any("no input says who leads it" in words for words in result.answer.unknown)


def test_a_broker_s_own_metadata_log_does_not_show_that_no_group_committed_after_it_stopped(incident):
    snapshot = incident("unclean-election-4.x") / "snapshots" / "01-before-live"

    alone = groups(snapshot / "broker-1")
    controller = groups(snapshot / "controller-100")
    brokers = groups(*snapshot.glob("broker-*"))

    assert (alone.answer.state, alone.exit_code) == ("unknown", 3)
    assert [one.answer.headline for one in (controller, brokers)] == ["No group has committed anything."] * 2


@pytest.mark.parametrize("lines", ["0\n1\n-5 0\n", "0\n1\n2147483648 0\n", "9\n", "0\n1\n0 9223372036854775808\n"])
@pytest.mark.some(1)
def test_an_epoch_file_that_a_broker_would_refuse_names_no_epoch(coordinators, tmp_path, lines):
    paths, before = everything(coordinators("groups-1.1"))
    final = copied(paths[0], tmp_path / "final")
    for path in final.rglob("__consumer_offsets-*/leader-epoch-checkpoint"):
        path.write_text(lines)

    found = groups(final, *paths[1:], before=before)

    assert positions(found) == positions(groups(*paths, before=before))


def log_directory(root, *logs, node=1, checkpoints=None):
    """A log directory of a broker with ZooKeeper, of partitions by name with their content."""
    root.mkdir(parents=True)
    (root / "meta.properties").write_text(f"version=0\nbroker.id={node}\n")
    for name, content in logs:
        write_log(root, name, (0, content))
    for name, lines in (checkpoints or {"replication-offset-checkpoint": []}).items():
        (root / name).write_text(f"0\n{len(lines)}\n" + "".join(f"{line}\n" for line in lines))
    return root


def commits_of(*offsets, time_ms=NOW, topic="orders"):
    records = [commit(group, topic, 0, offset, time_ms=time_ms) for group, offset in offsets]
    return b"".join(batch(at, [one], time_ms=time_ms) for at, one in enumerate(records))


EARLIER = (("payer", 90), ("mailer", 70))


@pytest.mark.parametrize(
    ("later", "lost", "headline"),
    [
        # Its disk was emptied: one group began again, the other one did not.
        (commits_of(("mailer", 10), time_ms=NOW + 3_600_000), {("payer", None), ("mailer", 10)}, "LOST ITS POSITION"),
        # An older copy was put back.
        (commits_of(EARLIER[0]), {("mailer", None)}, "MAILER HAS LOST ITS POSITION in orders-0: 70"),
        # There is no log of it any more.
        (None, {("payer", None), ("mailer", None)}, "PAYER HAS LOST ITS POSITION in orders-0: 90"),
        # It went on.
        (commits_of(*EARLIER, ("payer", 95)), set(), None),
        (commits_of(*EARLIER, ("payer", None)), set(), None),
    ],
)
def test_positions_of_an_earlier_copy_that_nothing_removed_are_lost(tmp_path, later, lost, headline):
    before = log_directory(tmp_path / "before", ("__consumer_offsets-0", commits_of(*EARLIER)))
    now = log_directory(tmp_path / "now", *([] if later is None else [("__consumer_offsets-0", later)]), ("x-0", b""))
    result = groups(now, before=(before,))

    assert lost == {(one.key.group, one.offset) for one in result.body.setbacks}
    assert bool(lost) is (result.answer.state == "set-back")
    assert all(one.citations for one in result.body.setbacks)
    if headline:
        assert headline in result.answer.headline
        assert len(lost) == len(result.findings)


def test_an_earlier_copy_that_seems_to_be_the_later_one_is_said_first(tmp_path):
    now = log_directory(tmp_path / "now", ("__consumer_offsets-0", commits_of(EARLIER[0])))
    before = log_directory(tmp_path / "before", ("__consumer_offsets-0", commits_of(*EARLIER)))
    for at, directory in enumerate((now, before)):
        for path in directory.rglob("*"):
            os.utime(path, (NOW / 1000, NOW / 1000 + 60 * at))
    opened = open_case(Ask(paths=(now,), before=(before,)))
    calm = Answer(state=State.NO_SETBACK, headline="1 group.")

    found, beside = groups(now, before=(before,)).answer, no_calmer_than_order(calm, opened)
    for one, words in ((found, "MAILER HAS LOST ITS POSITION"), (beside, "1 group.")):
        assert one.headline.startswith(f"If {before} is the earlier one, though its files are younger: {words}")
    assert ("set-back", "unknown") == (found.state, beside.state)
    assert calm == no_calmer_than_order(calm, open_case(Ask(paths=(before,), before=(now,))))


@pytest.mark.parametrize(("days", "names_it", "is_lost"), [(0.5, False, True), (3, False, False), (0.5, True, False)])
def test_a_position_of_which_a_cleaner_left_no_record_is_lost_where_it_can_not_have_expired(
    tmp_path, days, names_it, is_lost
):
    before = log_directory(tmp_path / "before", ("__consumer_offsets-0", commits_of(*EARLIER)))
    at_ms = NOW + int(days * 86_400_000)
    kept = batch(50, [commit("mailer", "orders", 0, 80, time_ms=at_ms)], time_ms=at_ms)
    if names_it:
        kept += batch(51, [commit("payer", "orders", 0, None)], time_ms=at_ms)
    points = {"cleaner-offset-checkpoint": ["__consumer_offsets 0 50"], "replication-offset-checkpoint": []}
    now = log_directory(tmp_path / "now", ("__consumer_offsets-0", kept), checkpoints=points)
    result = groups(now, before=(before,), history=True)
    assert [(one.key.group, one.previous) for one in result.body.setbacks] == [("payer", 90)] * is_lost
    assert ("PAYER HAS LOST ITS POSITION in orders-0: 90" in result.answer.headline) is is_lost
    assert any(one.is_lost for one in result.body.changes()) is is_lost


def test_a_partition_of_which_earlier_copies_alone_are_here_may_be_on_a_broker_that_is_not(tmp_path):
    before = log_directory(tmp_path / "before", ("__consumer_offsets-0", commits_of(*EARLIER)))
    now = log_directory(tmp_path / "now", ("x-0", b""), node=2)
    result = groups(now, before=(before,))

    assert "unknown" == result.answer.state
    assert () == result.body.setbacks
    assert "__consumer_offsets-0" in " ".join(result.answer.unknown)


@pytest.mark.parametrize(("start", "missed"), [(8, 3), (5, 0), (4, 0)])
def test_a_position_below_the_log_start_is_a_headline_of_its_own(tmp_path, start, missed):
    records = batch(0, [(b"k", b"v")] * 10)
    now = log_directory(
        tmp_path / "now",
        ("__consumer_offsets-0", commits_of(("payer", 5))),
        ("orders-0", records),
        checkpoints={"log-start-offset-checkpoint": [f"orders 0 {start}"]},
    )
    result = groups(now)
    (position,) = result.body.groups[0].positions

    assert missed == position.deleted_unread
    assert bool(missed) is (result.answer.state == "below-the-start")
    assert bool(missed) is ("PAYER IS BELOW THE LOG START of orders-0" in result.answer.headline)
    assert (["KF613"] if missed else []) == [one.code for one in result.findings]


@pytest.mark.parametrize(("committed", "is_unread"), [(5, False), (6, False), (4, True), (7, False)])
def test_markers_behind_a_position_are_no_unread_records(tmp_path, capsys, committed, is_unread):
    records = batch(0, [(b"k", b"v")] * 5, producer=7, transactional=True)
    records += marker(5, 7, commits=True) + marker(6, 8, commits=False)
    now = log_directory(
        tmp_path / "now", ("__consumer_offsets-0", commits_of(("payer", committed))), ("orders-0", records)
    )
    run_line(["groups", str(now)])

    assert (not is_unread and committed < 7) is ("no record is unread: markers" in capsys.readouterr().out)


@pytest.mark.parametrize(
    ("committed", "version", "said"),
    [
        (5, 2, "at most 3 records up to there: a cleaner has removed others"),
        (21, 2, "at most 1 record up to there: a cleaner has removed others"),
        (5, 1, "an unknown number of records up to there"),
        (25, 2, None),
    ],
)
def test_a_lag_in_a_compacted_log_says_how_many_records_are_left(tmp_path, capsys, committed, version, said):
    kept = batch(0, [(b"a", b"1")]) + batch(10, [(b"b", b"1")]) + batch(20, [(b"c", b"1")] * 2)
    if version == 1:
        kept = encode_message_set(Message(at, 1, 0, NOW, b"k", b"v") for at in (0, 10, 21))
    logs = ("__consumer_offsets-0", commits_of(("payer", committed))), ("orders-0", kept)
    now = log_directory(tmp_path / "now", *logs, checkpoints={"cleaner-offset-checkpoint": ["orders 0 22"]})
    run_line(["groups", str(now)])

    shown = capsys.readouterr().out
    assert said in shown if said else "up to there" not in shown


def test_a_group_whose_log_is_here_is_not_looked_for_elsewhere(tmp_path):
    now = log_directory(tmp_path / "now", ("__consumer_offsets-17", commits_of(("payer", 5))))
    said = " ".join(groups(now, groups=frozenset({"payer"})).answer.unknown)

    assert "What __consumer_offsets-17 says of payer: no input says who leads it" in said
    assert "is not among the inputs." not in said.partition("Whether positions")[0]


def test_commits_in_stray_directories_are_not_told_as_none(tmp_path):
    """The controllers came back empty, and brokers set everything aside."""
    name = f"__consumer_offsets-0.{'0a' * 16}-stray"
    now = log_directory(tmp_path / "now", ("x-0", b""))
    (now / name).mkdir()
    (now / name / f"{0:020d}.log").write_bytes(commits_of(("payer", 5)))
    result = groups(now)

    assert "unknown" == result.answer.state
    assert "a stray directory alone is here" in " ".join(result.answer.unknown)


@pytest.mark.parametrize(
    ("line", "by"),
    [
        ("[GroupMetadataManager brokerId=1] Removed 3 expired offsets in 4 milliseconds.", "expiry"),
        ("Generated 3 tombstone records while cleaning up group metadata in 4 milliseconds.", "expiry"),
        ("[GroupMetadataManager brokerId=1] Removed 0 expired offsets in 4 milliseconds.", "deletion"),
        ("[Topic Deletion Manager 1], Deletion of topic orders successfully completed", "deletion"),
        (None, "deletion"),
    ],
)
@pytest.mark.parametrize("delay_s", [1, -1, 90])
def test_a_removal_that_a_line_calls_expiry_or_the_deletion_of_a_topic_is_one(tmp_path, line, by, delay_s):
    at_ms = NOW - NOW % 1_000
    removed = batch(2, [commit("payer", "orders", 0, None)], time_ms=at_ms + 3_600_000)
    content = batch(0, [group_metadata("payer", 1)]) + batch(1, [commit("payer", "orders", 0, 90)]) + removed
    root = tmp_path / "node"
    log_directory(root / "data", ("__consumer_offsets-0", content))
    at = dt.datetime.fromtimestamp(at_ms / 1000 + 3_600 + delay_s, dt.UTC)
    written = f"[{at:%Y-%m-%d %H:%M:%S},000] INFO {line} (kafka.coordinator.group.GroupMetadataManager)\n"
    (root / "server.log").write_text("" if line is None else written)
    last = list(groups(root, history=True).body.changes())[-1]

    assert (by if delay_s < 90 else "deletion") == last.by
    is_of_topic = line is not None and "topic orders" in line and delay_s < 90
    assert (last.reason == "the topic was deleted") is is_of_topic
    assert (last.by == "expiry") is any(one.path.endswith("server.log") for one in last.citations)


@pytest.mark.parametrize(
    ("committed", "behind", "past"),
    [((18, 0, 9, 18, 4, 10), [(18, 4)], [(18, 0)]), ((18, 0, 9, 12, 4), [(18, 0), (12, 4)], [])],
)
def test_a_set_back_that_was_caught_up_before_the_next_one_is_past(tmp_path, committed, behind, past):
    hour = 3_600_000
    log = b"".join(
        batch(at, [commit("billing", "orders", 0, offset, time_ms=NOW + at * hour)], time_ms=NOW + at * hour)
        for at, offset in enumerate(committed)
    )
    write_log(tmp_path / "broker-1", "__consumer_offsets-0", (0, log))
    result = groups(tmp_path / "broker-1" / "__consumer_offsets-0")

    found = [(one.caught_up_ms is None, one.previous, one.offset) for one in result.body.setbacks]
    assert sorted(behind) == sorted((previous, offset) for is_behind, previous, offset in found if is_behind)
    assert past == [(previous, offset) for is_behind, previous, offset in found if not is_behind]
    (previous, offset) = behind[0]
    assert f"orders-0 from {previous} to {offset}" in result.conclusion.answer.headline


@pytest.mark.parametrize(
    ("start", "line", "by", "said"),
    [
        (8, None, "delete-records", "inside of a segment"),
        (8, "Incremented log start offset to 8 due to client delete records request", "delete-records", "request"),
        (8, "Incremented log start offset to 6 due to segment deletion", "retention", "later ones in another way"),
    ],
)
def test_what_is_below_a_log_start_says_how_many_are_left_and_who_deleted_the_others(tmp_path, start, line, by, said):
    root = tmp_path / "node"
    log_directory(
        root / "data",
        ("__consumer_offsets-0", commits_of(("payer", 5))),
        ("orders-0", batch(0, [(b"k", b"v")] * 10)),
        checkpoints={"log-start-offset-checkpoint": [f"orders 0 {start}"]},
    )
    prefix = "[2026-11-18 19:06:40,000] INFO [UnifiedLog partition=orders-0, dir=/data] "
    (root / "server.log").write_text("" if line is None else f"{prefix}{line} (kafka.log.UnifiedLog)\n")
    result = groups(root)
    (position,) = result.body.groups[0].positions

    assert (3, 2, by) == (position.deleted_unread, position.left_unread, position.removal.by)
    assert "2 are left. They were deleted" in result.answer.headline
    assert said in result.answer.headline
    assert (line is not None) is isinstance(position.removal.since_ms, int)


def with_epochs(root, offset, epoch, *, entries, records, committed_ms=NOW):
    """A group at an offset with a leader epoch, and the log that it reads with its epochs."""
    held = batch(
        0, [commit("payer", "orders", 0, offset, time_ms=committed_ms, leader_epoch=epoch)], time_ms=committed_ms
    )
    log_directory(root, ("__consumer_offsets-0", held), ("orders-0", records))
    lines = "".join(f"{one} {start}\n" for one, start in entries)
    (root / "orders-0" / "leader-epoch-checkpoint").write_text(f"0\n{len(entries)}\n{lines}")
    return groups(root)


LATER = NOW + 60_000
TWO_EPOCHS = batch(0, [(b"k", b"v")] * 4) + batch(4, [(b"k", b"v")] * 6, epoch=3, time_ms=LATER)


@pytest.mark.parametrize(
    ("offset", "epoch", "goes_on_at", "had_others"),
    [
        (4, 0, Absent.NOT_APPLICABLE, False),
        (8, 3, Absent.NOT_APPLICABLE, False),
        (8, -1, Absent.NOT_APPLICABLE, False),
        (8, 0, 4, True),
        (8, 2, 4, True),
        (8, 5, Absent.UNKNOWN, False),
    ],
)
def test_a_leader_epoch_that_the_log_contradicts(tmp_path, offset, epoch, goes_on_at, had_others):
    result = with_epochs(tmp_path / "now", offset, epoch, entries=[(0, 0), (3, 4)], records=TWO_EPOCHS)
    (position,) = result.body.groups[0].positions
    is_contradicted = goes_on_at is not Absent.NOT_APPLICABLE

    assert (goes_on_at, had_others) == (position.goes_on_at, position.had_others)
    assert is_contradicted is (result.answer.state == "wrong-epoch")
    assert is_contradicted is ("LEADER EPOCH THAT THE LOG CONTRADICTS" in result.answer.headline)
    assert (["KF614"] if is_contradicted else []) == [one.code for one in result.findings]
    if goes_on_at == 4:
        assert "goes back to 4 and reads 4 offsets again" in result.answer.headline


def test_a_commit_of_the_same_records_is_not_called_truncated(tmp_path):
    result = with_epochs(
        tmp_path / "now", 8, 0, entries=[(0, 0), (3, 4)], records=TWO_EPOCHS, committed_ms=LATER + 1_000
    )

    assert "KAFKA-19902" in result.answer.headline
    assert "are gone:" not in result.answer.headline


@pytest.mark.parametrize("entries", [[], [(0, 0)]])
def test_a_log_without_its_own_epochs_contradicts_none(tmp_path, entries):
    result = with_epochs(tmp_path / "now", 8, 0, entries=entries, records=TWO_EPOCHS)

    assert result.answer.state == "unknown"
    assert not result.findings


def test_a_position_that_is_gone_is_told_beside_one_past_the_end(tmp_path):
    before = log_directory(tmp_path / "before", ("__consumer_offsets-0", commits_of(*EARLIER)))
    records = ("orders-0", batch(0, [(b"k", b"v")] * 10))
    now = log_directory(tmp_path / "now", ("__consumer_offsets-0", commits_of(EARLIER[0])), records)
    other = log_directory(tmp_path / "other", records, node=2)
    result = groups(now, other, before=(before,))

    assert result.answer.state == "past-the-end"
    assert "MAILER HAS LOST ITS POSITION in orders-0: 70" in result.answer.headline


def test_a_page_draws_positions_over_time_with_what_set_them_back(tmp_path, capsys):
    hour = 3_600_000
    held = [("payer", 40), ("payer", 91), ("payer", 0), ("payer", 20), ("calm", 5), ("calm", 9), ("back", 9)]
    held += [("back", 3), ("back", 12)]
    content = b"".join(
        batch(at, [commit(group, "orders", 0, offset, time_ms=NOW + at * hour)], time_ms=NOW + at * hour)
        for at, (group, offset) in enumerate(held)
    )
    now = log_directory(tmp_path / "now", ("__consumer_offsets-0", content))
    run_line(["groups", str(now), "--format", "html"])
    page = capsys.readouterr().out
    picture = page[page.index("Positions over time") :]

    assert 'aria-label="payer over time"' in picture
    assert 'aria-label="back over time"' in picture
    assert "calm over time" not in picture
    assert "40 to 91" in picture
    assert "0 to 20" in picture
    # The other one has caught up again.
    assert picture.count('<li class="grave">') == 1
    run_line(["groups", str(now)])
    assert "over time" not in capsys.readouterr().out


def test_topics_of_share_groups_have_their_names_by_their_directories(coordinators, tmp_path):
    final = coordinators("share-4.1") / "snapshots" / "99-final"
    for broker in ("broker-1", "broker-2"):
        shutil.copytree(final / broker, tmp_path / broker, ignore=shutil.ignore_patterns("__cluster_metadata-0"))
    result = groups(tmp_path)

    assert positions(result) == positions(groups(final))
    assert {one.topic for view in result.body.groups for one in view.positions} == {"mail", "jobs"}


def test_a_page_draws_no_more_than_it_can_show_and_counts_the_rest(tmp_path, capsys):
    offsets = [9, 3] * 150
    content = batch(0, [commit("jumpy", "orders", 0, offset, time_ms=NOW + at) for at, offset in enumerate(offsets)])
    now = log_directory(tmp_path / "now", ("__consumer_offsets-0", content))
    run_line(["groups", str(now), "--format", "html"])
    page = capsys.readouterr().out
    picture = page[page.index('aria-label="jumpy over time"') :]

    assert picture[: picture.index("</ol>")].count("<li") == 100
    assert "50 more moments, less grave or earlier, are not drawn" in picture


def test_share_groups_that_an_earlier_copy_knows_further_on_are_the_first_line(coordinators, tmp_path):
    final = coordinators("share-4.1") / "snapshots" / "99-final"
    now = tmp_path / "now"
    shutil.copytree(final, now)
    for place in now.glob("broker-*/__share_group_state-*"):
        for file in place.glob("0*"):
            file.write_bytes(b"") if file.suffix == ".log" else file.unlink()
    result = groups(now, before=(final,))
    lost = {(one.key.group, one.key.topic, one.previous) for one in result.body.setbacks if one.is_lost}

    assert lost == {("workers", "jobs", 60), ("senders", "mail", 5)}
    assert all(one.is_share and one.by == "unknown" for one in result.body.setbacks)
    assert "WORKERS HAS LOST ITS POSITION in jobs-0: 60, which an earlier copy holds" in result.answer.headline
    assert groups(final, before=(final.parent / "02-senders-live",)).answer.state == "no-setback"


def test_a_share_group_past_the_end_is_told_with_its_own_tool(coordinators, tmp_path):
    now = tmp_path / "now"
    shutil.copytree(coordinators("share-4.1") / "snapshots" / "99-final", now)
    (known,) = [
        one
        for group in groups(now).body.groups
        for one in group.positions
        if (one.topic, one.partition, bool(one.share)) == ("jobs", 1, True)
    ]
    for log in now.glob("broker-*/__share_group_state-0/*.log"):
        records = list(ShareLog(known.position.place).changes())
        key = {"group_id": "workers", "topic_id": records[0].key.topic_id, "partition": 1}
        value = {"snapshot_epoch": 9, "state_epoch": 0, "leader_epoch": 0, "start_offset": 500, "state_batches": []}
        value |= {"create_timestamp": LATER, "write_timestamp": LATER}
        made = encode_coordinator_record(SHARE_TABLES, 0, key, 0, value)
        log.write_bytes(log.read_bytes() + batch(records[-1].at.offset + 1, [made], time_ms=LATER))
    result = groups(now)
    assert "WORKERS IS PAST THE END of jobs-1" in result.answer.headline
    assert "kafka-share-groups.sh --reset-offsets" in " ".join(map(str, result.answer.now))
    assert "auto.offset.reset" not in " ".join(map(str, result.answer.now))

    told = explain(now)
    assert "jobs-1: share group workers: offset 500 is past the log end 60" in [one.statement for one in told.findings]
    assert any(one.startswith("Inform share group workers (jobs-1 at 500)") for one in told.answer.tell)


@pytest.mark.slow
def test_explain_tells_of_a_share_group_that_an_earlier_copy_knows_further_on(coordinators, tmp_path):
    before = coordinators("share-4.1") / "snapshots" / "99-final"
    now = tmp_path / "now"
    shutil.copytree(before, now)
    (known,) = [
        one for group in groups(now).body.groups for one in group.positions if (one.topic, one.partition) == ("jobs", 1)
    ]
    key = {"group_id": "workers", "partition": 1}
    for log in now.glob(f"broker-*/{known.position.place.topic_partition}/*.log"):
        key["topic_id"] = next(ShareLog(known.position.place).changes()).key.topic_id
        value = {"snapshot_epoch": 1, "state_epoch": 0, "leader_epoch": 0, "start_offset": 7, "state_batches": []}
        value |= {"create_timestamp": LATER, "write_timestamp": LATER}
        log.write_bytes(batch(0, [encode_coordinator_record(SHARE_TABLES, 0, key, 0, value)], time_ms=LATER))
    statements = [one.statement for one in explain(now, before=(before,)).findings]

    assert (
        "jobs-1: share group workers: offset 7 is its newest commit, and it had committed 30 later: that commit is lost"
        in statements
    )
    assert not [
        one for one in explain(before, before=(before.parent / "02-senders-live",)).findings if one.code == "KF305"
    ]


@pytest.mark.parametrize("kept", ["metadata", "checkpoints", "nothing"])
@pytest.mark.some(2)
def test_where_share_groups_read_is_unknown_where_no_broker_here_has_their_state(coordinators, tmp_path, kept):
    now = tmp_path / "now"
    shutil.copytree(coordinators("share-4.1") / "snapshots" / "99-final", now)
    without = [*now.glob(f"broker-*/{SHARE_TOPIC}-*")]
    without += [] if kept == "metadata" else [now / "controller-100", *now.glob("broker-*/__cluster_metadata-0")]
    for place in without:
        shutil.rmtree(place)
    for file in now.glob("broker-*/*checkpoint") if kept == "nothing" else ():
        if file.name != "bootstrap.checkpoint":
            lines = file.read_text().splitlines()[2:]
            lines = [one for one in lines if not one.startswith(SHARE_TOPIC)]
            file.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    result = groups(*now.glob("broker-*"), *now.glob("controller-*"))

    assert "Where senders and workers read: not all of __share_group_state is shown to be here" in " ".join(
        result.answer.unknown
    )
    assert result.exit_code == (
        1 if kept == "metadata" else 3
    )  # by metadata and checkpoints these brokers had the logs
    assert triage(*now.glob("broker-*"), *now.glob("controller-*")).exit_code in {1, 3}


@pytest.mark.parametrize("topic", [OFFSETS_TOPIC, SHARE_TOPIC])
@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.some(2)
def test_bytes_behind_a_log_of_a_broker_that_stopped_cleanly_are_no_torn_end(coordinators, tmp_path, topic, is_clean):
    now = tmp_path / "now"
    shutil.copytree(coordinators("share-4.1") / "snapshots" / "99-final", now)
    for log in now.glob(f"broker-*/{topic}-*/*.log"):
        log.write_bytes(log.read_bytes() + b"what no broker wrote" * bool(log.stat().st_size))
    for marker_file in [] if is_clean else now.glob("broker-*/.kafka_cleanshutdown"):
        marker_file.unlink()
    result = groups(now)
    assert bool(result.problems) is is_clean
    assert (result.answer.state == "unknown") is is_clean


def beside_metadata(root, offset, *, records, told, members=None):
    """A group that committed without a leader epoch, the log that it reads, and what a metadata log tells of the topic."""
    before = [] if members is None else [group_metadata("payer", members)]
    commits = batch(0, [*before, commit("payer", "orders", 0, offset)])
    log_directory(root, ("__consumer_offsets-0", commits), ("orders-0", records))
    batches = [
        metadata_batch(at, [metadata_record(name, fields)], times_ms=[time_ms])
        for at, (time_ms, name, fields) in enumerate(told)
    ]
    metadata_log(root, *batches)
    return groups(root)


def created(time_ms, topic_id=TOPIC_ID):
    partition = {"partition_id": 0, "topic_id": topic_id, "replicas": [1], "isr": [1], "leader": 1}
    numbers = {"leader_epoch": 0, "partition_epoch": 0, "removing_replicas": [], "adding_replicas": []}
    return [
        (time_ms, "TopicRecord", {"name": "orders", "topic_id": topic_id}),
        (time_ms, "PartitionRecord", partition | numbers),
    ]


ELECTED = ("PartitionChangeRecord", {"partition_id": 0, "topic_id": TOPIC_ID, "leader": 1})
OF_THEN = batch(0, [(b"k", b"v")] * 10)


@pytest.mark.parametrize(
    ("offset", "records", "told", "said"),
    [
        (8, OF_THEN, created(NOW - 1), None),
        (8, OF_THEN, created(NOW + 1), "STANDS BEHIND RECORDS THAT IT NEVER READ: it committed 8 of orders-0"),
        (8, OF_THEN, [(NOW, "ZkMigrationStateRecord", {"zk_migration_state": 2}), *created(NOW + 1)], None),
        (0, OF_THEN, created(NOW + 1), None),
        (12, OF_THEN, created(NOW + 1), "the log ends at 10, as the topic was created anew at"),
        # Records of a later leader epoch in front of it, which began before or after the commit: the clock of a producer may run ahead.
        (8, TWO_EPOCHS, [*created(NOW - 2), *((NOW - 1, *ELECTED) for _ in range(3))], None),
        (8, TWO_EPOCHS, [*created(NOW - 2), *((NOW + 1, *ELECTED) for _ in range(3))], "THAT IT NEVER READ"),
    ],
)
def test_a_position_that_was_committed_in_an_other_log_of_its_name(tmp_path, offset, records, told, said):
    result = beside_metadata(tmp_path / "now", offset, records=records, told=told)

    assert (said or "") in result.answer.headline
    assert (said is not None) is (result.answer.state in {"wrong-epoch", "past-the-end"})
    assert (said is not None) is bool(result.findings)


@pytest.mark.parametrize("removed_ms", [LATER, NOW - 1])
def test_a_position_in_a_topic_that_was_deleted_is_none_whose_log_is_missing(tmp_path, removed_ms):
    told = [*created(NOW - 2), (removed_ms, "RemoveTopicRecord", {"topic_id": TOPIC_ID})]
    beside_metadata(tmp_path / "now", 8, records=OF_THEN, told=told)
    shutil.rmtree(tmp_path / "now" / "orders-0")
    gone, is_since = groups(tmp_path / "now"), removed_ms > NOW

    assert is_since is ("topic orders was deleted at" in " ".join(map(str, gone.answer.tell)))
    assert is_since is not any("past the end" in one for one in gone.answer.unknown)


@pytest.mark.parametrize(("members", "said"), [(None, "where a reset set it"), (1, "")])
def test_who_set_a_position_past_the_end_is_said_where_no_member_did(tmp_path, members, said):
    result = beside_metadata(tmp_path / "now", 12, records=OF_THEN, told=created(NOW - 1), members=members)

    assert said in result.answer.headline
    assert bool(members) is any("they have read records" in one for one in result.answer.tell)


def test_what_became_of_a_position_is_said_without_an_earlier_copy_and_first_where_it_is_asked_for(tmp_path):
    content = commits_of(("payer", 5), ("payer", None), ("other", 3))
    now = log_directory(tmp_path / "now", ("__consumer_offsets-0", content), ("orders-0", OF_THEN))

    assert (
        "The position of payer in orders-0, 5, is gone since"
        in groups(now, groups=frozenset({"payer"})).answer.headline
    )
    unasked = groups(now).answer
    assert (
        "commits of 1 group that is here"
        in unasked.headline.partition("The position of payer in orders-0, 5, is gone")[0]
    )
    assert not unasked.tell
