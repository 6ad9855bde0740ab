"""Small files of a broker written again for a redacted capture, from what was understood of them alone: what is not understood may hold a name.

A file of lines keeps those that have the form of its format; of the others every character becomes an x. Of a file that is understood as a whole or
not at all nothing is taken along where it is damaged, or newer than what is known.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kforensics.commands.capturing.container import CannotRedact
from kforensics.errors import FormatError
from kforensics.formats.checkpoint.json_files import (
    encode_clean_shutdown,
    encode_quorum_state,
    parse_clean_shutdown,
    parse_quorum_state,
)
from kforensics.formats.index import (
    encode_aborted_transactions,
    encode_producers,
    parse_offset_index,
    parse_producer_snapshot,
    parse_time_index,
    parse_txn_index,
)
from kforensics.source.naming import FileKind

NOT_UNDERSTOOD = "it is left out: what is not understood of it may hold a name"
NO_RULE = "it is left out: no names in it can be told from the rest"

Rewrite = Callable[[bytes], bytes]

_SMALLEST_TEXT = 0x20 << 24
"""The least number of four bytes that are four characters; offsets and positions in indexes are smaller."""

_UUID = rb"[A-Za-z0-9_-]{22}"
_ID = rb"[A-Za-z0-9_-]{1,64}"
_NUMBER = rb"-?\d{1,19}"
_PROPERTIES = re.compile(
    rb"(?:version|broker\.id|node\.id)=" + _NUMBER + rb"|cluster\.id=" + _ID + rb"|directory\.id=" + _UUID + rb"|#"
    rb"|#[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [A-Z]{1,5} \d{4}"
)
_EPOCHS = re.compile(_NUMBER + rb"(?: " + _NUMBER + rb")?")
_TOPIC_ID = re.compile(rb"version: \d{1,9}|topic_id: " + _UUID)
_CLUSTER_ID = re.compile(_ID)


def blanked(line: bytes) -> bytes:
    """Return a line of as many letters x, with its end."""
    text = line.rstrip(b"\r\n")
    return b"x" * len(text) + line[len(text) :]


def _lines(form: re.Pattern[bytes]) -> Rewrite:
    def rewrite(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        return b"".join(one if form.fullmatch(one.rstrip(b"\r\n")) else blanked(one) for one in lines)

    return rewrite


def _sound(parse: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        value = parse(data)
    except FormatError as error:
        raise CannotRedact(NOT_UNDERSTOOD) from error
    if value.damage:
        raise CannotRedact(NOT_UNDERSTOOD)
    return value


def _parsed(parse: Callable[[bytes], Any], encode: Callable[[Any], bytes]) -> Rewrite:
    return lambda data: encode(_sound(parse, data))


def _quorum_state(data: bytes) -> bytes:
    state = _sound(parse_quorum_state, data)
    if isinstance(state.cluster_id, str) and state.cluster_id and not _CLUSTER_ID.fullmatch(state.cluster_id.encode()):
        raise CannotRedact(NOT_UNDERSTOOD)
    return encode_quorum_state(state)


def _index(parse: Callable[[bytes], Any]) -> Rewrite:
    def rewrite(data: bytes) -> bytes:
        _sound(parse, data)
        small = np.frombuffer(data, ">u4")
        if parse is parse_time_index:
            small = small.reshape(-1, 3)[:, [0, 2]]  # the high half of a timestamp, and the relative offset
        if len(small) and small.max() >= _SMALLEST_TEXT:
            raise CannotRedact(NOT_UNDERSTOOD)
        return data

    return rewrite


REWRITTEN: Mapping[FileKind, Rewrite] = {
    FileKind.OFFSET_INDEX: _index(parse_offset_index),
    FileKind.TIME_INDEX: _index(parse_time_index),
    FileKind.TXN_INDEX: _parsed(parse_txn_index, lambda index: encode_aborted_transactions(index.entries)),
    FileKind.PRODUCER_SNAPSHOT: _parsed(parse_producer_snapshot, lambda one: encode_producers(one.entries)),
    FileKind.LEADER_EPOCH_CHECKPOINT: _lines(_EPOCHS),
    FileKind.META_PROPERTIES: _lines(_PROPERTIES),
    FileKind.PARTITION_METADATA: _lines(_TOPIC_ID),
    FileKind.QUORUM_STATE: _quorum_state,
    FileKind.CLEAN_SHUTDOWN: _parsed(parse_clean_shutdown, encode_clean_shutdown),
}
"""The kinds that have no names where they are sound; a kind that is neither here nor read by the redaction itself is left out."""


_SECRET = re.compile(
    rb"(?im)^([^\S\n]*[^#!\s=:]*(?:password|secret|jaas|credential|token|\.key\b|private)[^\s=:]*[^\S\n]*[=:]?[^\S\n]*)((?:\\\r?\n|[^\n])*)"
)


def without_secrets(data: bytes) -> bytes:
    """Return properties with asterisks in the place of values that may be secret, so that every line stays where it was."""
    return _SECRET.sub(lambda match: match[1] + re.sub(rb"[^\\\r\n]", b"*", match[2]), data)
