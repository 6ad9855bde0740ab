"""`transactions` where the coordinators lost what they had decided, or can't decide: zombies, no leader, an unclean election of `__transaction_state`."""

import json
import re

import pytest

from kforensics.ask.model import Ask
from kforensics.commands.transactions import run

RECORDINGS = ("coordinator-lost-2.8", "coordinator-lost-4.1")
MOMENTS = {
    "zombie": "01-zombie-live",
    "late-ongoing": "02-late-ongoing",
    "late-ended": "03-late-ended-live",
    "half-committed": "04-half-committed",
    "after-unclean": "06-after-unclean-live",
}


def opened(*paths, **options):
    result = run(Ask(paths=paths, jobs=1, **options))
    found = {
        (str(p.topic_partition), one.judgement.transactional_id): (one, result.body.ending(p, one).to_end_it)
        for p in result.body.partitions
        for one in p.open
    }
    return result, found


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some(3)
def test_last_stable_offsets_and_states_are_those_of_the_brokers(coordinators, name, moment):
    root = coordinators(name)
    truth = json.loads((root / "oracle" / f"transactions-{moment}.json").read_text())

    result, found = opened(root / "snapshots" / MOMENTS[moment], all=True)

    ends = re.findall(r"(\S+)=(\d+)", truth["read_committed ends"])
    assert ends
    for partition, end in ends:
        replicas = [one for one in result.body.partitions if str(one.topic_partition) == partition]
        led = [one for one in replicas if one.leads is True] or replicas
        assert int(end) in {one.last_stable_offset for one in led}, partition
    states = dict(re.findall(r"^(\S+)\s+\d+\s+\d+\s+(\w+)", truth.get("list", ""), re.MULTILINE))
    for (_, who), (one, _) in found.items():
        assert states.get(who) in {None, one.judgement.coordinator_state}


@pytest.mark.parametrize("name", RECORDINGS)
def test_records_of_a_zombie_hang_and_those_of_a_producer_that_goes_on_do_not(coordinators, name):
    _, found = opened(coordinators(name) / "snapshots" / "01-zombie-live")

    assert {key: str(one.judgement.verdict) for key, (one, _) in found.items()} == {
        ("orders-0", "zombie"): "hanging",
        ("orders-1", "again"): "in-time",
    }
    assert "--start-offset 10" in found["orders-0", "zombie"][1]


@pytest.mark.parametrize("name", RECORDINGS)
def test_beyond_its_timeout_without_a_coordinator_a_transaction_is_unexplained(coordinators, name):
    root = coordinators(name)
    truth = json.loads((root / "oracle" / "transactions-late-ongoing.json").read_text())
    snapshot = root / "snapshots" / "02-late-ongoing"

    _, now = opened(snapshot)
    _, later = opened(snapshot, at_ms=truth["t_ms"] + 10 * 60_000)

    ((key, (one, _)),) = ((key, one) for key, one in now.items() if key[0] == "on-2-0")
    assert (str(one.judgement.verdict), one.judgement.confidence) == ("in-time", "likely")
    assert str(later[key][0].judgement.verdict) == "unknown"
    assert "has no leader" in later[key][0].judgement.reason


@pytest.mark.parametrize(("name", "logs"), [("coordinator-lost-2.8", True), ("coordinator-lost-4.1", False)])
def test_a_commit_that_the_coordinator_lost_is_torn_between_partitions(coordinators, name, logs):
    root = coordinators(name)
    before, found = opened(root / "snapshots" / "04-half-committed")
    result, after = opened(root / "snapshots" / "99-final", *([root / "logs"] if logs else []))

    one, ending = after["on-2-0", "half-0"]
    assert (str(one.judgement.verdict), one.judgement.confidence) == ("torn", "likely")
    assert (one.open.first_offset, one.open.last_offset, one.judgement.coordinator_state) == (15, 19, "Ongoing")
    assert "its commit marker is at offset 17 of on-1-0" in one.judgement.reason
    assert ending.startswith("its coordinator, with an abort marker: copy the 5 records at offsets 15..19")
    assert "1 torn" in result.answer.headline
    assert [(one.code, f"{one.topic}-{one.partition}") for one in result.findings] == [
        ("KF601", "on-1-0"),
        ("KF602", "on-2-0"),
        ("KF601", "orders-0"),
    ]
    assert [one.code for one in before.findings] == ["KF601", "KF604"]
    # While the coordinator still had the decision, it was only to be carried out.
    assert str(found["on-2-0", "half-0"][0].judgement.verdict) == "prepared"
    assert "torn" not in before.answer.headline


def test_no_abort_is_advised_unasked_where_an_election_took_what_the_coordinator_knew(coordinators):
    root = coordinators("coordinator-lost-4.1")

    _, found = opened(root / "snapshots" / "06-after-unclean-live")
    _, before = opened(root / "snapshots" / "03-late-ended-live")
    _, during = opened(root / "snapshots" / "05-old-coordinator-down")

    one, ending = found["on-1-0", "lost-0"]
    assert str(one.judgement.verdict) == "hanging"
    assert ending.startswith("first ask its application whether it was committed, since __transaction_state-1 lost")
    assert before["orders-0", "zombie"][1].startswith("kafka-transactions.sh")
    # Until the old leader is back, its log may still have what the new one lacks.
    assert str(during["on-1-0", "lost-0"][0].judgement.verdict) == "unknown"
