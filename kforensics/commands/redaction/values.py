"""Values with their names replaced: any of them, and those of an explanation."""

import dataclasses
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, TypeVar

from kforensics.commands.cited import CitedFile
from kforensics.commands.explanation import Explanation
from kforensics.commands.redaction.pseudonyms import Pseudonyms

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
    """Return a value of dataclasses and tuples with every path, message, detail and sentence redacted, which fields of those names are."""
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
        return pseudonyms.without_quoted(pseudonyms.text(text))
    if name in _FOREIGN_WORDS:
        return pseudonyms.path(text) if PurePosixPath(text).is_absolute() else pseudonyms.text(text)
    return pseudonyms.sentence(text) if name in _OWN_WORDS else text


def redact_explanation(result: Explanation, pseudonyms: Pseudonyms) -> Explanation:
    """Return the explanation with every path, message, detail and sentence redacted; topics, offsets and times stay."""
    return dataclasses.replace(redacted(result, _knowing(result, pseudonyms)), hosts=())


def redact_cited_files(
    files: tuple[CitedFile, ...], result: Explanation, pseudonyms: Pseudonyms
) -> tuple[CitedFile, ...]:
    """Return the files with the same paths as citations have in the redacted explanation."""
    known = _knowing(result, pseudonyms)
    return tuple(dataclasses.replace(file, path=known.path(file.path)) for file in files)


def _knowing(result: Explanation, pseudonyms: Pseudonyms) -> Pseudonyms:
    return pseudonyms.knowing(hosts=result.hosts, topics=result.topics)
