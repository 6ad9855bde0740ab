"""`kforensics verify` as an operator and as a program see it."""

import json
import shutil

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied

FIRST = "00000000000000000000"


@pytest.fixture
def verify(capsys):
    def call(*arguments):
        code = run(["verify", *map(str, arguments)])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return call


@pytest.fixture
def verified(verify):
    def call(*arguments):
        code, out, err = verify(*arguments, "--format", "json")
        assert err == ""
        document = json.loads(out)
        assert document["exit_code"] == code
        assert document["schema"] == "kforensics/verify/2"
        return code, document

    return call


def damaged(document):
    return [row for row in document["files"] if row["state"] == "damaged"]


def test_a_flipped_bit_is_found_explained_and_another_replica_named(incident, verified, untouched):
    snapshot = incident("silent-divergence-4.x") / "snapshots" / "99-final"
    with untouched(snapshot):
        code, document = verified(snapshot / "broker-1", snapshot / "broker-2")
    assert code == 1
    (row,) = damaged(document)
    assert (row["input"], row["path"], row["kind"]) == (1, "audit-0/00000000000000000040.log", "segment")
    (place,) = row["damage"]
    assert (place["position"], place["length"], place["kind"], place["gravity"]) == (4559, 1485, "crc", "damage")
    assert place["offsets_lost"] == {"first": 58, "last": 63}
    assert place["next_good"] == {"offset": 64, "position": 6044}
    assert (place["cause"]["kind"], place["cause"]["position"], place["cause"]["bit"]) == ("bit-flip", 4720, 2)
    assert place["intact_on"] == [1]
    assert place["intact_in"] == [{"input": 0, "path": "audit-0"}]
    (finding,) = [one for one in document["findings"] if one["severity"] == "error"]
    assert (finding["code"], finding["topic"], finding["partition"], finding["broker_id"]) == ("KF101", "audit", 0, 2)
    assert finding["citations"][0]["position"] == 4559


def test_who_holds_a_range_intact_at_several_moments_is_named_once(incident, verified, tmp_path):
    snapshot = incident("silent-divergence-4.x") / "snapshots" / "99-final"
    copied(snapshot / "broker-1" / "audit-0", tmp_path / "broker-1" / "audit-0")
    shutil.copy(snapshot / "broker-1" / "meta.properties", tmp_path / "broker-1")

    _, document = verified(snapshot / "broker-1", snapshot / "broker-2", tmp_path / "broker-1")

    (place,) = next(row for row in damaged(document) if row["kind"] == "segment")["damage"]
    assert place["intact_on"] == [1]
    assert [one["input"] for one in place["intact_in"]] == [0, 2]
    assert "Held intact by broker 1: keep" in document["answer"]["now"][0]


def test_the_first_line_is_the_answer(incident, verify):
    snapshot = incident("silent-divergence-4.x") / "snapshots" / "99-final"
    code, out, err = verify(snapshot)
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert lines[0] == "1 of 200 files is damaged: 6 offsets (58..63) of audit-0 can't be read."
    assert lines[1].startswith("NOW          Held intact by broker 1")
    assert "next good   offset 64 at byte 6044" in out
    assert max(map(len, lines)) <= 80


def test_a_sound_broker_is_one_line(incident, verify, untouched):
    broker = incident("silent-divergence-4.x") / "snapshots" / "99-final" / "broker-1"
    with untouched(broker):
        code, out, err = verify(broker)
    assert (code, err) == (0, "")
    assert out.startswith("Sound: ")
    assert out.count("\n") == 1


def test_quiet_says_it_with_the_exit_code(incident, verify):
    snapshot = incident("silent-divergence-4.x") / "snapshots" / "99-final"
    for broker, code in (("broker-1", 0), ("broker-2", 1)):
        quiet = verify("-q", snapshot / broker)
        assert quiet == (code, " ".join(quiet[1].split()) + "\n", "")
        assert verify(snapshot / broker)[1].split()[:3] == quiet[1].split()[:3]
    assert verify("-q", "--format", "json", snapshot / "broker-1")[0] == 2


def test_a_crash_leaves_notes_and_exit_code_0(incident, verified):
    snapshot = incident("hw-divergence-0.10") / "snapshots" / "02-after-power-loss"
    code, document = verified(snapshot)
    assert code == 0
    assert {row["state"] for row in document["files"]} == {"intact", "torn-tail"}
    assert {one["severity"] for one in document["findings"]} == {"note"}


def test_two_histories_in_one_log(incident, verified, verify):
    snapshot = incident("fast-failover-1.1") / "snapshots" / "99-final"
    code, document = verified(snapshot)
    assert code == 1
    assert damaged(document) == []
    assert "KF113" in {one["code"] for one in document["findings"]}
    assert "holds two histories" in " ".join(verify(snapshot)[1].split())


@pytest.mark.parametrize("level", ["headers", "crc", "records"])
@pytest.mark.some(2)
def test_levels_and_jobs_agree_on_a_sound_broker(incident, verified, level):
    broker = incident("silent-divergence-4.x") / "snapshots" / "99-final" / "broker-1"
    documents = [verified(broker, "--level", level, "--jobs", jobs)[1] for jobs in (1, 3)]
    assert documents[0] == documents[1]
    assert documents[0]["totals"]["states"]["damaged"] == 0


def test_headers_do_not_see_a_flipped_payload_bit(incident, verify):
    snapshot = incident("silent-divergence-4.x") / "snapshots" / "99-final"
    assert verify("-q", snapshot, "--level", "headers")[0] == 0
    assert verify("-q", snapshot, "--level", "crc")[0] == 1


def test_json_lines(incident, verify):
    snapshot = incident("silent-divergence-4.x") / "snapshots" / "99-final"
    code, out, _ = verify(snapshot, "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [row["type"] for row in rows if row["type"] != "file"] == [
        "answer",
        "input",
        "input",
        "input",
        "finding",
        "totals",
    ]
    assert rows[-1]["exit_code"] == 1


def test_what_can_t_be_read_makes_the_look_incomplete(incident, tmp_path, verified, verify):
    source = incident("silent-divergence-4.x") / "snapshots" / "99-final" / "broker-1"
    broker = tmp_path / "broker"
    broker.mkdir()
    shutil.copy(source / "meta.properties", broker)
    copied(source / "audit-0", broker / "audit-0")
    (broker / "audit-0" / f"{FIRST}.index").unlink()
    (broker / "audit-0" / f"{FIRST}.index").symlink_to("/dev/zero")
    code, document = verified(broker)
    assert code == 3
    assert document["problems"][0]["path"] == f"audit-0/{FIRST}.index"
    words = " ".join(verify(broker)[1].split())
    assert words.startswith("Incomplete: 1 thing could not be read; of 23 files that could, 22 are sound")
    assert f"not read: {broker}/audit-0/" in words


def test_several_places_of_several_files(incident, tmp_path, verify):
    source = incident("silent-divergence-4.x") / "snapshots" / "99-final" / "broker-1"
    broker = tmp_path / "broker"
    copied(source, broker)
    for path in broker.glob("audit-*/*.log"):
        data = bytearray(path.read_bytes())
        for position in range(80, len(data), 700):
            data[position] ^= 0xFF
        path.write_bytes(data)
    (broker / "audit-0" / "evil\x1b[2J\u202e.txt").write_bytes(b"")
    code, out, _ = verify(broker)
    assert code == 1
    assert "more places" in out
    assert "\x1b" not in out
    assert "\u202e" not in out


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_nothing_to_verify(tmp_path, verify, name):
    (tmp_path / "empty").mkdir()
    code, out, err = verify(tmp_path / name)
    assert (code, out) == (3, "")
    assert name in err
    assert verify("--level", "deep", tmp_path)[0] == 2
    assert verify("--format", "metrics", tmp_path)[0] == 2


def test_damage_that_the_next_start_would_truncate_is_reported_as_such(incident, verified):
    snapshots = incident("power-cut-2.8") / "snapshots"
    damaged = [one for one in verified(snapshots / "02-after-power-loss")[1]["findings"] if one["code"] == "KF101"]
    assert [(one["topic"], one["partition"], one["offsets"]["first"]) for one in damaged] == [("readings", 4, 893)]
    assert "next start truncates the log here" in damaged[0]["meaning"]
    assert damaged[0]["advice"] == "Copy this directory before the broker starts again."
    # What the broker did: it truncated the log there, and wrote other batches from that offset on.
    after = verified(snapshots / "03-after-recovery-live")[1]
    assert not [one for one in after["findings"] if one["code"] == "KF101"]


@pytest.mark.slow
def test_who_led_a_damaged_partition_is_said_by_metadata_and_by_log_files(incident, tmp_path, verified):
    """Consumers read from the leader: damage on a follower was not served."""
    for name, partition, words in (
        ("unclean-election-4.x", "orders-1", "; broker 3 led the partition last, in leader epoch 4"),
        ("unclean-election-2.8", "orders-1", "led the partition last, in leader epoch"),
    ):
        root = incident(name)
        copied(root / "snapshots" / "99-final" / "broker-1", tmp_path / name / "broker-1")
        log = next((tmp_path / name / "broker-1").rglob(f"{partition}/*.log"))
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 1
        log.write_bytes(data)

        code, document = verified(tmp_path / name / "broker-1", *sorted((root / "logs").iterdir()))

        (damage,) = [one for one in document["findings"] if one["code"] == "KF101"]
        assert code == 1
        assert words in damage["statement"]
        assert len(damage["citations"]) == 2
        # Broker logs are no files of a data directory: they are neither damaged nor in the way.
        assert document["answer"]["headline"].startswith("1 of ")
        assert document["problems"] == []
