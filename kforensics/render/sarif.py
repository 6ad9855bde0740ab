"""Findings as SARIF 2.1.0, which the viewers of CI systems understand.

A finding is a result, its code the rule, a citation a location: the file relative to its input, and the bytes or line. What
could not be read is a notification of the invocation. Whatever SARIF has no field for is in `properties`, by the names
of the JSON documents.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kforensics import __version__
from kforensics.commands.result import Result
from kforensics.damage import Absent, Span
from kforensics.evidence.model import Citation, Input, Problem
from kforensics.evidence.plain import plain_object, to_plain
from kforensics.findings.model import Finding, Severity
from kforensics.findings.rule import rule_of
from kforensics.render.view import View

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
WHOLE_INPUT = "."

_LEVELS = {Severity.CRITICAL: "error", Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def write(result: Result[Any], _view: View) -> str:
    """Return a result of any command as a log of SARIF 2.1.0 with one run, ending in a line break; problems are notifications of the tool."""
    findings, exit_code = result.findings, result.exit_code
    codes = sorted({one.code for one in findings})
    run = {
        "tool": {
            "driver": {
                "name": "kforensics",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(code) for code in codes],
            }
        },
        "automationDetails": {"id": f"kforensics/{result.command}/"},
        "originalUriBaseIds": {_base_id(number): _base(one) for number, one in enumerate(result.inputs)},
        "invocations": [
            {
                "executionSuccessful": exit_code in {0, 1},
                "exitCode": int(exit_code),
                "toolExecutionNotifications": [_notification(one) for one in result.problems],
            }
        ],
        "results": [_result(one, codes.index(one.code)) for one in findings],
    }
    return json.dumps({"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: str) -> dict[str, Any]:
    kind = rule_of(code)
    return {
        "id": code,
        "shortDescription": _message(kind.title),
        "fullDescription": _message(kind.meaning),
        "help": _message(kind.advice),
    }


def _result(one: Finding, rule_index: int) -> dict[str, Any]:
    locations = [_location(citation) for citation in one.citations]
    if not isinstance(one.topic, Absent):
        name = one.topic if isinstance(one.partition, Absent) else f"{one.topic}-{one.partition}"
        logical = [{"fullyQualifiedName": _text(name), "kind": "resource"}]
        first = {**locations[0], "logicalLocations": logical} if locations else {"logicalLocations": logical}
        locations = [first, *locations[1:]]
    # `locations` are places that are all to be changed to mend the result: the others only bear witness.
    result: dict[str, Any] = {
        "ruleId": one.code,
        "ruleIndex": rule_index,
        "level": _LEVELS[one.severity],
        "message": _message(one.statement),
        "locations": locations[:1],
        "partialFingerprints": {"kforensics/2": _fingerprint(one)},
        "properties": _properties(one),
    }
    if locations[1:]:
        result["relatedLocations"] = locations[1:]
    return result


def _properties(one: Finding) -> Mapping[str, Any]:
    names = ("severity", "confidence", "meaning", "advice", "topic", "partition", "broker_id", "offsets", "references")
    return plain_object((name, getattr(one, name)) for name in names)


def _fingerprint(one: Finding) -> str:
    """Return a digest that is equal for the same finding in a later run: of what it is about, not of its words."""
    where = one.citations[0] if one.citations else None
    identity: list[Any] = [one.code, one.topic, one.partition, one.broker_id, one.offsets]
    identity += [] if where is None else [where.path, where.span, where.line]
    return hashlib.sha256(json.dumps(to_plain(identity)).encode()).hexdigest()[:32]


def _location(citation: Citation) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(citation.input, citation.path)}
    region: dict[str, int] = {}
    if not isinstance(citation.line, Absent):
        region["startLine"] = max(citation.line, 1)
    if isinstance(citation.span, Span):
        region |= {"byteOffset": max(citation.span.position, 0), "byteLength": max(citation.span.length, 0)}
    if region:
        physical["region"] = region
    return {"physicalLocation": physical}


def _notification(problem: Problem) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": _artifact(problem.input, problem.path)}
    if not isinstance(problem.position, Absent):
        location["region"] = {"byteOffset": problem.position, "byteLength": 0}
    return {"level": "error", "message": _message(problem.message), "locations": [{"physicalLocation": location}]}


def _artifact(number: int, path: str) -> dict[str, str]:
    # An input that is a file is named by its base alone.
    return {"uri": "" if path == WHOLE_INPUT else _uri(path), "uriBaseId": _base_id(number)}


def _base_id(number: int) -> str:
    return f"INPUT{number}"


def _base(one: Input) -> dict[str, Any]:
    path = Path(one.path)
    end = "" if one.path.endswith("/") else "/"
    uri = f"file://{_uri(one.path)}{end}" if path.is_absolute() else f"{_uri(one.path)}{end}"
    base = {"uri": uri, "description": _message(f"{one.kind} {one.path}")}
    return base if path.is_absolute() else {**base, "uriBaseId": "%SRCROOT%"}


def _uri(path: str) -> str:
    """Return a path as a reference: percent-encoded bytes, and no first segment that reads as a scheme."""
    encoded = quote(os.fsencode(path))
    return f"./{encoded}" if ":" in encoded.partition("/")[0] else encoded


def _message(text: str) -> dict[str, str]:
    # In a message braces are placeholders and [words](target) a link: text from evidence must be neither.
    return {"text": _text(text).replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
