"""What `diff` says of a cluster as a whole, an audit says too: of its metadata quorum, of log directories side by side, and of copies that left out logs."""

import json
import os
import shutil

import pytest

from kforensics.ask.model import Ask
from kforensics.findings.answers.fleet import fleet_answer
from kforensics.findings.answers.model import CALM_OF_DIFF, State
from kforensics.findings.rules.directories import FUTURE_BELOW_START, IN_TWO_LOG_DIRECTORIES, REFUSED_ID
from kforensics.findings.rules.fleet import QUORUM
from kforensics.findings.rules.inputs import REFUSED_START
from kforensics.fleet.summary import summarise
from kforensics.units import Depth
from tests.audits import broken, compared, differences
from tests.builders.coordinators import batch, write_log
from tests.builders.directories import log_dir, two_log_dirs
from tests.conftest import FIXTURES
from tests.fleet.test_keeping import LONG_AGO, settled

DISASTERS = ("brokers-newer", "dynamic-half-done", "majority-emptied", "only-controller-emptied", "voter-restored")


@pytest.mark.parametrize("name", DISASTERS)
@pytest.mark.some(1)
def test_a_quorum_that_can_not_go_on_is_told_as_in_a_comparison(quorums, audit_here, name):
    place = quorums(name) / "before"
    expected = compared(place)

    tables = audit_here(place)

    assert [] == list(differences(expected, tables))
    summary = summarise(tables, most=0)
    answer = fleet_answer(summary)
    (told,) = [one for one in summary.findings if one.code == QUORUM.code]
    assert told.statement in answer.headline
    assert told.statement in expected.answer.headline
    assert {*expected.answer.now} <= {*answer.now}
    assert answer.state not in CALM_OF_DIFF


def test_a_quorum_that_goes_on_is_no_finding(quorums, audit_here):
    assert not any(
        one["code"] == QUORUM.code for one in audit_here(quorums("brokers-newer") / "after").rows("findings")
    )


def test_a_night_in_which_nothing_changed_tells_of_the_quorum_again(quorums, audit_here, tmp_path):
    place = tmp_path / "cluster"
    shutil.copytree(quorums("majority-emptied") / "before", place)
    first, second = (
        summarise(audit_here(place, out=tmp_path / "history", is_history=True, audit_id=night), most=0)
        for night in ("one", "two")
    )

    assert first.quorums == second.quorums
    assert fleet_answer(first).headline == fleet_answer(second).headline
    assert State.MAYBE_AT_RISK is fleet_answer(second).state


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("kind", "recording"),
    [
        ("logs left out", "power-loss-4.x/snapshots/99-final"),
        ("a directory doubled", "reassignment-jbod-2.8/snapshots/99-final"),
        ("a metadata log missing", "kraft-quorum-3x/snapshots/99-final"),
    ],
)
@pytest.mark.some(2)
def test_evidence_that_is_taken_away_or_doubled_is_judged_as_in_a_comparison(
    incident, audit_here, tmp_path, kind, recording, seed
):
    name, _, below = recording.partition("/")
    assert broken(incident(name) / below, tmp_path / "broken", kind, seed)

    assert [] == list(differences(compared(tmp_path / "broken"), audit_here(tmp_path / "broken")))


def test_directories_that_lie_side_by_side_are_no_calm_answer(quorums, audit_here, tmp_path):
    cluster = tmp_path / "cluster"
    first, second = two_log_dirs(quorums("only-controller-emptied") / "before", cluster)
    future = second / "payments-0.0123456789abcdef0123456789abcdef-future"
    shutil.copytree(first / "orders-0", second / "orders-0")
    shutil.copytree(first / "payments-0", future)
    (future / f"{0:020}.log").write_bytes(b"")
    (first / "log-start-offset-checkpoint").write_text("0\n1\npayments 0 3\n")
    mismatch = "Topic Id in memory: 7e5Nh4VXS2Kp2Ypx8hzlvA does not match the topic Id for partition payments-0 provided in the request: {}."
    (cluster / "broker-1" / "server.log").write_text(
        f"[2026-01-05 06:00:00,000] ERROR [Broker id=1] {mismatch.format('oQ3sNqCkTdGgQnS3fJ6bBA')} (state.change.logger)\n"
    )
    expected = compared(cluster)

    tables = audit_here(cluster)

    assert [] == list(differences(expected, tables))
    codes = [FUTURE_BELOW_START.code, IN_TWO_LOG_DIRECTORIES.code, REFUSED_ID.code]
    summary = summarise(tables, most=0)
    assert sorted(codes) == sorted({*codes} & summary.findings_by_code.keys())
    answer = fleet_answer(summary)
    assert all(f"{one.statement[1:]}." in answer.headline for one in expected.findings if one.code in codes[:2])
    assert {*expected.answer.now} <= {*answer.now}


def test_a_broker_that_does_not_start_is_told_as_in_a_comparison_each_night(audit_here, tmp_path):
    """Of the second night one broker's epochs are no numbers, of the third a checkpoint of all its logs; the others' directories are as they were."""
    cluster, history = tmp_path / "cluster", tmp_path / "history"
    shutil.copytree(FIXTURES / "unclean-election", cluster)
    epochs = cluster / "broker-1" / "orders-0" / "leader-epoch-checkpoint"
    points = cluster / "broker-1" / "recovery-point-offset-checkpoint"
    sound = {epochs: epochs.read_text(), points: points.read_text()}
    told = []
    for night, changed in enumerate(({}, {epochs: "0\n1\nx 0\n"}, {points: "0\n1\norders-0\n"}, {}, {})):
        for path, text in {**sound, **changed}.items():
            path.write_text(text)
        settled(cluster)
        for path in (epochs, points):
            os.utime(path, (1_700_000_000 + min(night, 3),) * 2)
        expected = compared(cluster)

        tables = audit_here(cluster, out=history, is_history=True, audit_id=f"night-{night}")

        assert [] == list(differences(expected, tables)), night
        answer = fleet_answer(summarise(tables, most=0))
        assert answer.headline == expected.answer.headline
        assert {*expected.answer.now} <= {*answer.now}
        told.append(REFUSED_START.code in summarise(tables, most=0).findings_by_code)
    assert [False, True, True, False, False] == told


@pytest.mark.parametrize("depth", list(Depth))
def test_a_segment_that_the_next_start_puts_in_place_is_read_as_in_a_comparison(audit_here, tmp_path, depth):
    cluster, options = tmp_path / "cluster", Ask(depth=depth)
    shutil.copytree(FIXTURES / "unclean-election", cluster)
    segment = cluster / "broker-1" / "orders-0" / f"{0:020}.log"
    segment.rename(segment.with_suffix(".log.swap"))
    expected = compared(cluster, options=options)

    assert State.AT_RISK is expected.answer.state
    assert [] == list(differences(expected, audit_here(cluster, options=options)))


@pytest.mark.parametrize("depth", list(Depth))
def test_a_log_begins_where_its_copies_in_remote_storage_do(coordinators, audit_here, tmp_path, depth):
    cluster, options = tmp_path / "cluster", Ask(depth=depth)
    shutil.copytree(coordinators("tiers-3.9") / "snapshots" / "30-copied-again", cluster)
    (epochs,) = cluster.rglob("archive-0/leader-epoch-checkpoint")
    epochs.unlink()
    expected = compared(cluster, options=options)

    tables = audit_here(cluster, options=options)

    assert [] == list(differences(expected, tables))
    (begins,) = [
        one["log_start_offset"]
        for row in tables.rows("partitions")
        if row["topic"] == "archive"
        for one in json.loads(row["report"])["replicas"]
    ]
    assert 0 == begins


@pytest.mark.slow
def test_where_one_log_ends_before_a_logged_offset_no_other_of_its_disk_agrees(audit_here, tmp_path):
    cluster, history = tmp_path / "cluster", tmp_path / "history"
    batches = [batch(at, [(b"k", b"v")]) for at in range(5)]
    places = [log_dir(cluster / f"broker-{number}", number, partitions=()) for number in (1, 2)]
    for place in places:
        (place / "replication-offset-checkpoint").unlink()
        for partition in range(4):
            write_log(place, f"orders-{partition}", (0, b"".join(batches)))
    lines = cluster / "logs" / "broker-1" / "server.log"
    lines.parent.mkdir(parents=True)
    lines.write_text(
        "[2026-01-05 06:00:00,000] INFO [UnifiedLog partition=orders-0, dir=/d] Rolled new log segment at offset 5 in 3 ms. (kafka.log.UnifiedLog)\n"
    )
    options = Ask(replicas=(1, 2))
    states = []
    for night, count in enumerate((5, 3, 5)):
        for place in places:
            (place / "orders-0" / f"{0:020}.log").write_bytes(b"".join(batches[:count]))
        settled(cluster, (1_700_000_000 + night,) * 2)
        for path in cluster.glob("*/orders-[1-3]/*"):
            os.utime(path, LONG_AGO)
        expected = compared(cluster, options=options)

        tables = audit_here(cluster, out=history, is_history=True, audit_id=f"night-{night}", options=options)

        assert [] == list(differences(expected, tables)), night
        states.append([one.state for one in expected.partitions])
    agree, unknown = [State.AGREE] * 4, [State.UNKNOWN] * 4
    assert [agree, unknown, agree] == states
