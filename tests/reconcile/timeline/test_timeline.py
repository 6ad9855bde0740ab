"""The order of events, the clocks behind it, and truncations told by log lines, against recordings and made-up logs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.reconcile.observed.broker_log_facts import facts_from_logs
from kforensics.reconcile.observed.clocks import Clock, choose_clocks, clocks_that_disagree, parse_zone
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.observed.logged_events import order_events
from kforensics.reconcile.observed.logged_leaderships import logged_leaderships
from kforensics.reconcile.observed.logged_truncations import logged_truncations
from kforensics.reconcile.timeline.events import build_timeline
from kforensics.units import TopicPartition
from tests.builders.history import log_file, logged_events, read_logs

HOUR_MS = 3_600_000
ORDERS = TopicPartition("orders", 0)
TRUNCATED_BY_LINES = (
    "consumer-ahead-4.x",
    "epoch-truncate-2.8",
    "epoch-truncate-3.9",
    "fast-failover-1.1",
    "fast-failover-2.x",
    "hw-loss-0.10",
    "power-loss-4.x",
    "reassignment-jbod-2.8",
    "unclean-election-2.8",
    "unclean-election-4.x",
)


def log(*lines: str, node: int = 1, mtime_ns: int = 0) -> LogFile:
    file = log_file("".join(f"[2024-05-01 {line} (x)\n" for line in lines), node=node, mtime_ns=mtime_ns)
    assert len(lines) == sum(1 + event.repeats for event in file.events)
    return file


def find_truncations(*files: LogFile):
    return logged_truncations(order_events(files, choose_clocks(files, {})))


BY_CHECKSUM = {"power-loss-4.x": {(broker, ("ledger", 2), 91, 90) for broker in (1, 2)}}
"""Of these lines name one offset alone; that a batch was there at least they say by its checksums."""


@pytest.mark.parametrize("name", TRUNCATED_BY_LINES)
@pytest.mark.some(3)
def test_every_truncation_of_a_recording_with_both_its_offsets(name, incident):
    root: Path = incident(name)
    checks = json.loads((root / "checks.json").read_text())["explain"]
    truncations = find_truncations(*read_logs(root / "logs"))

    wanted = {
        (t["broker_id"], (t["topic"], t["partition"]), t["from_offset"], t["to_offset"]) for t in checks["truncations"]
    }
    found = {
        (truncation.broker_id, truncation.topic_partition, truncation.from_offset, truncation.to_offset)
        for truncation in truncations
        if truncation.has_effect is True
    }
    assert wanted | BY_CHECKSUM.get(name, set()) == found


def test_after_a_start_a_broker_follows_none_that_its_lines_named_before():
    """Brokers before 2.4 log no line at INFO when they become followers."""
    led = "Partition [orders,0] on broker 1: orders-0 starts at Leader Epoch 4 from offset 20. Previous Leader Epoch was: 3"
    loaded = "Completed load of log orders-0 with 1 log segments, log start offset 0 and log end offset 27 in 35 ms"
    lines = (led, "Truncating log orders-0 to offset 20.")
    (on,), (again,) = (logged_truncations(logged_events(*given)) for given in (lines, (led, loaded, lines[1])))

    assert (1, 4) == (on.leader, on.leader_epoch)
    assert (Absent.UNKNOWN, Absent.UNKNOWN, 27) == (again.leader, again.leader_epoch, again.from_offset)


def test_a_file_that_is_being_written_follows_those_rotated_out_of_it_though_the_clock_went_back():
    started = "INFO [KafkaServer id=1] started (kafka.server.KafkaServer)"
    rotated = replace(log(f"12:00:00,000] {started}"), location="/logs/server.log.1.gz")
    written = replace(log(f"11:00:00,000] {started}", f"11:00:20,000] {started}"), location="/logs/server.log")
    others = [replace(written, location=place) for place in ("/logs/server.log.bak", "/copy/server.log")]
    clocks = [Clock(shift_ms=0, source="assumed")] * 2

    def order(*files):
        return [event.file.location for event in order_events(files, clocks)]

    # The files may be given singly: then each is an input of its own.
    for one in (written, replace(written, input=1)):
        assert [rotated.location, *[one.location] * 2] == order(one, rotated)
    for other in others:
        assert [*[other.location] * 2, rotated.location] == order(other, rotated)

    def began(*files):
        return facts_from_logs(order_events(files, clocks), ClusterFacts()).first_line_times()[1]

    assert began(written, rotated) is Absent.UNKNOWN
    assert isinstance(began(others[0], rotated), int)


@pytest.mark.parametrize("name", ["fast-failover-1.1", "unclean-election-2.8", "unclean-election-4.x", "hw-loss-0.10"])
@pytest.mark.some(2)
def test_unclean_elections_show_in_the_logs_of_any_era(name, incident):
    root: Path = incident(name)
    truth = json.loads((root / "incident.json").read_text())["truth"]["unclean_elections"]
    files = read_logs(root / "logs")
    states = logged_leaderships(order_events(files, choose_clocks(files, {})))
    timeline = build_timeline((), (), states)

    elected = {
        (entry.topic_partition, entry.leader_epoch, entry.broker_id)
        for entry in timeline
        if entry.kind == "unclean-election"
    }
    assert {
        ((e["topic"], e["partition"]), e.get("leader_epoch", e.get("epoch")), e.get("leader", e.get("new_leader")))
        for e in truth
    } == elected


def test_a_recording_where_nothing_happened_has_no_truncation(incident):
    files = read_logs(incident("benign-rolling-restart-4.x") / "logs")
    events = order_events(files, choose_clocks(files, {}))
    truncations = logged_truncations(events)
    timeline = build_timeline(events, truncations, facts_from_logs(events, ClusterFacts()).by_partition)

    assert [] == [truncation for truncation in truncations if truncation.has_effect is True]
    assert [] == [
        entry for entry in timeline if entry.kind in {"truncation", "unclean-election"} and not entry.is_quiet
    ]
    assert 23 == sum(truncation.has_effect is False for truncation in truncations)
    times = [entry.time_ms for entry in timeline if isinstance(entry.time_ms, int)]
    assert sorted(times) == times


def test_a_line_without_effect_and_one_whose_effect_is_unknown():
    [no_effect] = find_truncations(
        log(
            "12:00:00,000] INFO Completed load of log orders-0 with 1 log segments and log end offset 60 in 28 ms",
            "12:00:01,000] INFO Truncating log orders-0 to offset 60.",
        )
    )
    [unknown] = find_truncations(log("12:00:01,000] INFO Truncating log orders-0 to offset 60."))

    assert (False, Absent.UNKNOWN) == (no_effect.has_effect, unknown.has_effect)


def test_two_truncations_within_a_moment_are_two():
    truncations = find_truncations(
        log(
            "12:00:00,000] INFO Completed load of log orders-0 with 1 log segments and log end offset 60 in 28 ms",
            "12:00:01,000] INFO Truncating log orders-0 to offset 58.",
            "12:00:01,004] WARN [ReplicaFetcherThread-0-2], Replica 1 for partition [orders,0] reset its fetch offset from 58"
            " to current leader 2's latest offset 45",
            "12:00:01,004] INFO Truncating log orders-0 to offset 45.",
        )
    )

    assert [(60, 58), (58, 45)] == [(truncation.from_offset, truncation.to_offset) for truncation in truncations]
    assert ("leader-end", 2) == (truncations[1].rule, truncations[1].leader)


def test_a_full_truncation_starts_again_above():
    [truncation] = find_truncations(
        log(
            "12:00:00,000] WARN [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncate fully and reset fetch offset"
            " for partition orders-0 from 100 to the current leader's start offset 150 because the local replica's end"
            " offset is smaller than the current leader's start offsets."
        )
    )

    assert (100, 150, True, True) == (
        truncation.from_offset,
        truncation.to_offset,
        truncation.is_full,
        truncation.has_effect,
    )


LEADS = "INFO [Broker id={0}] Leader orders-0 starts at leader epoch {1} from offset 0 with high watermark 0 ISR [1] addingReplicas [] removingReplicas []. Previous leader epoch was 0."


def test_the_zone_of_a_log_comes_from_epochs_that_the_metadata_dates():
    file = log(*(f"{11 + epoch}:00:00,500] " + LEADS.format(1, epoch) for epoch in range(1, 4)))
    noon_utc = 1_714_564_800_000
    dated = {(ORDERS, epoch): noon_utc + (epoch - 1) * HOUR_MS - 2 * HOUR_MS for epoch in range(1, 4)}
    [clock] = choose_clocks([file], dated)

    assert (-2 * HOUR_MS, "metadata", 0) == (clock.shift_ms, clock.source, clock.skew_ms)
    assert [noon_utc - 2 * HOUR_MS + 500] == clock.times_of(file.events[:1])


def test_a_clock_that_disagrees_is_aligned_and_named():
    lines = [f"{hour}:00:00,000] " for hour in range(12, 16)]
    good = log(*(line + LEADS.format(1, number) for number, line in enumerate(lines)))
    late = log(
        *(line.replace(":00:00,000", ":01:00,000") + LEADS.format(2, number) for number, line in enumerate(lines)),
        node=2,
    )
    dated = {
        (ORDERS, number): event.time_ms for number, event in enumerate(good.events) if isinstance(event.time_ms, int)
    }
    clocks = choose_clocks([good, late], dated)

    assert [0, -60_000] == [clock.shift_ms for clock in clocks]
    assert {2: -60_000} == clocks_that_disagree([good, late], clocks)
    # Its broker came back late after the first epoch: no line is written before its epoch begins.
    in_time = [one if at else one._replace(time_ms=good.events[0].time_ms) for at, one in enumerate(late.events)]
    [clock] = choose_clocks([replace(late, events=tuple(in_time))], dated)
    assert (0, "metadata") == (clock.shift_ms, clock.source)


def test_times_are_not_shifted_to_make_lines_of_another_cluster_fit():
    """Partitions and epochs of the same names, made by the same script an hour and some minutes later."""
    lines = [f"{hour}:00:00,000] " for hour in range(12, 16)]
    good = log(*(line + LEADS.format(1, number) for number, line in enumerate(lines)))
    other = log(
        *(line.replace(":00:00,000", ":07:12,000") + LEADS.format(2, number + 1) for number, line in enumerate(lines)),
        node=2,
    )
    dated = {
        (ORDERS, number): event.time_ms for number, event in enumerate(good.events) if isinstance(event.time_ms, int)
    }

    clocks = choose_clocks([good, other], dated)

    assert [0, 0] == [clock.shift_ms for clock in clocks]
    assert {} == clocks_that_disagree([good, other], clocks)


def test_the_option_outranks_all_evidence_and_utc_is_assumed_without_any():
    file = log("12:00:01,000] INFO Truncating log orders-0 to offset 60.")

    assert ("assumed", 0) == (choose_clocks([file], {})[0].source, choose_clocks([file], {})[0].shift_ms)
    assert -HOUR_MS == choose_clocks([file], {}, zone=parse_zone("+01:00"))[0].shift_ms


def test_file_times_show_the_zone_if_most_files_agree():
    noon_ns = 1_714_564_800_000_000_000
    files = [
        log(
            "12:00:01,000] INFO Truncating log orders-0 to offset 60.",
            node=node,
            mtime_ns=noon_ns - 3_600_000_000_000 + 2_000_000_000,
        )
        for node in range(3)
    ]

    assert {("file-time", -HOUR_MS)} == {(clock.source, clock.shift_ms) for clock in choose_clocks(files, {})}
    assert {"assumed"} == {clock.source for clock in choose_clocks([replace(files[0])], {})}
    # Files that were rotated or compressed later say nothing where the node's newest one fits.
    rotated = [replace(log("11:40:00,000] INFO Truncating log orders-0 to offset 70.", node=node)) for node in range(3)]
    late = [replace(file, mtime_ns=noon_ns + 9_000_000_000_000) for file in rotated for _ in range(2)]
    assert {("file-time", -HOUR_MS)} == {(one.source, one.shift_ms) for one in choose_clocks([*files, *late], {})}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.sampled_from("LFTRN")), max_size=30))
def test_no_order_of_lines_breaks_the_reading(steps):
    texts = {
        "L": "INFO Completed load of log orders-0 with 1 log segments and log end offset {1} in 2 ms",
        "F": "INFO [Broker id={0}] Follower orders-0 starts at leader epoch {0} from offset {1} with high watermark 0. Previous leader epoch was 0.",
        "T": "INFO Truncating log orders-0 to offset {1}.",
        "R": "WARN Corruption found in segment 0 of log orders-0, truncating to offset {1}",
        "N": "INFO Truncating orders-0 to {1} has no effect as the largest offset in the log is {0}.",
    }
    file = log(*(f"12:00:00,000] {texts[kind].format(node, offset)}" for node, offset, kind in steps))
    truncations = find_truncations(file)
    events = order_events([file], choose_clocks([file], {}))

    for truncation in truncations:
        assert truncation.has_effect is not True or (
            isinstance(truncation.from_offset, int) and truncation.from_offset > truncation.to_offset
        )
    assert len(build_timeline(events, truncations, logged_leaderships(events))) >= len(truncations)
