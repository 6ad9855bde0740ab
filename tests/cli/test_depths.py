import json
import shutil

import pytest

import kforensics
from kforensics.cli.app import run
from kforensics.errors import UsageError
from kforensics.evidence.metadata import log as metadata_log
from kforensics.evidence.metadata.log import read_metadata_log
from kforensics.protocol.truncation import ProtocolName
from kforensics.simulation.broker_files import write_cluster
from kforensics.simulation.cluster import random_cluster
from kforensics.source import mapped
from tests import depths
from tests.builders.directories import copied


def document(capsys, *arguments):
    code = run([*map(str, arguments), "--format", "json"])
    return json.loads(capsys.readouterr().out), code


@pytest.fixture
def stopped(tmp_path):
    """A cluster of three brokers that stopped cleanly, with logs of several segments."""
    cluster = random_cluster(4, protocol=ProtocolName.KIP_595, brokers=3, partitions=1, most_steps=200)
    write_cluster(cluster, tmp_path / "cluster", segment_length=150)
    for node in (tmp_path / "cluster").glob("broker-*"):
        (node / ".kafka_cleanshutdown").write_bytes(b"")
        for index in (*node.glob("*/*.index"), *node.glob("*/*.timeindex")):
            # What is preallocated is trimmed at a clean stop.
            length = 8 if index.suffix == ".index" else 12
            used = len(index.read_bytes().rstrip(b"\0"))
            index.write_bytes(index.read_bytes()[: -(-used // length) * length])
    # All replicas are copies of one: nothing speaks against their agreement.
    first = tmp_path / "cluster" / "broker-1" / "orders-0"
    for broker in (2, 3):
        other = tmp_path / "cluster" / f"broker-{broker}" / "orders-0"
        shutil.rmtree(other, ignore_errors=True)
        copied(first, other)
    return tmp_path / "cluster"


@pytest.mark.parametrize("seed", [3, 85, 117])
def test_what_is_counted_is_equal_at_both_depths(seed, tmp_path):
    assert depths.compare_made(seed, tmp_path / "made")[0] == []


@pytest.mark.parametrize("name", ["unclean-election-4.x", "silent-divergence-4.x"])
@pytest.mark.some("silent-divergence-4.x")
def test_a_recording_at_both_depths(name, incident):
    compared = list(depths.compare_recording(incident(name)))
    assert [(name, wrong) for name, wrong, _ in compared if wrong] == []
    assert any(excepted for _, _, excepted in compared) == name.startswith("silent")


@pytest.mark.slow
def test_all_recordings_at_both_depths(fixtures, incident):
    for archive in sorted((fixtures / "incidents").glob("*.tar.xz")):
        for name, wrong, _ in depths.compare_recording(incident(archive.name.removesuffix(".tar.xz"))):
            assert wrong == [], f"{archive.name} {name}"


def test_content_below_the_ends_is_neither_read_nor_called_sound(stopped, capsys):
    logs = sorted((stopped / "broker-2" / "orders-0").glob("*.log"))
    data = bytearray(logs[1].read_bytes())
    data[-1] ^= 1
    logs[1].write_bytes(data)

    content, _ = document(capsys, "diff", stopped)
    ends, _ = document(capsys, "diff", stopped, "--depth", "tails")

    damaged = [one["code"] for one in content["findings"] if one["topic"] == "orders"]
    assert "KF206" in damaged
    assert "KF206" not in [one["code"] for one in ends["findings"]]
    assert ends["answer"]["state"] not in {"agree", "diverged"}
    assert "was not compared" in ends["answer"]["headline"]
    assert any("orders-0 below" in words for words in ends["answer"]["unknown"])
    assert (ends["depth"], content["depth"]) == ("tails", "content")
    assert next(one for one in ends["partitions"] if one["topic"] == "orders")["not_compared_below"] > 0


def test_same_ends_are_not_agreement(stopped, capsys):
    code = run(["diff", str(stopped), "--depth", "tails", "--topic", "orders", "--replicas", "1,2,3"])
    out = " ".join(capsys.readouterr().out.split())

    assert code in {0, 1}
    assert "all replicas agree" not in out.lower().replace("by leader epochs and ends all replicas agree", "")
    assert "was not compared" in out


@pytest.mark.slow
def test_explain_names_what_was_not_read(incident, capsys):
    recording = incident("benign-rolling-restart-4.x")
    paths = (recording / "snapshots" / "99-final", recording / "logs")
    ends, _ = document(capsys, "explain", *paths, "--depth", "tails")
    content, _ = document(capsys, "explain", *paths)

    assert (ends["depth"], content["depth"]) == ("tails", "content")
    assert ends["answer"]["state"] == content["answer"]["state"]
    if ends["answer"]["state"] == "nothing-lost":
        assert "was not read" in ends["answer"]["headline"]
    assert "was not read" not in content["answer"]["headline"]


def test_a_part_of_the_bytes_is_read(stopped, capsys, monkeypatch):
    log = min((stopped / "broker-1" / "orders-0").glob("*.log"))
    read: dict[str, int] = {}
    real = mapped.EvidenceFile.read_into

    def counting(self, position, buffer):
        count = real(self, position, buffer)
        read[str(self.path)] = read.get(str(self.path), 0) + count
        return count

    monkeypatch.setattr(mapped.EvidenceFile, "read_into", counting)
    run(["diff", str(stopped), "--depth", "tails", "--topic", "orders", "--jobs", "1"])
    capsys.readouterr()

    assert read.get(str(log), 0) < log.stat().st_size


@pytest.mark.parametrize("command", ["diff", "explain"])
@pytest.mark.slow
def test_a_person_gets_the_answer_of_the_ends_first(command, incident, capsys, monkeypatch):
    recording = incident("benign-rolling-restart-4.x") / "snapshots" / "99-final"
    run([command, str(recording)])
    whole = capsys.readouterr().out
    read = []

    def counted(files):
        read.append(files)
        return read_metadata_log(files)

    monkeypatch.setattr(metadata_log, "read_metadata_log", counted)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    code = run([command, str(recording), "--color", "never"])
    out = capsys.readouterr().out
    assert len({id(one) for one in read}) == len(read) == len(list(recording.glob("*/__cluster_metadata-0")))

    said = "This is the answer of the ends of the logs. Content, read now, may correct it."
    assert said in out.splitlines()
    assert len(said) <= 80
    first, _, last = out.partition(said)
    assert code == run([command, str(recording), "--depth", "content"])
    assert "was not" in " ".join(first.split())
    assert "confirms the answer:" in last
    assert whole.splitlines()[0] in last.replace("\n", " ") or whole.splitlines()[0] in last
    assert "was not compared" not in last


def test_content_corrects_the_answer(incident, capsys, monkeypatch):
    recording = incident("silent-divergence-4.x") / "snapshots" / "99-final"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    code = run(["diff", str(recording), "--color", "never"])
    first, _, last = capsys.readouterr().out.partition("This is the answer of the ends of the logs.")

    assert code == 1
    assert "REPLICAS DIFFER" not in first
    assert "corrects the answer:" in last
    assert "REPLICAS HAVE DIVERGED and will stay so" in last


def test_other_commands_say_the_same_at_both_depths(stopped, capsys):
    for command in (["ls"], ["predict", "--order", "--kafka", "4.1.0", "--now", "2026-01-01T00:00:00Z"]):
        ends, _ = document(capsys, *command, stopped, "--depth", "tails")
        content, _ = document(capsys, *command, stopped, "--depth", "content")
        assert (ends.pop("depth"), content.pop("depth")) == ("tails", "content")
        if command[0] == "predict":  # what replicas hold below their ends is left open, and alone that
            (left,) = set(ends["answer"]["unknown"]) - set(content["answer"]["unknown"])
            assert "below the ends of their logs" in left
            ends["answer"]["unknown"].remove(left)
        assert ends == content


def test_the_ends_of_many_logs_are_read_before_each_is_looked_at(stopped, capsys, monkeypatch):
    waited: list[str] = []
    real = mapped.HeldRanges.find

    def noting(self, path, position, length, version=None):
        found = real(self, path, position, length, version)
        if found is None and length and "/orders-0/" in path:
            waited.append(path)
        return found

    monkeypatch.setattr(mapped.HeldRanges, "find", noting)
    run(["diff", str(stopped), "--depth", "tails", "--topic", "orders", "--jobs", "1"])
    capsys.readouterr()

    assert waited == []


@pytest.mark.slow
def test_commits_that_are_left_out_at_the_ends_are_named(incident, monkeypatch):
    recording = incident("consumer-ahead-4.x") / "snapshots" / "99-final"
    left_out = "Which other records consumers show to be committed: the logs of __consumer_offsets are "
    monkeypatch.setattr("kforensics.case.cluster.MOST_COMMITS", 100)
    for command in (kforensics.diff, kforensics.explain):
        (said,) = [one for one in command(recording, depth="tails").answer.unknown if one.startswith(left_out)]
        assert "`--depth content` and `fleet audit` read all" in said
        assert not any(one.startswith(left_out) for one in command(recording, depth="content").answer.unknown)
    monkeypatch.undo()
    for command in (kforensics.diff, kforensics.explain):
        assert not any(one.startswith(left_out) for one in command(recording, depth="tails").answer.unknown)


def test_functions_take_a_depth(stopped):
    ends = kforensics.diff(stopped, depth="tails", topics=["orders"])
    assert ends.body.depth == "tails"
    assert ends.answer.state != "agree"
    assert kforensics.explain(stopped, depth="tails").body.depth == "tails"
    with pytest.raises(UsageError, match="--depth is one of tails, content, not deep"):
        kforensics.diff(stopped, depth="deep")
