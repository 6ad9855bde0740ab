"""Values as JSON, by one rule for all that is written.

What is not there is null, with the reason in `absent` of the object that holds it, unless it simply does not apply. Bytes are
`{"base64": …}`, and so is a path or name that is no text. Everything outside ASCII is escaped, so that no terminal can be steered
by it and no locale matters.
"""

import base64
import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

from kforensics.damage import Absent, Span
from kforensics.evidence.model import Citation, Problem
from kforensics.units import EpochEntry


def fields_of(value: object, *names: str) -> dict[str, Any]:
    """Return fields of a value under their own names."""
    return {name: getattr(value, name) for name in names}


FORMS: dict[type, Callable[[Any], Iterable[tuple[str, Any]]]] = {}
"""By type, what gives the fields of its objects by name, where they are not those of the value."""

_AS_THEY_ARE = frozenset({int, bool, float, type(None)})


def to_plain(value: Any) -> Any:
    """Return the value as dicts, lists, strings and numbers, by the rules of the promise."""
    kind = type(value)  # most values are of these kinds, and the cases below ask for one class after the other
    if kind in _AS_THEY_ARE:
        return value
    if kind is str:
        return _plain_text(value)
    if kind is dict:
        return plain_object((_plain_key(key), item) for key, item in value.items())
    form = FORMS.get(kind)
    if form is not None:
        return plain_object(form(value))
    match value:
        case Absent() | None:
            return None
        case bool() | float():
            return value
        case Enum():
            return to_plain(value.value)
        case str():
            return _plain_text(value)
        case int():
            return int(value)
        case bytes() | bytearray() | memoryview():
            return plain_bytes(value)
        case EpochEntry():
            return [value.leader_epoch, value.start_offset]
        case PurePath():
            return _plain_text(str(value))
        case Mapping():
            return plain_object((_plain_key(key), item) for key, item in value.items())
        case tuple() if hasattr(value, "_asdict"):
            return plain_object(value._asdict().items())
        case set() | frozenset():
            return sorted((to_plain(item) for item in value), key=json.dumps)
        case list() | tuple() | Iterator():
            return [to_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain_object((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
    if hasattr(value, "tolist"):  # of numpy, which is not loaded for this alone
        return to_plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def plain_object(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of fields by name: what is not there is null, and `absent` says why where it could be there."""
    plain: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for name, value in fields:
        if isinstance(value, Absent):
            plain[name] = None
            if value is not Absent.NOT_APPLICABLE:
                reasons[name] = value.value
        else:
            plain[name] = to_plain(value)
    if reasons:
        plain["absent"] = reasons
    return plain


def plain_bytes(value: bytes | bytearray | memoryview) -> dict[str, str]:
    """Return bytes in the form that survives any reader: `{"base64": …}`."""
    return {"base64": base64.b64encode(value).decode("ascii")}


def _plain_text(text: str) -> str | dict[str, str]:
    # A file name that is not UTF-8 comes from the system with lone surrogates, which JSON readers refuse.
    try:
        text.encode()
    except UnicodeEncodeError:
        return (
            plain_bytes(os.fsencode(text))
            if all(not "\ud800" <= character <= "\udfff" or "\udc80" <= character <= "\udcff" for character in text)
            else plain_bytes(text.encode("utf-8", errors="surrogatepass"))
        )
    return text


def _plain_key(key: Any) -> str:
    plain = to_plain(key)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _citation_fields(citation: Citation) -> Iterator[tuple[str, Any]]:
    span = citation.span
    position, length = span if isinstance(span, Span) else (span, span)
    yield from (("input", citation.input), ("path", citation.path), ("position", position), ("length", length))
    yield "line", citation.line


FORMS[Citation] = _citation_fields
FORMS[Problem] = lambda problem: fields_of(problem, "input", "path", "position", "message").items()
