"""Time indexes that make a segment older than its records: no start after a clean stop mends them, and retention goes by them."""

import json
from datetime import UTC, datetime

import pytest

from kforensics.cli.app import run
from kforensics.formats.index import TIME_INDEX_LAYOUT
from kforensics.formats.log.batches import build_record_batch, encode_record_batch

DAY_MS = 86_400_000
NOW = "2025-06-10T00:00:00Z"
NOW_MS = int(datetime(2025, 6, 10, tzinfo=UTC).timestamp() * 1000)
WEEK = ["--set", f"log.retention.ms={7 * DAY_MS}"]
SEGMENTS = ((0, 12 * DAY_MS), (4, 2 * DAY_MS), (8, DAY_MS), (12, 0))
"""Base offset and age; four records each."""


def _times(age, entries):
    return b"".join(TIME_INDEX_LAYOUT.struct.pack(NOW_MS - age, 3) for _ in range(entries))


@pytest.fixture
def log_dir(tmp_path):
    """A broker that was stopped cleanly; `wrong` names the segments whose time indexes end in zeros, with the entries before them."""

    def make(wrong):
        folder = tmp_path / "data" / "clicks-0"
        folder.mkdir(parents=True)
        for base, age in SEGMENTS:
            times = [(NOW_MS - age, b"k", b"v")] * 4
            (folder / f"{base:020d}.log").write_bytes(encode_record_batch(build_record_batch(base, times)))
            (folder / f"{base:020d}.index").write_bytes(b"")
            entries = wrong.get(base)
            zeros = b"" if entries is None else bytes(24)
            (folder / f"{base:020d}.timeindex").write_bytes(_times(age, 1 if entries is None else entries) + zeros)
        data = folder.parent
        (data / "meta.properties").write_text("version=0\nbroker.id=1\n")
        (data / ".kafka_cleanshutdown").touch()
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            (data / name).write_text("0\n1\nclicks 0 16\n")
        return data

    return make


def _json(capsys, *arguments):
    code = run([*map(str, arguments), "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("entries", [0, 1])
@pytest.mark.parametrize("kafka", ["2.4", "3.6"])
def test_retention_of_records_that_are_not_old_is_a_loss(entries, kafka, log_dir, capsys):
    data = log_dir({4: entries, 8: entries})

    code, document = _json(capsys, "predict", data, "--kafka", kafka, "--now", NOW, *WEEK)

    [log] = document["logs"]
    assert (code, document["answer"]["state"]) == (1, "loses")
    assert log["retention"]["segments"] == [0, 4, 8]
    assert log["retention"]["misdated"] == [4, 8], "the first one is old by its records, too"
    assert "2 segments of records that are not old" in document["answer"]["headline"]
    assert "discards no record" not in document["answer"]["headline"]
    assert "1970" in " ".join(document["answer"]["now"])


def test_of_settings_that_are_not_known_the_answer_is_open(log_dir, capsys):
    code, document = _json(capsys, "predict", log_dir({4: 0}), "--kafka", "2.4", "--now", NOW)

    assert (code, document["answer"]["state"]) == (3, "unknown")


def test_retention_by_right_indexes_is_as_before(log_dir, capsys):
    code, document = _json(capsys, "predict", log_dir({}), "--kafka", "2.4", "--now", NOW, *WEEK)

    [log] = document["logs"]
    assert code == 0
    assert (log["retention"]["segments"], log["retention"]["misdated"]) == ([0], [])


@pytest.mark.parametrize("entries", [0, 1])
def test_no_start_is_said_to_rebuild_them(entries, log_dir, capsys):
    data = log_dir({4: entries})

    assert run(["verify", str(data)]) == 1
    shown = capsys.readouterr().out
    assert "00000000000000000004.timeindex" in shown
    assert "rebuilt" not in shown
