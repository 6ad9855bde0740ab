"""Values of any result with hosts and principals replaced: in paths, messages, details and sentences, which fields of those names are."""

import dataclasses
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, TypeVar

from kforensics.commands.redaction.pseudonyms import Pseudonyms
from kforensics.commands.redaction.records import without_quoted

T = TypeVar("T")

_PATHS = frozenset({"path", "clocks"})
_FOREIGN_WORDS = frozenset({"message", "detail"})
_OWN_WORDS = frozenset(
    {
        "headline",
        "now",
        "tell",
        "later",
        "unknown",
        "conclusion",
        "advice",
        "missing",
        "notes",
        "statement",
        "meaning",
        "reason",
        "steps",
        "words",
    }
)


def redacted(value: T, pseudonyms: Pseudonyms) -> T:
    """Return a value of dataclasses and tuples with every path, message, detail and sentence redacted, which fields of those names are.

    Args:
        pseudonyms: with the hosts and topics that are known.
    """
    return _any(value, pseudonyms, "")  # type: ignore[no-any-return] # a value becomes one of its own type


def _any(value: Any, pseudonyms: Pseudonyms, name: str) -> Any:
    match value:
        case str() if type(value) is str:
            return _text(value, pseudonyms, name)
        case Mapping():
            return {key: _any(item, pseudonyms, name) for key, item in value.items()}
        case tuple() if hasattr(value, "_fields"):
            return type(value)(
                *(_any(item, pseudonyms, field) for field, item in zip(value._fields, value, strict=True))
            )
        case tuple():
            return tuple(_any(item, pseudonyms, name) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {
            field.name: _any(getattr(value, field.name), pseudonyms, field.name) for field in dataclasses.fields(value)
        }
        return dataclasses.replace(value, **changes)
    return value


def _text(text: str, pseudonyms: Pseudonyms, name: str) -> str:
    if name in _PATHS:
        return pseudonyms.path(text)
    if name == "found":
        return without_quoted(pseudonyms.text(text), pseudonyms)
    if name in _FOREIGN_WORDS:
        return pseudonyms.path(text) if PurePosixPath(text).is_absolute() else pseudonyms.text(text)
    return pseudonyms.sentence(text) if name in _OWN_WORDS else text
