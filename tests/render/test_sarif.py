"""SARIF against a schema: a closed one of the part that is written, and the one of OASIS where SARIF_SCHEMA names it."""

import json
import os
from pathlib import Path

import jsonschema
import pytest

from kforensics.cli.app import run
from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Span
from kforensics.evidence.model import Citation, Input, Problem
from kforensics.findings.answers.model import Answer, State
from kforensics.findings.model import Severity
from kforensics.render.sarif import write
from kforensics.render.view import View
from kforensics.units import OffsetRange, TopicPartition
from tests.builders.findings import finding

SCHEMAS = [Path(__file__).with_name("sarif-2.1.0-subset.schema.json")]
SCHEMAS += [Path(os.environ["SARIF_SCHEMA"])] if "SARIF_SCHEMA" in os.environ else []

HOSTILE = "a\x1b[2J{0}[click](https://example.org)\u202e\udcff"


def validated(text):
    document = json.loads(text)
    for schema in SCHEMAS:
        jsonschema.validate(document, json.loads(schema.read_text()))
    return document["runs"][0]


def test_a_damaged_recording(incident, capsys):
    evidence = incident("power-cut-2.8") / "snapshots" / "02-after-power-loss"
    code = run(["verify", str(evidence), "--format", "sarif"])
    log = validated(capsys.readouterr().out)
    run(["verify", str(evidence), "--format", "json"])
    document = json.loads(capsys.readouterr().out)

    assert code == document["exit_code"] == log["invocations"][0]["exitCode"]
    assert [one["code"] for one in document["findings"]] == [one["ruleId"] for one in log["results"]]
    assert [one["statement"] for one in document["findings"]] == [one["message"]["text"] for one in log["results"]]
    rules = [one["id"] for one in log["tool"]["driver"]["rules"]]
    assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in log["results"])
    assert all(one["locations"] for one in log["results"])


def test_every_part_of_a_finding_has_its_place():
    one = finding(
        "KF204",
        severity=Severity.CRITICAL,
        statement="they differ",
        topic_partition=TopicPartition("orders", 3),
        broker_id=2,
        offsets=OffsetRange(60, 102),
        citations=(
            Citation(input=0, path="orders-3/00000000000000000000.log", span=Span(8192, 61)),
            Citation(input=1, path=".", line=412),
        ),
    )

    log = validated(document([one]))

    result = log["results"][0]
    assert "error" == result["level"]
    assert {"byteOffset": 8192, "byteLength": 61} == result["locations"][0]["physicalLocation"]["region"]
    assert "orders-3" == result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]
    assert {"startLine": 412} == result["relatedLocations"][0]["physicalLocation"]["region"]
    assert {"first": 60, "last": 102} == result["properties"]["offsets"]
    assert "file:///data/broker-1/" == log["originalUriBaseIds"]["INPUT0"]["uri"]
    assert "%SRCROOT%" == log["originalUriBaseIds"]["INPUT1"]["uriBaseId"]


def test_a_finding_keeps_its_fingerprint_when_its_words_change():
    def fingerprint(statement, first):
        one = finding("KF204", severity=Severity.ERROR, statement=statement, offsets=OffsetRange(first, 9))
        return validated(document([one]))["results"][0]["partialFingerprints"]

    assert fingerprint("a", 1) == fingerprint("b", 1) != fingerprint("a", 2)


def test_text_of_evidence_is_neither_placeholder_nor_link_nor_escape():
    one = finding(
        "KF506",
        severity=Severity.NOTE,
        statement=HOSTILE,
        citations=(Citation(input=0, path=HOSTILE, span=Span(0, 0)),),
    )

    text = document([one], problems=[Problem(input=0, path=HOSTILE, message=HOSTILE, position=4)])
    log = validated(text)

    assert text.isascii()
    assert "\x1b" not in text
    message = log["results"][0]["message"]["text"]
    assert "{{0}}" in message
    assert "](" not in message
    assert "a%1B%5B2J" in log["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


@pytest.mark.parametrize(("exit_code", "successful"), [(0, True), (1, True), (3, False), (4, False)])
def test_an_incomplete_look_is_no_success(exit_code, successful):
    log = validated(document([], exit_code=exit_code))

    assert successful == log["invocations"][0]["executionSuccessful"]
    assert [] == log["results"]


def document(findings, problems=(), exit_code=1):
    inputs = (Input(path="/data/broker-1", kind="broker", broker_id=1), Input(path="c:d/x", kind="log-file"))
    found = Conclusion(Answer(state=State.SOUND, headline="It is so."), findings, problems, exit_code)
    return write(Result(command="verify", inputs=inputs, body=None, concluded=found), View())
