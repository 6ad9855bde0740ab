"""`diff` against what the brokers of the recordings did next: their own "Truncating to offset" lines are the truth."""

import json
from pathlib import Path

import pytest

import kforensics
from kforensics.ask.model import Ask
from kforensics.cli.app import run
from kforensics.commands.comparing import compare
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.replicas.report import Verdict
from tests.builders.cases import case_of
from tests.builders.directories import copied

pytestmark = pytest.mark.usefixtures("read_once")

RECORDINGS = sorted(
    p.name.removesuffix(".tar.xz") for p in (Path(__file__).parents[2] / "fixtures" / "incidents").glob("*.tar.xz")
)


@pytest.mark.parametrize("name", RECORDINGS)
def test_diff_predicts_what_the_brokers_did(name, incident):
    root = incident(name)
    for check in json.loads((root / "checks.json").read_text())["diff"]:
        result = _compare(root, check)
        reports = {tuple(report.partition): report for report in result.reports}
        context = f"{name} {check['snapshot']}"

        assert () == result.problems, context
        for expected in check.get("truncations", []):
            report = reports[expected["topic"], expected["partition"]]
            choice = next(w for w in report.what_if if w.leader.replica.broker_id == expected["leader"])
            truncations = {view.replica.broker_id: truncation.offset for view, truncation in choice.truncations}
            assert expected["offset"] == truncations[expected["broker_id"]], (context, expected)
            if expected.get("certain_leader"):
                assert expected["leader"] == report.leader.broker_id, (context, expected)
        for expected in check.get("divergences", []):
            report = reports[expected["topic"], expected["partition"]]
            offsets = {r.divergence.offset for r in report.replicas if r.divergence}
            assert {expected["offset"]} == offsets, (context, expected)
            if expected.get("silent"):
                assert report.verdict is Verdict.SILENT_DIVERGENCE, (context, expected)
        for topic, partition in check.get("equal", []):
            assert [] == [r.divergence for r in reports[topic, partition].replicas if r.divergence], (
                context,
                topic,
                partition,
            )


def _compare(root, check):
    options = check.get("options", [])
    protocol = ProtocolName(options[options.index("--protocol") + 1]) if "--protocol" in options else None
    snapshot = root / "snapshots" / check["snapshot"]
    inputs = find_inputs(sorted(snapshot.iterdir()))
    return compare(case_of(inputs, Ask(protocol=protocol)), keep_quiet=True)


@pytest.mark.parametrize("name", ["benign-rolling-restart-4.x", "all-codecs-4.x"])
def test_recordings_where_nothing_was_lost_come_out_calm(name, incident):
    root = incident(name)
    inputs = find_inputs([root / "snapshots" / "99-final"])

    result = compare(case_of(inputs), keep_quiet=True)

    assert [] == [f.statement for f in result.findings if f.severity.value in {"critical", "error", "warning"}]
    assert all(
        r.truncation is None and not isinstance(r.view.log_end_offset, Absent)
        for p in result.reports
        for r in p.replicas
    )


def test_a_comparison_in_two_processes_is_the_same(incident):
    inputs = find_inputs([incident("unclean-election-4.x") / "snapshots" / "03-old-leader-down-live"])

    one = compare(case_of(inputs))
    several = compare(case_of(inputs, jobs=2))

    assert one.findings == several.findings
    assert [p.verdict for p in one.partitions] == [p.verdict for p in several.partitions]


@pytest.mark.parametrize(
    ("snapshot", "state"),
    [
        ("01-before-live", "behind"),
        ("02-active-controller-killed", "behind"),
        ("03-old-controller-down-live", "uncommitted-only"),
        ("99-final", "behind"),
    ],
)
@pytest.mark.some(2)
def test_what_a_majority_of_the_voters_does_not_hold_is_not_committed(snapshot, state, incident, capsys):
    nodes = sorted(str(path) for path in (incident("kraft-quorum-3x") / "snapshots" / snapshot).iterdir())
    run(["diff", *nodes, "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    run(["metadata", *nodes, "--format", "json"])
    metadata = json.loads(capsys.readouterr().out)

    assert state == document["answer"]["state"]
    assert metadata["answer"]["state"] == "behind"
    assert not [one for one in document["findings"] if one["code"] in {"KF201", "KF202"}]
    assert "RISK" not in document["answer"]["headline"]
    # The topic whose record a minority alone holds was never created.
    assert "phantom-0" not in {part["topic"] for part in document["partitions"]}
    run(["explain", *nodes, "--format", "json"])
    assert "phantom-0" not in json.loads(capsys.readouterr().out)["answer"]["headline"]
    run(["predict", *nodes, "--format", "json"])
    assert "phantom-0" not in str(json.loads(capsys.readouterr().out)["answer"])
    choices = [choice["discarded"] for part in document["partitions"] for choice in part["what_if"]]
    assert choices
    assert not any(counts["certain"] or counts["possible"] for counts in choices)


def test_the_advice_is_one_plan_without_an_order_that_contradicts_itself(incident, capsys):
    snapshot = incident("unclean-election-4.x") / "snapshots" / "03-old-leader-down-live"
    run(["diff", str(snapshot / "broker-1"), str(snapshot / "broker-2"), "--format", "json"])
    answer = json.loads(capsys.readouterr().out)["answer"]

    assert "at-risk" == answer["state"]
    assert "Also orders-2: an election can discard records." in answer["headline"]
    assert not any(line.startswith("Start broker") for line in answer["now"])
    assert 1 == sum(f"cp -a {snapshot / 'broker-1'} " in line for line in answer["now"])
    assert 1 == sum(f"cp -a {snapshot / 'broker-2'} " in line for line in answer["now"])
    # Others went on without it in a later leader epoch: an election that waits for it saves nothing.
    assert not any("while broker 1 is down" in line for line in answer["now"])


@pytest.mark.parametrize(("name", "epoch"), [("unclean-election-4.x", 1), ("unclean-election-2.8", 13)])
@pytest.mark.some(1)
def test_directories_that_are_older_than_the_log_lines_do_not_agree(name, epoch, incident, capsys):
    root = incident(name)
    first = min((root / "snapshots").iterdir())

    # What lines show of truncations before is graver.
    assert 1 == run(["diff", str(first), str(root / "logs"), "--brief"])
    out = capsys.readouterr().out
    assert "were copied before the last metadata records or log lines" in out
    assert f"leader epoch {epoch} of" in out
    # They agree; what an unclean election has lost before is said all the same.
    assert 1 == run(["diff", str(root / "snapshots" / "99-final"), str(root / "logs"), "--brief"])
    out = capsys.readouterr().out
    assert "copied before" not in out
    assert "see `kforensics explain`. " in out


def test_lines_that_are_younger_than_the_directories_name_no_leader_for_certain(incident, capsys):
    root = incident("fast-failover-2.x")
    brokers = str(root / "snapshots" / "03-both-down-b-has-its-own-tail")

    run(["diff", brokers, str(root / "logs" / "broker-1"), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert "maybe-at-risk" == document["answer"]["state"]
    assert {False} == {one["leader"]["is_known"] for one in document["partitions"]}
    assert "log lines name leader epoch 3, later than the directories" in document["answer"]["headline"]


def test_what_lies_on_the_disk_of_a_log_that_ended_later_by_its_lines_does_not_agree(incident, capsys):
    """The disk was put back or copied too early, not that one log."""
    root = incident("recreated-topic-4.x")

    assert 3 == run(["diff", str(root / "snapshots" / "01-before-live"), str(root / "logs"), "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    states = {f"{one['topic']}-{one['partition']}": one["state"] for one in document["partitions"]}
    assert {"agree"} == {states.pop("__cluster_metadata-0"), states.pop("catalog-1")}  # on other disks
    assert {"unknown"} == set(states.values())
    also = "Also inventory-1, oldstuff-1: log lines name offsets past the end of other logs on the same disks."
    assert also in document["answer"]["headline"]


def test_a_log_that_recovery_cuts_before_sound_batches_was_not_copied_before_it_had_them(incident, tmp_path):
    root = incident("kip101-saves-0.11")
    now = [tmp_path / f"broker-{number}" for number in (1, 2)]
    for directory in now:
        copied(root / "snapshots" / "01-a-killed-live" / directory.name, directory)
    with (now[1] / "kafka-logs" / "orders-0" / f"{0:020d}.log").open("r+b") as file:
        file.seek(4035)
        file.write(b"\xff")

    headline = kforensics.diff(*now, root / "logs").answer.headline

    assert headline.startswith("DATA AT RISK: broker 1 will discard 25 committed records")
