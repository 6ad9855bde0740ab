"""Files that stand in for those of a broker: pointers of Git LFS, and text where a broker writes binary data.

A pointer of Git LFS is a text of less than 1,024 bytes whose first line names its version (git-lfs, docs/spec.md). A segment begins with the eight bytes of an
offset, and no other binary file of a broker with anything that could be read as text either.
"""

import re
from codecs import getincrementaldecoder
from collections.abc import Callable
from pathlib import PurePath

from kforensics.source.naming import FileKind, parse_file_name

HEAD_LENGTH = 1024
"""The first bytes of a file that are looked at."""

TEXT_LENGTH = 1 << 20
"""The bytes at either end that have to be text, too: the values of records may be text of thousands of characters between two heads of batches."""

_FIRST = b"version "
_LFS = re.compile(
    rb"version https?://\S+/spec/v1\n(?:[a-z0-9.-]+ [^\n]*\n)*?oid (\w+):([0-9a-f]{64})\nsize ([0-9]{1,19})\n?"
)
_BINARY = {
    FileKind.SEGMENT: "Kafka log",
    FileKind.OFFSET_INDEX: "index",
    FileKind.TIME_INDEX: "index",
    FileKind.TXN_INDEX: "index",
    FileKind.PRODUCER_SNAPSHOT: "producer snapshot",
    FileKind.METADATA_SNAPSHOT: "metadata snapshot",
}
_NOT_TEXT = re.compile(r"[^\t\n\f\r\x1b\x20-\x7e\x80-\U0010ffff]")


def stand_in(path: PurePath | str, size: int, begun: bytes, read: Callable[[int, int], bytes]) -> str | None:
    """Return what a file is that is not the one its name says, as the predicate of a sentence; None where nothing speaks against it.

    Args:
        size: of the file in bytes.
        begun: its first bytes, a few at least; of nearly all files they tell that nothing else has to be read.
        read: gives the bytes of a position and a length.
    """
    if size < HEAD_LENGTH and _FIRST.startswith(begun[: len(_FIRST)]):
        pointer = _LFS.fullmatch(read(0, HEAD_LENGTH))
        if pointer is not None:
            algorithm, digest, length = (one.decode() for one in pointer.groups())
            return f"it is a Git LFS pointer to a file of {int(length):,} bytes ({algorithm} {digest}), not that file: git lfs pull fetches it"
    what = _BINARY.get(parse_file_name(str(path).rpartition("/")[2]).kind)
    if what is None or not _is_text(read(0, HEAD_LENGTH)):
        return None
    if not (_is_text(read(0, TEXT_LENGTH)) and _is_text(read(max(size - TEXT_LENGTH, 0), TEXT_LENGTH))):
        return None
    return f"it is text and no {what}: something else was put in its place"


def _is_text(data: bytes) -> bool:
    """Whether bytes are text of UTF-8 whose first and last characters may be cut."""
    begun = next((at for at, one in enumerate(data[:4]) if not 0x80 <= one < 0xC0), 0)
    try:
        words = getincrementaldecoder("utf-8")().decode(data[begun:])
    except UnicodeDecodeError:
        return False
    return bool(words) and _NOT_TEXT.search(words) is None
