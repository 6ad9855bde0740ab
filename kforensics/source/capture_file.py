"""The file of a capture: a zip archive with a manifest, parts, and a tree of directories.

Any zip tool opens it. It is read here by its manifest, whose place the comment of the archive gives: every part has its position, its lengths and its
sha256 in it. Whatever a capture says of lengths, counts and names is a claim, checked before it is used: no part is larger than `PART_LIMIT`, no name
leads out of the tree. `docs/capture.md` describes the format.
"""

import json
import os
import re
import stat
import zlib
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.errors import EvidenceUnreadable
from kforensics.source.mapped import open_evidence
from kforensics.source.store import Entry, ForeignPath

FORMAT = "kforensics/capture-file/1"
"""The schema of the manifest; another number is another layout."""

ENDING = ".kfc"
MARKER = "kforensics-capture"
"""Name of the first member of the archive, by which a capture is known whatever its own name."""

RECORDS_FOLDER = "private-records"
"""Members of the archive below this name hold records of users, as they are on the broker."""

COORDINATORS_FOLDER = "coordinator-records"
"""Members below this name hold records of `__consumer_offsets` and `__transaction_state`."""

LENGTHS = "lengths.json"
"""The part with the bytes of the segments of each partition directory that holds files alone, which captures of earlier versions do not have."""

MANIFEST_LIMIT = 64 << 20
PART_LIMIT = 32 << 20
"""Bytes of a part once it is inflated; the writer keeps far below."""

CHUNK_LENGTH = 4 << 20
"""Bytes of a large file in one part; the last part of a file has the rest."""

_KEPT_BYTES = 64 << 20
_KEPT_BLOCKS = 8
_LARGEST = 2**63 - 1
_LATEST_NS = 1 << 96
"""File systems have times of 64 bits of seconds."""

LOCAL_HEADER = b"PK\x03\x04"
"""What an archive begins with."""

_END_OF_DIRECTORY = b"PK\x05\x06"
_END_LENGTH = 22
_COMMENT = re.compile(
    rb"kforensics-capture ([0-9]{1,4}) ([0-9]{1,18}) ([0-9]{1,10}) ([0-9]{1,10}) ([0-9a-f]{64})", re.ASCII
)
COMMENT_LIMIT = 256

_NO_CAPTURE = ("it was not copied completely", "the capture was interrupted", "it was altered")


def comment_of(position: int, stored: int, length: int, sha256: str) -> bytes:
    """Return the comment of the archive, which says where the manifest is, by its compressed length there."""
    return f"kforensics-capture 1 {position} {stored} {length} {sha256}".encode()


class Part(NamedTuple):
    """One member of the archive, as the manifest describes it; `position` is where its deflated bytes begin."""

    name: str
    position: int
    stored: int
    length: int
    sha256: str


class CapturedEntry(NamedTuple):
    """One name in a captured directory; `content` says where its bytes are, or what was found in them."""

    name: str
    mode: int
    length: int
    mtime_ns: int
    content: Mapping[str, Any]
    block: int


class CapturedFolder(NamedTuple):
    """A captured directory: its entries by name, and beside each what the capture says of its bytes, empty where these were neither taken along nor looked at."""

    entries: tuple[Entry, ...]
    contents: tuple[Mapping[str, Any], ...]
    block: int
    holds_files_alone: bool
    """All of the entries are regular files; false also where those of other directories of its block are not."""

    def entry(self, name: str) -> CapturedEntry | None:
        """Return an entry; none where there is none of that name."""
        at = bisect_left(self.entries, name, key=_NAME)
        if at == len(self.entries) or self.entries[at].name != name:
            return None
        return CapturedEntry(*self.entries[at], self.contents[at], self.block)


_NAME = itemgetter(0)


class Capture:
    """One capture, open for reading; parts are inflated and checked when they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_evidence(real_path(path))
        self.sha256 = ""
        """Of its manifest, and so of everything that is in it."""
        self.manifest = self._read_manifest()
        """The manifest of the capture."""
        self._parts = self._read_parts()
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._blocks: OrderedDict[int, dict[str, CapturedFolder]] = OrderedDict()
        self._folders = self._read_folders()
        self._lengths: Mapping[str, Any] | None = None

    def is_replaced(self) -> bool:
        """Whether the file at its path is another one now: by device, inode, size and time of change."""
        return self._file.changed() or real_path(self.path) != self._file.path

    # ------------------------------------------------------------ parts

    def part(self, number: int) -> bytes:
        """Return the bytes of a part by its place in the manifest, from 0, which is a claim where another part names it."""
        kept = self._kept.get(number)
        if kept is not None:
            self._kept.move_to_end(number)
            return kept
        if not 0 <= number < len(self._parts):
            raise self.refuse(f"it has no part {number}")
        one = self._parts[number]
        data = self._inflate(one, PART_LIMIT)
        self._kept[number] = data
        while sum(map(len, self._kept.values())) > _KEPT_BYTES and len(self._kept) > 1:
            self._kept.popitem(last=False)
        return data

    def parts(self) -> tuple[Part, ...]:
        """Return all parts, as the manifest describes them."""
        return self._parts

    def part_length(self, number: int) -> int:
        """Return the bytes of a part, as the manifest claims."""
        if not 0 <= number < len(self._parts):
            raise self.refuse(f"it has no part {number}")
        return self._parts[number].length

    def small_file(self, block: int, position: int, length: int) -> bytes:
        """Return the bytes of a small file."""
        number = self.tar_of(block)
        if position + length > self.part_length(number):
            raise self.refuse("a file ends behind the part that it is in")
        return self.part(number)[position : position + length]

    def tar_of(self, block: int) -> int:
        """Return the place in the manifest of the tar file with the small files of a block."""
        number = self._numbers.get(name := f"files/{block:06d}.tar")
        if number is None:
            raise self.refuse(f"it has no part {name}")
        return number

    def column(self, block: int, table: str, name: str) -> bytes | None:
        """Return a column of a table of a block, none where the table has no rows there."""
        number = self._numbers.get(f"{table}/{block:06d}/{name}.npy")
        return None if number is None else self.part(number)

    @property
    def was_running(self) -> bool:
        """Whether the broker ran when it was captured: it held the lock of a log directory, or its files changed meanwhile."""
        return bool(self.manifest.get("running") or self.manifest.get("changed"))

    @property
    def started_ns(self) -> int:
        """When it was begun; the beginning of all times where it does not say."""
        import datetime as dt  # noqa: PLC0415 - few commands need it

        try:
            moment = dt.datetime.fromisoformat(str(self.manifest["started"]))
            return int(moment.timestamp() * 1000) * 1_000_000
        except (KeyError, ValueError, OverflowError):
            return 0

    @property
    def is_interrupted(self) -> bool:
        """Whether taking it was stopped, so that it is not all of the node's evidence: it only serves to go on from."""
        return bool(self.manifest.get("interrupted"))

    @property
    def redaction(self) -> str | None:
        """What distinguishes the redaction of the capture from others: its key and what it replaced; none of a capture with the names as they are."""
        found = self.manifest.get("redaction")
        if not isinstance(found, dict):
            return None
        return f"{found.get('key_id')}{' with topics' if found.get('topics') else ''}"

    @property
    def holds_records(self) -> bool:
        """Whether records of users are in it, so that it is as private as the log directories themselves."""
        return any(name.startswith(f"{RECORDS_FOLDER}/") for name in self._numbers)

    def record_bytes(self, number: int, start: int, length: int) -> bytes:
        """Return some bytes of a part with records."""
        names = (f"{folder}/{number:06d}" for folder in (RECORDS_FOLDER, COORDINATORS_FOLDER))
        part = next((self._numbers[name] for name in names if name in self._numbers), None)
        if part is None or start + length > self.part_length(part):
            raise self.refuse(f"it has no such bytes in part {number:06d} of its records")
        return self.part(part)[start : start + length]

    def refuse(self, problem: str) -> EvidenceUnreadable:
        """Return the error that says what is wrong with this capture."""
        return EvidenceUnreadable(str(self.path), f"the capture can't be used: {problem}", _NO_CAPTURE)

    def _inflate(self, one: Part, limit: int) -> bytes:
        if one.length > limit or one.stored > limit + 1024:
            raise self.refuse(f"part {one.name} claims {one.length:,} bytes, more than any has")
        stored = self._file.read(one.position, one.stored)
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            data = inflater.decompress(stored, one.length + 1)
        except zlib.error as error:
            raise self.refuse(f"part {one.name} can't be inflated ({error})") from error
        if len(stored) != one.stored or len(data) != one.length:
            raise self.refuse(f"part {one.name} has not the length that the manifest says")
        from hashlib import sha256  # noqa: PLC0415 - most inputs are no capture, and OpenSSL takes 3 ms to load

        if sha256(data).hexdigest() != one.sha256:
            raise self.refuse(f"part {one.name} has not the sha256 that the manifest says")
        return data

    def salvaged(self, one: Part) -> bytes | None:
        """Return the bytes of a part as far as they can be inflated, whatever their sha256; none where they can't, or are too many."""
        if one.length > PART_LIMIT or one.stored > PART_LIMIT + 1024:
            return None
        try:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(self._file.read(one.position, one.stored), PART_LIMIT)
        except zlib.error:
            return None

    # ------------------------------------------------------------ manifest

    def _read_manifest(self) -> Mapping[str, Any]:
        reach = min(self._file.size, _END_LENGTH + COMMENT_LIMIT)
        tail = self._file.read(self._file.size - reach, reach)
        at = tail.rfind(_END_OF_DIRECTORY)
        match = _COMMENT.fullmatch(tail[at + _END_LENGTH :]) if at >= 0 else None
        if match is None:
            raise self.refuse("its end is missing")
        if match[1] != b"1":
            raise EvidenceUnreadable(
                str(self.path),
                f"a capture of format {int(match[1])}, which this version of kforensics does not read",
                ("it was taken by a newer version",),
            )
        self.sha256 = match[5].decode()
        position, stored, length = (int(match[number]) for number in (2, 3, 4))
        manifest = self._parsed(
            self._inflate(Part("manifest.json", position, stored, length, self.sha256), MANIFEST_LIMIT)
        )
        if not isinstance(manifest, dict) or manifest.get("schema") != FORMAT:
            raise self.refuse("its manifest is of another kind")
        return manifest

    def _parsed(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise self.refuse("a part that should be JSON is not") from error

    def _read_parts(self) -> tuple[Part, ...]:
        try:
            parts = tuple(
                Part(
                    str(one["name"]),
                    checked_count(one["position"]),
                    checked_count(one["stored"]),
                    checked_count(one["length"]),
                    str(one["sha256"]),
                )
                for one in self.manifest["parts"]
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self.refuse("its manifest does not describe its parts") from error
        self._numbers = {one.name: number for number, one in enumerate(parts)}
        return parts

    def _read_folders(self) -> dict[str, int]:
        """Return the block of each directory, by its path below the capture."""
        number = self._numbers.get("tree.json")
        found = {} if number is None else self._parsed(self._inflate(self._parts[number], MANIFEST_LIMIT))
        if not isinstance(found, dict) or not {*map(type, found.values())} <= {int}:
            raise self.refuse("its tree is of another kind")
        if not are_below(found):
            raise self.refuse("a name in it leads out of its tree")
        return found

    # ------------------------------------------------------------ the tree

    @property
    def roots(self) -> tuple[str, ...]:
        """The names of what was captured, each a data directory, a directory of log files, or a parent of some."""
        if not self.has_folder(""):
            raise self.refuse("its tree has no beginning")
        return tuple(entry.name for entry in self.folder("").entries)

    def where(self, inner: str) -> str:
        """Return the path on the broker of a path in the capture, and the node."""
        node = self.manifest.get("node")
        node_id = node.get("node_id") if isinstance(node, dict) else None
        return f"{self.origin(inner)} of {'its broker' if node_id is None else f'broker {node_id}'}"

    def origin(self, inner: str) -> str:
        """Return the path on the broker of a path in the capture."""
        name, _, rest = inner.partition("/")
        roots = self.manifest.get("roots")
        known = (
            next(
                (one for one in roots if isinstance(one, dict) and one.get("name") == name),
                {},
            )
            if isinstance(roots, list)
            else {}
        )
        return str(known.get("path", name)) + (f"/{rest}" if rest else "")

    def folder(self, inner: str) -> CapturedFolder:
        """Return a directory with its entries."""
        block = self._folders[inner]
        folders = self._blocks.get(block)
        if folders is None:
            folders = self._blocks[block] = self._read_block(block)
            while len(self._blocks) > _KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        else:
            self._blocks.move_to_end(block)
        try:
            return folders[inner]
        except KeyError as error:
            raise self.refuse(f"its tree names the directory {inner}, which its block does not have") from error

    def segment_bytes(self, inner: str) -> int | None:
        """Return the bytes of the segments of a directory that holds files alone, some of them segments in use; none where only its entries show it."""
        if self._lengths is None:
            self._lengths = self._read_lengths()
        length = self._lengths.get(inner) if inner in self._folders else None
        return length if type(length) is int and 0 <= length <= _LARGEST else None

    def _read_lengths(self) -> Mapping[str, Any]:
        """Return what the capture says of the lengths of directories; what can't be used is not missed, since the entries show it too."""
        number = self._numbers.get(LENGTHS)
        try:
            found = {} if number is None else self._parsed(self._inflate(self._parts[number], MANIFEST_LIMIT))
        except EvidenceUnreadable:
            return {}
        return found if isinstance(found, dict) else {}

    def entry(self, inner: str) -> CapturedEntry | None:
        """Return the entry at a path; none where there is none."""
        path, _, name = inner.rpartition("/")
        if path not in self._folders:
            return None
        return self.folder(path).entry(name)

    def folders(self) -> tuple[str, ...]:
        """Return the paths of all directories that were captured."""
        return tuple(self._folders)

    def block_of(self, inner: str) -> int | None:
        """Return the number of the block that a directory is in; none where no such directory was captured."""
        return self._folders.get(inner)

    def has_folder(self, inner: str) -> bool:
        """Whether a directory of that path was captured."""
        return inner in self._folders

    def _read_block(self, block: int) -> dict[str, CapturedFolder]:
        number = self._numbers.get(f"tree/{block:06d}.json")
        if number is None:
            raise self.refuse(f"it has no part tree/{block:06d}.json")
        found = self._parsed(self.part(number))
        try:
            return _folders(found, block)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self.refuse(f"part tree/{block:06d}.json says what is impossible: {error}") from error


def checked_count(value: Any) -> int:
    """Return a number of a capture that counts something."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise ValueError(f"{value!r} is no count")
    return value


def are_below(paths: Collection[str]) -> bool:
    """Whether paths lead to no place outside of the tree: none has an empty part, `.` or `..`; empty is the tree itself."""
    named = [one for one in paths if one]
    text = "\0".join(named)
    return text.count("\0") == max(len(named) - 1, 0) and not (named and _LEADS_OUT.search(f"\0{text}\0"))


def are_names(names: Collection[str]) -> bool:
    """Whether names are those of files and directories, none of them a path, empty, `.` or `..`."""
    return "" not in names and "/" not in "".join(names) and are_below(names)


_LEADS_OUT = re.compile(r"[\0/]\.{0,2}[\0/]")


_NOTHING: Mapping[str, Any] = {}
_ENTRY = itemgetter("name", "mode", "length", "mtime_ns")


def _folders(found: Mapping[str, Sequence[Mapping[str, Any]]], block: int) -> dict[str, CapturedFolder]:
    """Return the directories of a block by path; the values of all of their entries are checked together, which takes a third of the time."""
    entries = [Entry._make(_ENTRY(one)) for rows in found.values() for one in rows]
    names, modes, lengths, times = zip(*entries, strict=True) if entries else ((), (), (), ())
    if not {*map(type, names)} <= {str} or not are_names(set(names)):
        raise ValueError("a name leads out of the tree")
    if not are_whole(times, -_LATEST_NS, _LATEST_NS):
        raise ValueError("a time is not a number of nanoseconds")
    if not are_whole(modes, 0, 0xFFFF) or not all(map(stat.S_IFMT, kinds := set(modes))):
        raise ValueError("a mode is not that of a file")
    if not are_whole(lengths, 0, _LARGEST):
        raise ValueError("a length is not a number of bytes")
    contents = [one.get("content") or _NOTHING for rows in found.values() for one in rows]
    if not {*map(type, contents)} <= {dict}:
        raise TypeError("the content of a file is no object")
    holds_files_alone = all(map(stat.S_ISREG, kinds))
    folders: dict[str, CapturedFolder] = {}
    start = 0
    for path, rows in found.items():
        end = start + len(rows)
        own, said = entries[start:end], contents[start:end]
        if any(one >= other for one, other in pairwise(names[start:end])):
            order = sorted(range(len(own)), key=lambda at: own[at].name)
            own, said = [own[at] for at in order], [said[at] for at in order]
            if any(one.name == other.name for one, other in pairwise(own)):
                raise ValueError("a name is in a directory twice")
        folders[str(path)] = CapturedFolder(tuple(own), tuple(said), block, holds_files_alone)
        start = end
    return folders


def are_whole(values: Sequence[Any], least: int, most: int) -> bool:
    """Whether values of a capture are whole numbers between two."""
    return not values or ({*map(type, values)} == {int} and least <= min(values) and max(values) <= most)


def real_path(path: Path) -> Path:
    """Return a path without links and `..`; one on other storage as it is."""
    return path if isinstance(path, ForeignPath) else Path(os.path.realpath(path))
