import base64
import json
import os
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics import __version__
from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Absent, BitFlip, Damage, DamageKind, Span
from kforensics.evidence.model import Citation, Input, Problem
from kforensics.evidence.plain import to_plain
from kforensics.findings.answers.model import Answer, State
from kforensics.findings.model import Severity
from kforensics.render.json.document import document, json_line
from kforensics.units import EpochEntry, OffsetRange, TopicPartition
from tests.builders.findings import finding


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Absent.NOT_WRITTEN, None),
        (
            {"a": Absent.UNKNOWN, "b": Absent.NOT_APPLICABLE, "c": None, "d": [Absent.UNKNOWN]},
            {"a": None, "b": None, "c": None, "d": [None], "absent": {"a": "unknown"}},
        ),
        (None, None),
        (True, True),
        (2**63, 2**63),
        (1.5, 1.5),
        ("orders", "orders"),
        (b"\x00\xff", {"base64": "AP8="}),
        (bytearray(b"a"), {"base64": "YQ=="}),
        (memoryview(b"a"), {"base64": "YQ=="}),
        (Severity.NOTE, "note"),
        (Level.HIGH, 3),
        (Path("a/b"), "a/b"),
        (EpochEntry(3, 60), [3, 60]),
        (OffsetRange(1, 2), {"first": 1, "last": 2}),
        (BitFlip(200, 3, 0xE8, 0xEC), {"position": 200, "bit": 3, "found": 232, "expected": 236}),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([1, 2]), [1, 2]),
        (frozenset({3, 1}), [1, 3]),
        ((1, (2,)), [1, [2]]),
        ({TopicPartition("a", 1): 2, "b": b""}, {'{"topic": "a", "partition": 1}': 2, "b": {"base64": ""}}),
        (iter([1]), [1]),
        (
            Citation(input=0, path="orders-0", span=Span(8192, 61)),
            {"input": 0, "path": "orders-0", "position": 8192, "length": 61, "line": None},
        ),
        (
            Problem(input=1, path="x", message="gone"),
            {"input": 1, "path": "x", "position": None, "message": "gone"},
        ),
    ],
)
def test_forms(value, plain):
    assert to_plain(value) == plain


def test_a_dataclass_is_its_fields():
    damage = Damage(span=Span(1, 2), kind=DamageKind.CRC, expected="a", found="b")

    plain = to_plain(damage)

    assert plain["span"] == {"position": 1, "length": 2}
    assert plain["kind"] == "crc"
    assert plain["offsets_lost"] is None


def test_a_name_that_is_no_text_keeps_its_bytes():
    raw = b"caf\xe9\x1b.log"

    assert to_plain(os.fsdecode(raw)) == {"base64": base64.b64encode(raw).decode()}
    assert to_plain("\ud800") == {"base64": base64.b64encode(b"\xed\xa0\x80").decode()}


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.binary()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_lines_are_ascii_and_lose_nothing(value):
    line = json_line(value)

    assert line.isascii()
    assert line.count("\n") == 1
    assert "\x1b" not in line
    assert json.loads(line) == to_plain(value)


def test_what_has_no_form_is_a_defect():
    with pytest.raises(TypeError, match="object"):
        to_plain(object())


def test_the_document():
    found = finding(
        "KF502",
        severity=Severity.ERROR,
        statement="orders-0 stands twice",
        topic_partition=TopicPartition("orders", 0),
        citations=(Citation(input=0, path="orders-0"),),
    )

    answer = Answer(state=State.COMPLETE, headline="1 broker.")
    result = Result(
        command="ls",
        inputs=(Input(path="b1", kind="broker", broker_id=1),),
        body=None,
        concluded=Conclusion(answer=answer, findings=(found,)),
    )

    text = "".join(document(result, "ls", {"partitions": []}))

    whole = json.loads(text)
    names = ["schema", "tool_version", "inputs", "partitions", "answer", "findings", "problems", "exit_code"]
    assert list(whole) == names
    assert whole["answer"]["state"] == "complete"
    assert whole["answer"]["headline"] == "1 broker."
    assert whole["schema"] == "kforensics/ls/2"
    assert whole["tool_version"] == __version__
    assert whole["inputs"] == [
        {
            "path": "b1",
            "kind": "broker",
            "broker_id": 1,
            "cluster_id": None,
            "kafka_version_hint": None,
            "absent": {"cluster_id": "unknown", "kafka_version_hint": "unknown"},
        }
    ]
    assert whole["findings"][0]["code"] == "KF502"
    assert whole["findings"][0]["offsets"] is None
    assert whole["exit_code"] == 1
    assert text.endswith("}\n")


def test_a_document_with_streams_is_concluded_when_they_have_been_written():
    problem = Problem(input=0, path="x", message="gone")
    read: list[int] = []

    def items():
        for number in range(3):
            read.append(number)
            yield {"offset": number}

    def conclude():
        return Conclusion(
            answer=Answer(state=State.UNKNOWN, headline=f"{len(read)} read."), problems=(problem,) * len(read)
        )

    result = Result(command="dump", body=None, concluded=conclude)
    pieces = document(result, "dump", streams={"items": items(), "none": ()}, after=lambda: {"count": len(read)})

    whole = json.loads("".join(pieces))

    assert whole["items"] == [{"offset": n} for n in range(3)]
    assert whole["none"] == []
    assert (whole["count"], len(whole["problems"]), whole["exit_code"]) == (3, 3, 3)
    assert whole["answer"]["headline"] == "3 read."
