"""Files that stand in for others, and those that only look like text."""

import pytest

from kforensics.errors import EvidenceUnreadable
from kforensics.source.mapped import open_evidence, read_evidence
from kforensics.source.naming import HEAD_LENGTH, stand_in

SEGMENT = f"{0:020}.log"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0a" * 32 + b"\nsize 134\n"


def told(name, data):
    return stand_in(name, len(data), data[:8], lambda at, length: data[at : at + length])


@pytest.mark.parametrize("name", [SEGMENT, "meta.properties", "replication-offset-checkpoint", f"{0:020}.index"])
def test_a_pointer_is_one_under_every_name(name):
    assert f"a file of 134 bytes (sha256 {'0a' * 32})" in told(name, POINTER)
    with_extension = POINTER.replace(b"oid", b"ext-0-crypt sha256:1\noid")
    assert "git lfs pull" in told(name, with_extension)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (SEGMENT, b"removed: over 1 GB\n"),
        (SEGMENT, b"<html>\xc3\xa9</html>\n" * 500),
        (f"{7:020}.timeindex", b"Bad Gateway"),
        (f"{7:020}.snapshot", b"Bad Gateway"),
        (f"{7:020}-{1:010}.checkpoint", b"Bad Gateway"),
    ],
)
def test_text_is_no_binary_file(name, data):
    assert "it is text and no" in told(name, data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("server.log", b"[2023-11-15 03:43:20,000] INFO starting (kafka.server.KafkaServer)\n"),
        ("leader-epoch-checkpoint", b"0\n1\n0 0\n"),
        ("meta.properties", b"version=1\nnode.id=1\n"),
        (SEGMENT, bytes(8) + b"a batch"),
        (SEGMENT, b"text over the head of a log" * 60 + bytes(HEAD_LENGTH)),
        (SEGMENT, b"\xff\xfe\xfd damaged"),
        (SEGMENT, b""),
        (SEGMENT, b"version https://git-lfs.github.com/spec/v1\n" + bytes(90)),
    ],
)
def test_nothing_is_said_of_what_may_be_what_its_name_says(name, data):
    assert told(name, data) is None


def test_a_stand_in_is_refused_where_it_is_read_and_hashed_as_it_is(tmp_path):
    path = tmp_path / SEGMENT
    path.write_bytes(POINTER)

    with pytest.raises(EvidenceUnreadable, match="git lfs pull"):
        read_evidence(path, 1 << 20)
    with open_evidence(path) as file:
        assert 64 == len(file.sha256())
        with pytest.raises(EvidenceUnreadable, match="git lfs pull"):
            file.read(0, 61)
