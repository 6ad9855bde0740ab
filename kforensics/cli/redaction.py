"""The options of redaction, the same in every command, and the key they need."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kforensics.errors import UsageError

if TYPE_CHECKING:
    from kforensics.commands.redaction.pseudonyms import Pseudonyms

KEY_VARIABLE = "KFORENSICS_REDACT_KEY"
MOST_KEY_LENGTH = 1 << 16
"""Bytes: whoever names a larger file has named the wrong one."""

HOW_TO_MAKE_ONE = "openssl rand -hex 32 > redact.key makes one"

RedactOption = Annotated[
    bool,
    typer.Option(
        "--redact",
        help="Replace keys, values, groups, hosts and principals by pseudonyms under a key of yours; topics, offsets and times stay.",
    ),
]

RedactKeyOption = Annotated[
    Path | None,
    typer.Option(
        "--redact-key",
        metavar="FILE",
        help=f"The key for --redact, at least 16 bytes; else the environment variable {KEY_VARIABLE}. The same key gives the same pseudonyms.",
        show_default=False,
    ),
]


def pseudonyms_of(redact: bool, key_file: Path | None) -> "Pseudonyms | None":
    """Return the pseudonyms that the options ask for; None where nothing is to be redacted.

    Args:
        redact: whether `--redact` was given.
        key_file: that holds the key; None to take it from the environment.

    Raises:
        UsageError: there is no key, or it is too short.
    """
    if not redact and key_file is None:
        return None
    from kforensics.commands.redaction.pseudonyms import LEAST_KEY_LENGTH, Pseudonyms

    key = _key(key_file)
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
