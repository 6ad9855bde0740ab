"""Values as JSON: the promise of `docs/json.md` in one place.

What is not there is `{"absent": why}`, bytes are `{"base64": …}`, and so is a path or name that is no text. Everything
outside ASCII is escaped, so that no terminal can be steered by it and no locale matters.
"""

import base64
import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

import numpy as np

from kforensics import __version__
from kforensics.damage import Absent, Span
from kforensics.evidence.model import Citation, Input, Problem
from kforensics.findings.model import Finding
from kforensics.units import EpochEntry


def document(
    command: str,
    *,
    inputs: Iterable[Input],
    findings: Iterable[Finding],
    problems: Iterable[Problem],
    exit_code: int,
    **body: Any,
) -> str:
    """The one document of `--format json`, ending in a line break; `body` is what the command adds."""
    whole = {
        "schema": f"kforensics/{command}/1",
        "tool_version": __version__,
        "inputs": inputs,
        **body,
        "findings": findings,
        "problems": problems,
        "exit_code": int(exit_code),
    }
    return json.dumps(to_plain(whole), indent=2) + "\n"


def document_pieces(
    command: str,
    *,
    inputs: Iterable[Input],
    findings: Iterable[Finding],
    problems: Iterable[Problem],
    exit_code: int,
    streams: Mapping[str, Iterable[str]],
    **body: Any,
) -> Iterator[str]:
    """The same document piece by piece, for lists too long to hold: `streams` are lists whose items are JSON already."""
    head = {"schema": f"kforensics/{command}/1", "tool_version": __version__, "inputs": inputs, **body}
    tail = {"findings": findings, "problems": problems, "exit_code": int(exit_code)}
    yield json.dumps(to_plain(head), indent=2)[:-2]
    for name, items in streams.items():
        yield f',\n  "{name}": ['
        separator = "\n    "
        for item in items:
            yield separator + item
            separator = ",\n    "
        yield "]"
    yield ",\n" + json.dumps(to_plain(tail), indent=2)[2:] + "\n"


def json_line(value: Any) -> str:
    """One object of `--format jsonl`, with its line break."""
    return json.dumps(to_plain(value), separators=(", ", ": ")) + "\n"


def to_plain(value: Any) -> Any:
    """The value as dicts, lists, strings and numbers, by the rules of the promise."""
    match value:
        case Absent():
            return {"absent": value.value}
        case None | bool() | float():
            return value
        case Enum():
            return to_plain(value.value)
        case str():
            return _plain_text(value)
        case int():
            return int(value)
        case bytes() | bytearray() | memoryview():
            return plain_bytes(value)
        case Citation():
            return _plain_citation(value)
        case Problem():
            return {
                "input": value.input,
                "path": _plain_text(value.path),
                "position": to_plain(value.position),
                "message": to_plain(value.message),
            }
        case EpochEntry():
            return [value.leader_epoch, value.start_offset]
        case PurePath():
            return _plain_text(str(value))
        case Mapping():
            return {_plain_key(key): to_plain(item) for key, item in value.items()}
        case np.generic():
            return to_plain(value.item())
        case np.ndarray():
            return to_plain(value.tolist())
        case tuple() if hasattr(value, "_asdict"):
            return {key: to_plain(item) for key, item in value._asdict().items()}
        case set() | frozenset():
            return sorted((to_plain(item) for item in value), key=json.dumps)
        case list() | tuple() | Iterator():
            return [to_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def plain_bytes(value: bytes | bytearray | memoryview) -> dict[str, str]:
    """Bytes in the form that survives any reader."""
    return {"base64": base64.b64encode(value).decode("ascii")}


def _plain_text(text: str) -> str | dict[str, str]:
    # A file name that is not UTF-8 comes from the system with lone surrogates, which JSON readers refuse.
    try:
        text.encode()
    except UnicodeEncodeError:
        return (
            plain_bytes(os.fsencode(text))
            if _is_file_system_text(text)
            else plain_bytes(text.encode("utf-8", errors="surrogatepass"))
        )
    return text


def _is_file_system_text(text: str) -> bool:
    return all(not "\ud800" <= character <= "\udfff" or "\udc80" <= character <= "\udcff" for character in text)


def _plain_key(key: Any) -> str:
    plain = to_plain(key)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _plain_citation(citation: Citation) -> dict[str, Any]:
    span = citation.span
    return {
        "input": citation.input,
        "path": _plain_text(citation.path),
        "position": span.position if isinstance(span, Span) else to_plain(span),
        "length": span.length if isinstance(span, Span) else to_plain(span),
        "line": to_plain(citation.line),
    }
