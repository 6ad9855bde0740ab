"""A small JSON file of one object, as Kafka's `quorum-state` and `.kafka_cleanshutdown` are."""

import json
from collections.abc import Mapping
from typing import Any

from kforensics.damage import Span
from kforensics.errors import FormatError, LimitReached
from kforensics.formats.primitives.text_lines import shown

JSON_FILE_LIMIT = 1024 * 1024
"""The most bytes of such a file; a broker writes some hundreds."""


def parse_json_object(data: bytes | memoryview, *, expected: str) -> Mapping[str, Any]:
    """Return the JSON object in the file.

    Args:
        expected: what the caller looks for, in words for the error.

    Raises:
        FormatError: the bytes are no JSON object, or too many.
    """
    if len(data) > JSON_FILE_LIMIT:
        raise LimitReached(
            Span(0, len(data)), expected=f"{expected} of at most {JSON_FILE_LIMIT} bytes", found=f"{len(data)} bytes"
        )
    try:
        value = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        # ValueError covers JSONDecodeError, UnicodeDecodeError and integers of too many digits.
        position = min(getattr(error, "pos", 0), len(data))
        raise FormatError(
            Span(position, len(data) - position),
            expected=expected,
            found=shown(data[position:]) if len(data) else "an empty file",
        ) from error
    if not isinstance(value, dict):
        raise FormatError(Span(0, len(data)), expected=expected, found=shown(data))
    return value


def integer_of(value: Any) -> int | None:
    """Return the value if it is a whole number (and not `true`), else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
