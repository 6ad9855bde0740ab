"""A capture as a tree of files: what `kforensics capture` wrote on a broker, read where it was brought to.

A capture is a zip file that any zip tool opens. It is read here by its manifest, whose place the comment of the archive gives: every part has its position, its
lengths and its sha256 in it. Nothing is unpacked to disk. Whatever a capture says of lengths, counts and names is a claim, checked before it is used:
no part is larger than `PART_LIMIT`, no name leads out of the tree. `docs/capture.md` describes the format.
"""

import json
import os
import re
import stat
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

from kforensics.errors import EvidenceError, EvidenceNotFound, EvidenceUnreadable
from kforensics.source.foreign import Entry, ForeignPath
from kforensics.source.mapped import EvidenceFile, open_evidence

FORMAT = "kforensics/capture-file/1"
"""The schema of the manifest; another number is another layout."""

ENDING = ".kfc"
MARKER = "kforensics-capture"
"""Name of the first member of the archive, by which a capture is known whatever its own name."""

RECORDS_FOLDER = "private-records"
"""Members of the archive below this name hold records of users, as they are on the broker."""

COORDINATORS_FOLDER = "coordinator-records"
"""Members below this name hold records of `__consumer_offsets` and `__transaction_state`."""

MANIFEST_LIMIT = 64 << 20
PART_LIMIT = 32 << 20
"""Bytes of a part once it is inflated; the writer keeps far below."""

CHUNK_LENGTH = 4 << 20
"""Bytes of a large file in one part; the last part of a file has the rest."""

_KEPT_BYTES = 64 << 20
_KEPT_BLOCKS = 8
_LARGEST = 2**63 - 1

_LOCAL_HEADER = b"PK\x03\x04"
_END_OF_DIRECTORY = b"PK\x05\x06"
_END_LENGTH = 22
_COMMENT = re.compile(
    rb"kforensics-capture ([0-9]{1,4}) ([0-9]{1,18}) ([0-9]{1,10}) ([0-9]{1,10}) ([0-9a-f]{64})", re.ASCII
)
COMMENT_LIMIT = 256

_NO_CAPTURE = ("it was not copied completely", "the capture was interrupted", "it was altered")


def comment_of(position: int, stored: int, length: int, sha256: str) -> bytes:
    """Return the comment of the archive, which says where the manifest is.

    Args:
        position: of the manifest's bytes in the archive.
        stored: their length as they lie there, compressed.
        length: their length once they are inflated.
        sha256: of the inflated manifest, in hexadecimal digits.
    """
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


class HeldBytes(NamedTuple):
    """Bytes of a segment that a capture holds, contiguous in one of its parts."""

    position: int
    """In the segment on the broker."""
    length: int
    part: int | None
    """The number of the part; none where all of the bytes are zero."""
    start: int
    """In that part."""

    @property
    def end(self) -> int:
        """The position behind the last of them."""
        return self.position + self.length


def is_capture(path: Path) -> bool:
    """Whether a regular file is a capture, or has the name of one; on other storage only names are looked into that end as those of captures do.

    Args:
        path: any path; one that can't be read is no capture, and no error is raised.
    """
    if isinstance(path, CapturePath) or (isinstance(path, ForeignPath) and path.suffix != ENDING):
        return False
    try:
        real = path if isinstance(path, ForeignPath) else Path(os.path.realpath(path, strict=True))
        if not stat.S_ISREG(real.mode() if isinstance(real, ForeignPath) else real.lstat().st_mode):
            return False
        with open_evidence(real) as file:
            head = file.read(0, 30 + len(MARKER))
    except (EvidenceError, OSError, ValueError):
        return False
    return (head[:4] == _LOCAL_HEADER and head[30:] == MARKER.encode()) or path.suffix == ENDING


def split_at_capture(path: Path) -> "CapturePath | None":
    """Return the path as one inside of a capture, where a part of it names one: `broker-7.kfc/data-0/orders-3`.

    Args:
        path: any path; a local one that exists either is a capture or leads into none.

    Raises:
        EvidenceError: the capture is on other storage and can't be opened.
    """
    if isinstance(path, CapturePath):
        return path
    if not isinstance(path, ForeignPath) and os.path.lexists(path):
        return CapturePath(path) if is_capture(path) else None
    for one in (path, *path.parents):
        if is_capture(one):
            if isinstance(one, ForeignPath):
                open_capture(one)
            return CapturePath(path)
    return None


def captures_in(folder: Path, entries: Iterable[Entry]) -> "tuple[CapturePath, ...]":
    """Return the captures in a directory, by name.

    Args:
        folder: the directory; inside of a capture there are none.
        entries: its entries, of which those that end as captures do and are not hidden are looked into.
    """
    names = (one.name for one in entries if one.name.endswith(ENDING) and not one.name.startswith("."))
    found = (split_at_capture(folder / name) for name in names if not isinstance(folder, CapturePath))
    return tuple(one for one in found if one is not None)


class Capture:
    """One capture, open for reading; parts are inflated and checked when they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_evidence(_real(path))
        self.manifest = self._read_manifest()
        """The manifest of the capture."""
        self._parts = self._read_parts()
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._blocks: OrderedDict[int, dict[str, dict[str, CapturedEntry]]] = OrderedDict()
        self._folders = self._read_folders()

    # ------------------------------------------------------------ parts

    def part(self, number: int) -> bytes:
        """Return the bytes of a part.

        Args:
            number: the place of the part in the manifest, from 0; a claim where another part names it.

        Raises:
            EvidenceUnreadable: it is not as the manifest says.
        """
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
        """Return the bytes of a part, as the manifest claims.

        Args:
            number: the place of the part in the manifest, from 0.

        Raises:
            EvidenceUnreadable: there is no such part.
        """
        if not 0 <= number < len(self._parts):
            raise self.refuse(f"it has no part {number}")
        return self._parts[number].length

    def column(self, block: int, table: str, name: str) -> bytes | None:
        """Return a column of a table of a block, none where the table has no rows there.

        Args:
            block: the number of the block, from 0.
            table: the name of the table.
            name: the name of the column.

        Returns:
            A file of numpy's format, not parsed yet.

        Raises:
            EvidenceUnreadable: the part is not as the manifest says.
        """
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
        """Return some bytes of a part with records.

        Args:
            number: the number of the part among those with records.
            start: where they begin in the part.
            length: in bytes.

        Raises:
            EvidenceUnreadable: they are not in it.
        """
        names = (f"{folder}/{number:06d}" for folder in (RECORDS_FOLDER, COORDINATORS_FOLDER))
        part = next((self._numbers[name] for name in names if name in self._numbers), None)
        if part is None or start + length > self.part_length(part):
            raise self.refuse(f"it has no such bytes in part {number:06d} of its records")
        return self.part(part)[start : start + length]

    def refuse(self, problem: str) -> EvidenceUnreadable:
        """Return the error that says what is wrong with this capture.

        Args:
            problem: in words that follow "the capture can't be used:".
        """
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
        """Return the bytes of a part as far as they can be inflated, whatever their sha256; none where they can't, or are too many.

        Args:
            one: a part whose place and lengths are claims of the manifest.
        """
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
        position, stored, length = (int(match[number]) for number in (2, 3, 4))
        manifest = self._parsed(
            self._inflate(Part("manifest.json", position, stored, length, match[5].decode()), MANIFEST_LIMIT)
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
                    _count(one["position"]),
                    _count(one["stored"]),
                    _count(one["length"]),
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
        if not isinstance(found, dict) or not all(isinstance(block, int) for block in found.values()):
            raise self.refuse("its tree is of another kind")
        if not all(_is_folder(path) for path in found):
            raise self.refuse("a name in it leads out of its tree")
        return found

    # ------------------------------------------------------------ the tree

    @property
    def roots(self) -> tuple[str, ...]:
        """The names of what was captured, each a data directory, a directory of log files, or a parent of some.

        Raises:
            EvidenceUnreadable: its tree is not readable.
        """
        if not self.has_folder(""):
            raise self.refuse("its tree has no beginning")
        return tuple(sorted(entry.name for entry in self.folder("").values()))

    def where(self, inner: str) -> str:
        """Return the path on the broker of a path in the capture, and the node.

        Args:
            inner: relative to the root of the capture.
        """
        node = self.manifest.get("node")
        node_id = node.get("node_id") if isinstance(node, dict) else None
        return f"{self.origin(inner)} of {'its broker' if node_id is None else f'broker {node_id}'}"

    def origin(self, inner: str) -> str:
        """Return the path on the broker of a path in the capture.

        Args:
            inner: relative to the root of the capture; its first part stands for a data directory.
        """
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

    def folder(self, inner: str) -> Mapping[str, CapturedEntry]:
        """Return the entries of a directory, by name.

        Args:
            inner: relative to the root of the capture, which is empty.

        Raises:
            KeyError: the capture has no such directory.
            EvidenceUnreadable: what it says of it can't be used.
        """
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

    def entry(self, inner: str) -> CapturedEntry | None:
        """Return the entry at a path; none where there is none.

        Args:
            inner: relative to the root of the capture.

        Raises:
            EvidenceUnreadable: what the capture says of its directory can't be used.
        """
        folder, _, name = inner.rpartition("/")
        try:
            return self.folder(folder).get(name)
        except KeyError:
            return None

    def folders(self) -> tuple[str, ...]:
        """Return the paths of all directories that were captured."""
        return tuple(self._folders)

    def has_folder(self, inner: str) -> bool:
        """Whether a directory of that path was captured.

        Args:
            inner: relative to the root of the capture.
        """
        return inner in self._folders

    def _read_block(self, block: int) -> dict[str, dict[str, CapturedEntry]]:
        number = self._numbers.get(f"tree/{block:06d}.json")
        if number is None:
            raise self.refuse(f"it has no part tree/{block:06d}.json")
        found = self._parsed(self.part(number))
        try:
            return {
                str(path): {entry.name: entry for entry in (_entry(one, block) for one in entries)}
                for path, entries in found.items()
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self.refuse(f"part tree/{block:06d}.json says nothing that could be: {error}") from error

    def bytes_of(self, inner: str, entry: CapturedEntry) -> "CapturedFile":
        """Return the file, where its bytes were taken along.

        Args:
            inner: relative to the root of the capture.
            entry: of the file, whose content says where they are.

        Raises:
            EvidenceUnreadable: they can't be where the capture says, or could not be read when it was taken.
            MissingBytes: they stayed on the broker.
        """
        content = entry.content
        if "tar" in content:
            number = self._numbers.get(f"files/{entry.block:06d}.tar", -1)
            start = _count(content["tar"])
            if start + entry.length > self.part_length(number):
                raise self.refuse(f"the file {inner} ends behind the part that it is in")
            return CapturedFile(self, inner, entry, (number,), start)
        if "large" in content:
            first, count = (_count(one) for one in content["large"])
            numbers = tuple(range(first, first + min(count, len(self._parts))))
            lengths = [self.part_length(number) for number in numbers]
            if sum(lengths) != entry.length or any(length != CHUNK_LENGTH for length in lengths[:-1]):
                raise self.refuse(f"the parts of the file {inner} do not add up to its length")
            return CapturedFile(self, inner, entry, numbers, 0)
        if "problem" in content:
            raise EvidenceUnreadable(f"{self.path}/{inner}", str(content["problem"]))
        raise MissingBytes.of(self, inner)


class MissingBytes(EvidenceUnreadable):
    """Something was asked for that a capture does not hold: the file on the broker has it."""

    def __init__(self, path: str, where: str) -> None:
        super().__init__(path, f"the capture does not hold its bytes: read {where}")
        self.where = where

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.where)  # another process may have met it

    @classmethod
    def of(cls, capture: Capture, inner: str) -> Self:
        """Return the error for a file of a capture.

        Args:
            capture: that lacks its bytes.
            inner: the path in it.
        """
        return cls(f"{capture.path}/{inner}", capture.where(inner))


def _held_bytes(rows: Any, size: int) -> tuple[HeldBytes, ...]:
    found: list[HeldBytes] = []
    end = 0
    for position, length, part, start in rows:
        one = HeldBytes(_count(position), _count(length), None if part is None else _count(part), _count(start))
        if one.position < end or not one.length or one.end > size:
            raise ValueError("bytes that overlap, or lie behind the end")
        found.append(one)
        end = one.end
    return tuple(found)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise ValueError(f"{value!r} is no count")
    return value


def _is_folder(path: Any) -> bool:
    return isinstance(path, str) and (path == "" or all(map(_is_name, path.split("/"))))


@lru_cache(maxsize=1 << 12)  # most directories have files of the same names
def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name not in {"", ".", ".."} and "/" not in name and "\0" not in name


def _entry(one: Mapping[str, Any], block: int) -> CapturedEntry:
    name, content = one["name"], one.get("content") or {}
    if not _is_name(name):
        raise ValueError("a name leads out of the tree")
    if not isinstance(content, dict):
        raise TypeError("the content of a file is no object")
    mode, length, mtime_ns = one["mode"], one["length"], one["mtime_ns"]
    if type(mtime_ns) is not int or not -_LARGEST <= mtime_ns <= _LARGEST:
        raise ValueError("a time is none")
    if type(mode) is not int or not 0 <= mode <= 0xFFFF or not stat.S_IFMT(mode):
        raise ValueError("a mode is none")
    if type(length) is not int or not 0 <= length <= _LARGEST:
        raise ValueError("a length is none")
    return CapturedEntry(name, mode, length, mtime_ns, content, block)


_opened: dict[str, Capture] = {}


def open_capture(path: Path) -> Capture:
    """Return the capture at a path, opened once in a process.

    Args:
        path: of the archive itself.

    Raises:
        EvidenceError: it can't be read, or is none.
    """
    key = _key(path)
    if key not in _opened:
        _opened[key] = Capture(path)
    return _opened[key]


def with_records(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the captures that are open in this process, hold records of users, and are, or hold, one of the paths.

    Args:
        paths: as they were given, inside of captures or not.
    """
    given = tuple(paths)
    return tuple(
        sorted(
            {
                name
                for name, capture in ((str(one.path), one) for one in _opened.values())
                if capture.holds_records and any(one == name or one.startswith(f"{name}/") for one in given)
            }
        )
    )


def _key(path: Path) -> str:
    """Return all parts of a path; what a path on other storage shows of itself is less."""
    return Path.__str__(path)


def _real(path: Path) -> Path:
    return path if isinstance(path, ForeignPath) else Path(os.path.realpath(path))


def _below(path: Path, inner: str) -> "CapturePath":
    """Return the path of something in a capture, which is opened where it arrives."""
    open_capture(path)
    return CapturePath(path, inner) if inner else CapturePath(path)


class CapturePath(ForeignPath):
    """A path whose first parts name a capture, and whose others name something in it."""

    def __str__(self) -> str:
        capture = self._foreign()
        if capture is None:
            return _key(self)
        inner = self.place()[1]
        return f"{capture.path}/{inner}" if inner else str(capture.path)

    def __reduce__(self) -> tuple[Any, ...]:
        capture = self._foreign()
        if capture is None:
            return type(self), tuple(self.parts)
        return _below, (capture.path, self.place()[1])

    def _foreign(self) -> Capture | None:
        """Return the capture where it is on other storage, whose first part is the scheme of its URI."""
        if not self.parts or not self.parts[0].endswith(":"):
            return None
        key = _key(self)
        found = (one for name, one in _opened.items() if key == name or key.startswith(f"{name}/"))
        return next((one for one in found if isinstance(one.path, ForeignPath)), None)

    def place(self) -> tuple[Capture, str]:
        """Return the capture, and the path in it; empty for the capture itself."""
        if self._place is None:
            self._place = self._find_place()
        return self._place

    _place: tuple[Capture, str] | None = None

    def _find_place(self) -> tuple[Capture, str]:
        text = _key(self)
        parts = text.split("/")
        for at in range(len(parts), 0, -1):
            capture = _opened.get("/".join(parts[:at]))
            if capture is not None:
                return capture, "/".join(parts[at:])
        whole = Path(text)
        for one in (whole, *whole.parents):
            if is_capture(one):
                return open_capture(one), "/".join(parts[len(str(one).split("/")) :])
        raise EvidenceNotFound(text, "there is no such capture")

    def roots(self) -> tuple["CapturePath", ...]:
        """Return the captured roots, where the path names the capture itself; else the path.

        Raises:
            EvidenceUnreadable: the capture was interrupted while it was taken, or its tree is not readable.
        """
        capture, inner = self.place()
        if capture.is_interrupted:
            raise capture.refuse("taking it was interrupted: the command that took it continues from there")
        return tuple(self / name for name in capture.roots) if not inner else (self,)

    def resolved(self) -> "CapturePath":
        """Return the path below the real path of the capture."""
        capture, inner = self.place()
        real = _real(capture.path)
        open_capture(real)
        return CapturePath(real, inner) if inner else CapturePath(real)

    def resolve(self, strict: bool = False) -> "CapturePath":  # noqa: ARG002 - as pathlib has it
        """Return the path below the real path of the capture.

        Args:
            strict: as pathlib has it; of no effect.
        """
        return self.resolved()

    def _entry(self) -> CapturedEntry:
        capture, inner = self.place()
        entry = capture.entry(inner)
        if entry is None:
            raise FileNotFoundError(2, "there is no such file or directory", str(self))
        return entry

    def mode(self) -> int:
        """Return the mode on the broker; a `FileNotFoundError` where nothing was captured there."""
        capture, inner = self.place()
        if not inner or capture.has_folder(inner):
            return stat.S_IFDIR | 0o755
        return self._entry().mode

    def lstat(self) -> os.stat_result:
        """Return mode, length and time of change, as they were on the broker."""
        mode = self.mode()
        if stat.S_ISDIR(mode):
            return os.stat_result((mode, 0, 0, 1, 0, 0, 0, 0, 0, 0))
        entry = self._entry()
        seconds = entry.mtime_ns // 1_000_000_000
        numbers = (entry.mode, 0, 0, 1, 0, 0, entry.length, 0, seconds, 0)
        return os.stat_result(numbers, {"st_mtime_ns": entry.mtime_ns, "st_mtime": entry.mtime_ns / 1e9})

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - captures follow no links
        """Whether a directory was captured there.

        Args:
            follow_symlinks: as pathlib has it; of no effect.
        """
        try:
            return stat.S_ISDIR(self.mode())
        except OSError:
            return False

    is_fixed = True

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the directory."""
        return self.entries_below("")

    def entries_below(self, relative: str) -> Iterator[Entry]:
        """Return the entries of a directory.

        Args:
            relative: to this path.

        Raises:
            FileNotFoundError: it is not in the capture.
            OSError: what the capture says of it can't be used.
        """
        capture, inner = self._below(relative)
        try:
            found = capture.folder(inner)
        except KeyError:
            raise FileNotFoundError(2, "it is not in the capture", str(self / relative)) from None
        except EvidenceError as error:
            raise OSError(None, error.problem) from error
        return (Entry._make(entry[:4]) for entry in found.values())

    def open_as_evidence(self) -> EvidenceFile:
        """Return the file, with its bytes or with what was found in them."""
        return self.open_below("")

    def open_below(self, relative: str) -> EvidenceFile:
        """Return a file, with its bytes or with what was found in them.

        Args:
            relative: to this path.

        Raises:
            EvidenceError: it is not in the capture, is no regular file, or its bytes stayed on the broker.
        """
        capture, inner = self._below(relative)
        entry = capture.entry(inner)
        if entry is None:
            raise EvidenceNotFound(str(self / relative), "there is no such file in the capture")
        if not stat.S_ISREG(entry.mode):
            raise EvidenceUnreadable(str(self / relative), "not a regular file")
        if "segment" in entry.content:
            return CapturedSegment(capture, inner, entry)
        try:
            return capture.bytes_of(inner, entry)
        except (KeyError, TypeError, ValueError) as error:
            raise capture.refuse(f"what it says of the file {inner} is impossible: {error}") from error

    def _below(self, relative: str) -> tuple[Capture, str]:
        capture, inner = self.place()
        return capture, f"{inner}/{relative}" if inner and relative else inner or relative


class _Inside(EvidenceFile):
    """A file in a capture."""

    capture: Capture
    inner: str

    @cached_property
    def path(self) -> CapturePath:  # type: ignore[override] # of thousands of files only a message needs it
        """The path of the file in its capture."""
        return CapturePath(self.capture.path, self.inner)


class CapturedFile(_Inside):
    """A file whose bytes a capture holds."""

    def __init__(self, capture: Capture, inner: str, entry: CapturedEntry, parts: tuple[int, ...], start: int) -> None:
        self.size = entry.length
        self.mtime_ns = entry.mtime_ns
        self.capture = capture
        self.inner = inner
        self._parts = parts
        self._start = start

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer and return the number of bytes read, fewer than fit only at the end of the file.

        Args:
            position: in bytes from the start of the file.
            buffer: where the bytes are written.

        Raises:
            EvidenceUnreadable: a part is not as the manifest says.
        """
        filled = 0
        while filled < len(buffer) and position + filled < self.size:
            at = self._start + position + filled
            number, within = (0, at) if self._start or len(self._parts) == 1 else divmod(at, CHUNK_LENGTH)
            data = self.capture.part(self._parts[number])
            piece = memoryview(data)[within : within + min(len(buffer) - filled, self.size - position - filled)]
            if not len(piece):
                break
            buffer[filled : filled + len(piece)] = piece
            filled += len(piece)
        return filled

    def changed(self) -> bool:
        """Return false: a capture never changes."""
        return False

    def close(self) -> None:
        """Do nothing: the capture stays open."""


class CapturedSegment(_Inside):
    """A segment of which a capture holds what a scan found, and perhaps some of its bytes."""

    def __init__(self, capture: Capture, inner: str, entry: CapturedEntry) -> None:
        self.size = entry.length
        self.mtime_ns = entry.mtime_ns
        self.capture = capture
        self.inner = inner
        self.block = entry.block
        self.row: Mapping[str, Any] = entry.content["segment"] if isinstance(entry.content["segment"], dict) else {}
        self._held: tuple[HeldBytes, ...] | None = None

    def missing(self) -> MissingBytes:
        """Return the error that says where the bytes are."""
        return MissingBytes.of(self.capture, self.inner)

    def held(self) -> tuple[HeldBytes, ...]:
        """Return the bytes that the capture holds, in the order of their positions; none overlap.

        Raises:
            EvidenceUnreadable: what the capture says of them is impossible.
        """
        if self._held is None:
            try:
                self._held = _held_bytes(self.row.get("bytes") or (), self.size)
            except (TypeError, ValueError) as error:
                raise self.capture.refuse(
                    f"what it says of the bytes of {self.inner} is impossible: {error}"
                ) from error
        return self._held

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer as from the file on the broker, and return the number of bytes read, fewer than fit only at its end.

        Args:
            position: in bytes from the start of the file on the broker.
            buffer: where the bytes are written; holes of the file are zeros.

        Raises:
            MissingBytes: some of the bytes stayed on the broker.
            EvidenceUnreadable: a part is not as the manifest says.
        """
        held, filled = self.held(), 0
        wanted = max(min(len(buffer), self.size - position), 0)
        at = bisect_right(held, position, key=lambda one: one.position) - 1
        while filled < wanted:
            if not 0 <= at < len(held) or not held[at].position <= position + filled < held[at].end:
                raise self.missing()
            one, within = held[at], position + filled - held[at].position
            count = min(wanted - filled, one.length - within)
            piece = bytes(count) if one.part is None else self.capture.record_bytes(one.part, one.start + within, count)
            buffer[filled : filled + count] = piece
            filled, at = filled + count, at + 1
        return filled

    def changed(self) -> bool:
        """Whether it changed while it was captured."""
        return bool(self.row.get("changed"))

    def close(self) -> None:
        """Do nothing: the capture stays open."""
