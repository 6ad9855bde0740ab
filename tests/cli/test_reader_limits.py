"""What lies beyond a limit of kforensics is not read, and is never called damaged."""

import json

import pytest

from kforensics.cli.app import run
from kforensics.formats.columns import record_columns
from kforensics.formats.log import records
from kforensics.formats.primitives import text_lines
from kforensics.formats.primitives.numbers import encode_varint
from tests.trust.hostile import batch_with_body, record, sound_batch, write_partition


def with_headers(count):
    return record(headers=encode_varint(count) + b"\x02a\x01" * count)


@pytest.fixture
def called(capsys):
    def call(*arguments):
        code = run(list(map(str, (*arguments, "--format", "json"))))
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def few_headers(monkeypatch):
    for module in (records, record_columns):
        monkeypatch.setattr(module, "MOST_HEADERS", 3)


def test_more_headers_than_65536_are_read(called, tmp_path):
    write_partition(tmp_path / "in", "t-0", sound_batch(0) + batch_with_body(1, with_headers(100_000)))

    code, document = called("verify", tmp_path / "in")

    assert (code, document["answer"]["state"]) == (0, "sound")
    code, document = called("salvage", tmp_path / "in", "--what", "all", "-o", tmp_path / "out")
    lines = (tmp_path / "out" / "t-0.jsonl").read_text().splitlines()
    assert [len(json.loads(line)["headers"]) for line in lines] == [0, 100_000]


def test_a_record_beyond_the_limit_is_unknown_and_no_damage(called, few_headers, tmp_path):
    data = sound_batch(0) + batch_with_body(1, with_headers(4)) + sound_batch(2)
    write_partition(tmp_path / "in", "t-0", data)

    code, document = called("verify", tmp_path / "in")

    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert {one["code"] for one in document["findings"]} == {"KF114"}
    (problem,) = document["problems"]
    assert "kforensics reads at most 3 headers, and found 4" in problem["message"]
    (segment,) = [one for one in document["files"] if one["kind"] == "segment"]
    assert (segment["state"], [one["gravity"] for one in segment["damage"]]) == ("unreadable", ["unread"])

    code, document = called("salvage", tmp_path / "in", "--what", "all", "-o", tmp_path / "out")
    (gap,) = [one for part in document["partitions"] for one in part["gaps"]]
    assert (gap["offsets"], gap["reason"]) == ({"first": 1, "last": 1}, "not-read")
    assert "damaged bytes" not in document["answer"]["headline"]
    assert "which nothing shows to be damaged" in document["answer"]["headline"]

    code, document = called("dump", tmp_path / "in", "--records")
    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "kforensics reads at most 3 headers" in document["problems"][0]["message"]


def test_a_small_file_beyond_the_limit_is_no_damage_either(called, monkeypatch, tmp_path):
    monkeypatch.setattr(text_lines, "JSON_FILE_LIMIT", 10)
    write_partition(tmp_path, "__cluster_metadata-0", sound_batch(0))
    state = '{"leaderId":1,"leaderEpoch":5,"votedId":-1,"data_version":1}'
    (tmp_path / "__cluster_metadata-0" / "quorum-state").write_text(state)

    code, document = called("verify", tmp_path)

    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert {one["code"] for one in document["findings"]} == {"KF114"}
