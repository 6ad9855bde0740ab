"""The key of a redaction, as it is asked for."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.ask.model import KEY_VARIABLE, Ask
from kforensics.errors import UsageError

if TYPE_CHECKING:
    from kforensics.commands.redaction.pseudonyms import Pseudonyms

MOST_KEY_LENGTH = 1 << 16
"""Bytes: whoever names a larger file has named the wrong one."""

HOW_TO_MAKE_ONE = "openssl rand -hex 32 > redact.key makes one"


def pseudonyms_of(ask: Ask) -> "Pseudonyms | None":
    """Return the pseudonyms that are asked for; None where nothing is to be redacted."""
    if not ask.redact and not ask.redact_topics and ask.redact_key is None:
        return None
    from kforensics.commands.redaction.pseudonyms import LEAST_KEY_LENGTH, Pseudonyms  # noqa: PLC0415 - few runs redact

    key = ask.redact_key if isinstance(ask.redact_key, bytes) else _key(ask.redact_key)
    if len(key) < LEAST_KEY_LENGTH:
        raise UsageError(
            f"the key for --redact has {len(key)} bytes; below {LEAST_KEY_LENGTH} it could be guessed: {HOW_TO_MAKE_ONE}"
        )
    return Pseudonyms(key=key)


def _key(key_file: Path | None) -> bytes:
    if key_file is None:
        named = os.environ.get(KEY_VARIABLE, "")
        if not named:
            raise UsageError(f"--redact needs a key: --redact-key FILE, or {KEY_VARIABLE} ({HOW_TO_MAKE_ONE})")
        return os.fsencode(named).strip()
    try:
        with key_file.open("rb") as file:
            content = file.read(MOST_KEY_LENGTH + 1)
    except OSError as error:
        raise UsageError(f"--redact-key {key_file} can't be read: {error.strerror}") from error
    if len(content) > MOST_KEY_LENGTH:
        raise UsageError(f"--redact-key {key_file} has more than {MOST_KEY_LENGTH:,} bytes; that is no key")
    # An editor's line break at the end must not make another key of it.
    return content.rstrip(b"\r\n")
