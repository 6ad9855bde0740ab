"""Seals: the state of evidence at one moment, file by file, how it differs from its state at another, and the manifest that holds it."""

import base64
import hashlib
import json
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.damage import Absent, Span
from kforensics.errors import EvidenceError, FormatError, UnexpectedEnd, UnsupportedFormat
from kforensics.evidence.model import Problem
from kforensics.evidence.plain import fields_of, plain_object, to_plain
from kforensics.source.mapped import link_target, open_evidence
from kforensics.source.walk import Obstacle, TreeEntry, walk_tree
from kforensics.words import utc_second

# The state of evidence at one moment, file by file, and how it differs from its state at another.


FILES_AT_ONCE = 64
"""Files handed to a thread together: most are small."""

AHEAD = 4
"""Groups of files that each thread may be ahead of the writer."""

CHANGED_MEANWHILE = "it changed while it was read: this seal is not of one moment"


class EntryKind(StrEnum):
    """The kind of an entry in a directory."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMBOLIC_LINK = "symbolic-link"
    SPECIAL = "special"


class SealEntry(NamedTuple):
    """One thing below an input, as it was; the hash of a symbolic link is that of its target's name."""

    input: int
    path: str
    kind: EntryKind
    length: int | Absent
    modified: str | Absent
    changed: str | Absent
    """The time of change of the inode: a copy has another one."""
    mode: str
    sha256: str | Absent
    problem: str | Absent = Absent.NOT_APPLICABLE
    """Why the hash is missing or of no single moment."""


class Change(StrEnum):
    """The difference between an entry and what was sealed."""

    CONTENT = "content"
    MISSING = "missing"
    ADDED = "added"
    TIMES = "times"
    """The time of modification or the permissions differ, and nothing else."""
    NOT_SEALED = "not-sealed"
    """The seal holds no hash of it."""
    UNREADABLE = "unreadable"


class Difference(NamedTuple):
    """One thing that is not as it was sealed."""

    change: Change
    sealed: SealEntry | Absent
    found: SealEntry | Absent

    @property
    def subject(self) -> SealEntry:
        """The sealed entry, or the found one where there is no sealed one."""
        one = self.found if isinstance(self.sealed, Absent) else self.sealed
        assert not isinstance(one, Absent)
        return one


def seal_input(number: int, root: Path, *, jobs: int = 1) -> Iterator[SealEntry | Problem]:
    """Yield everything below a root with its hash, in the order of path components whatever the number of threads.

    Yields:
        Entries, of which one that can't be read has a problem in the place of its hash, and problems of what can't be looked at.
    """

    def seal(found: list[TreeEntry | Obstacle]) -> list[SealEntry | Problem]:
        return [_seal(number, root, one) for one in found]

    walk = iter(walk_tree(root))
    groups = iter(lambda: list(islice(walk, FILES_AT_ONCE)), [])
    if jobs <= 1:
        for group in groups:
            yield from seal(group)
        return
    waiting: deque[Future[list[SealEntry | Problem]]] = deque()
    with ThreadPoolExecutor(jobs) as pool:  # hashing and reading leave the interpreter to the others
        for group in groups:
            waiting.append(pool.submit(seal, group))
            if len(waiting) >= jobs * AHEAD:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def compare_seals(
    sealed: Iterable[SealEntry], found: Iterable[SealEntry | Problem], problems: list[Problem]
) -> Iterator[Difference | SealEntry]:
    """Yield what differs, and each sealed entry that holds; both sides come in their order and neither is held in memory."""
    now = _entries(found, problems)
    before = iter(sealed)
    old, new = next(before, None), next(now, None)
    while old is not None or new is not None:
        if new is None or (old is not None and _order(old) < _order(new)):
            assert old is not None
            yield Difference(Change.MISSING, old, Absent.NOT_APPLICABLE)
            old = next(before, None)
        elif old is None or _order(new) < _order(old):
            yield Difference(Change.ADDED, Absent.NOT_APPLICABLE, new)
            new = next(now, None)
        else:
            change = _change(old, new)
            yield old if change is None else Difference(change, old, new)
            old, new = next(before, None), next(now, None)


def _entries(found: Iterable[SealEntry | Problem], problems: list[Problem]) -> Iterator[SealEntry]:
    for one in found:
        if isinstance(one, Problem):
            problems.append(one)
        else:
            yield one


def _order(entry: SealEntry) -> tuple[int, list[str]]:
    return entry.input, entry.path.split("/")


def _change(old: SealEntry, new: SealEntry) -> Change | None:
    if old.kind is not new.kind:
        return Change.CONTENT
    if old.kind in {EntryKind.FILE, EntryKind.SYMBOLIC_LINK}:
        if isinstance(new.sha256, Absent):
            return Change.UNREADABLE
        if isinstance(old.sha256, Absent):
            return Change.NOT_SEALED
        if (old.sha256, old.length) != (new.sha256, new.length):
            return Change.CONTENT
    return None if (old.modified, old.mode) == (new.modified, new.mode) else Change.TIMES


def _seal(number: int, root: Path, found: TreeEntry | Obstacle) -> SealEntry | Problem:
    if isinstance(found, Obstacle):
        return Problem(input=number, path=found.path, message=found.message)
    status = found.status
    kind = _kind(status.st_mode)
    sha256: str | Absent = Absent.NOT_APPLICABLE
    problem: str | Absent = Absent.NOT_APPLICABLE
    try:
        match kind:
            case EntryKind.FILE:
                sha256, problem = _hash(root, found)
            case EntryKind.SYMBOLIC_LINK:
                target = link_target(root / found.path)
                sha256 = hashlib.sha256(target.encode("utf-8", "surrogateescape")).hexdigest()
    except EvidenceError as error:
        sha256, problem = Absent.UNREADABLE, error.problem
    except OSError as error:
        sha256, problem = Absent.UNREADABLE, f"it can't be read: {error.strerror}"
    return SealEntry(
        input=number,
        path=found.path,
        kind=kind,
        length=status.st_size if kind in {EntryKind.FILE, EntryKind.SYMBOLIC_LINK} else Absent.NOT_APPLICABLE,
        modified=exact_utc(status.st_mtime_ns),
        changed=exact_utc(status.st_ctime_ns),
        mode=f"{stat.S_IMODE(status.st_mode):04o}",
        sha256=sha256,
        problem=problem,
    )


def _hash(root: Path, found: TreeEntry) -> tuple[str, str | Absent]:
    path = root if found.path == "." else root / found.path
    with open_evidence(path) as file:
        digest = file.sha256()
        same = (file.size, file.mtime_ns) == (found.status.st_size, found.status.st_mtime_ns) and not file.changed()
    return digest, Absent.NOT_APPLICABLE if same else CHANGED_MEANWHILE


def _kind(mode: int) -> EntryKind:
    if stat.S_ISREG(mode):
        return EntryKind.FILE
    if stat.S_ISDIR(mode):
        return EntryKind.DIRECTORY
    return EntryKind.SYMBOLIC_LINK if stat.S_ISLNK(mode) else EntryKind.SPECIAL


def exact_utc(time_ns: int) -> str | Absent:
    """Return a time with all nine digits behind the point, which a number in JSON would lose; unknown where it is in no year from 1 to 9999."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    text = utc_second(seconds)
    return Absent.UNKNOWN if text is None else f"{text}.{rest:09d}Z"


# The manifest of a seal: one JSON document with each entry on a line of its own.
#
#     manifest   head NL entry *("," NL entry) NL foot NL
#     head       {"schema": "kforensics/seal/2", "tool_version": …, "envelope": {…}, "options": {…}, "inputs": [{"path": …}], "entries": [
#     entry      {"input": 0, "path": …, "kind": …, "bytes": …, "modified_utc": …, "changed_utc": …, "mode": …, "sha256": …}
#     foot       ], "counts": {…}, "problems": [{"input": …, "path": …, "message": …}], "exit_code": 0}
#
# So a manifest of millions of files is written and read in constant memory, and any JSON reader understands it. A name that
# is not UTF-8 is `{"base64": …}`. A manifest that is formatted again is another file: seals are compared by their stored bytes.


SCHEMA = "kforensics/seal/2"
LINE_LIMIT = 1 << 20
"""Bytes a line of a manifest may have; a path is at most some thousand."""

MOST_PROBLEMS = 1_000
"""The most problems that the foot lists one by one; the entry of each problem has it too."""

_OPEN = '"entries": ['


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The person who sealed, and the time: the only part of a manifest that may differ between two looks at the same evidence."""

    sealed_ms: int
    sealed_utc: str
    case_id: str | Absent = Absent.NOT_APPLICABLE
    operator: str | Absent = Absent.NOT_APPLICABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestHead:
    """The part of the document before the entries."""

    tool_version: str
    envelope: Envelope
    inputs: tuple[str, ...]


@dataclass(slots=True)
class SealCounts:
    """The totals of a seal, added up while it is written or read."""

    files: int = 0
    directories: int = 0
    others: int = 0
    bytes: int = 0
    incomplete: int = 0
    """Entries without a hash that holds for one moment, and what could not be looked at."""
    problems: list[Problem] = field(default_factory=list)

    def count(self, one: SealEntry | Problem) -> None:
        """Add one entry or problem."""
        if isinstance(one, Problem):
            self._complain(one)
            return
        match one.kind:
            case EntryKind.FILE:
                self.files += 1
                self.bytes += 0 if isinstance(one.length, Absent) else one.length
            case EntryKind.DIRECTORY:
                self.directories += 1
            case _:
                self.others += 1
        if not isinstance(one.problem, Absent):
            self._complain(Problem(input=one.input, path=one.path, message=one.problem))

    def _complain(self, problem: Problem) -> None:
        self.incomplete += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)


def manifest_pieces(head: ManifestHead, entries: Iterable[SealEntry | Problem], counts: SealCounts) -> Iterator[str]:
    """Yield the manifest, line by line, of entries in the order of inputs and path components."""
    opening = {
        "schema": SCHEMA,
        "tool_version": head.tool_version,
        "envelope": {
            "sealed_ms": head.envelope.sealed_ms,
            "sealed_utc": head.envelope.sealed_utc,
            "case_id": head.envelope.case_id,
            "operator": head.envelope.operator,
        },
        "options": {"hash": "sha256", "follow_symbolic_links": False},
        "inputs": [{"path": path} for path in head.inputs],
    }
    yield json.dumps(to_plain(opening))[:-1] + ", " + _OPEN
    before = "\n"
    for one in entries:
        counts.count(one)
        if isinstance(one, SealEntry):
            yield before + json.dumps(_plain_entry(one))
            before = ",\n"
    foot = {
        "counts": {
            "files": counts.files,
            "directories": counts.directories,
            "others": counts.others,
            "bytes": counts.bytes,
            "incomplete": counts.incomplete,
        },
        "problems": [{"input": one.input, "path": one.path, "message": one.message} for one in counts.problems],
        "exit_code": 3 if counts.incomplete else 0,
    }
    yield "\n], " + json.dumps(to_plain(foot))[1:] + "\n"


class ManifestReader:
    """Reads a manifest line by line: first `head`, then `entries()`, whose end also checks the foot."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._position = 0
        self.head = self._read_head()
        self.counts = SealCounts()

    def entries(self) -> Iterator[SealEntry]:
        """Yield all entries, in order."""
        last: tuple[int, list[str]] | None = None
        while True:
            position, line = self._next()
            if line.startswith(b"]"):
                self._check_foot(position, line)
                return
            entry = self._entry(position, line)
            order = (entry.input, entry.path.split("/"))
            if last is not None and order <= last:
                raise self._wrong(position, line, "entries in order, each once")
            if not 0 <= entry.input < len(self.head.inputs):
                raise self._wrong(position, line, "an entry of one of the inputs")
            last = order
            self.counts.count(entry)
            yield entry

    def _read_head(self) -> ManifestHead:
        position, line = self._next()
        if not line.endswith(_OPEN.encode()):
            raise self._wrong(
                position, line, f"a manifest written by `kforensics seal`, its first line ending in {_OPEN}"
            )
        value = self._json(position, line, line + b"]}")
        if value.get("schema") != SCHEMA:
            raise UnsupportedFormat(
                Span(position, len(line)), expected=f"the schema {SCHEMA}", found=repr(value.get("schema"))[:80]
            )
        try:
            envelope = value["envelope"]
            return ManifestHead(
                tool_version=_text(value["tool_version"]),
                envelope=Envelope(
                    sealed_ms=_number(envelope["sealed_ms"]),
                    sealed_utc=_text(envelope["sealed_utc"]),
                    case_id=_text_or_absent(envelope, "case_id"),
                    operator=_text_or_absent(envelope, "operator"),
                ),
                inputs=tuple(_text(one["path"]) for one in value["inputs"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self._wrong(position, line, "the head of a manifest") from error

    def _entry(self, position: int, line: bytes) -> SealEntry:
        value = self._json(position, line, line.removesuffix(b","))
        try:
            return SealEntry(
                input=_number(value["input"]),
                path=_text(value["path"]),
                kind=EntryKind(value["kind"]),
                length=_reason(value, "bytes") if value["bytes"] is None else _number(value["bytes"]),
                modified=_text_or_absent(value, "modified_utc"),
                changed=_text_or_absent(value, "changed_utc"),
                mode=_text(value["mode"]),
                sha256=_text_or_absent(value, "sha256"),
                problem=_text(value["problem"]) if "problem" in value else Absent.NOT_APPLICABLE,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self._wrong(position, line, "an entry of a manifest") from error

    def _check_foot(self, position: int, line: bytes) -> None:
        value = self._json(position, line, b"{" + line.removeprefix(b"], "))
        counted = {"files": self.counts.files, "directories": self.counts.directories, "bytes": self.counts.bytes}
        said = value.get("counts")
        if not isinstance(said, dict) or any(said.get(name) != count for name, count in counted.items()):
            raise self._wrong(position, line, f"counts that agree with the entries ({counted})")
        if rest := next(self._lines, b""):
            raise self._wrong(self._position, rest, "nothing behind the foot of the manifest")

    def _next(self) -> tuple[int, bytes]:
        line = next(self._lines, None)
        if line is None:
            raise UnexpectedEnd(
                Span(self._position, 0), expected="the foot of the manifest", found="the end of the file"
            )
        position = self._position
        self._position += len(line)
        if len(line) > LINE_LIMIT:
            raise self._wrong(position, line, f"lines of at most {LINE_LIMIT:,} bytes")
        return position, line.rstrip(b"\n")

    def _json(self, position: int, line: bytes, text: bytes) -> dict[str, Any]:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._wrong(position, line, "JSON") from error
        if not isinstance(value, dict):
            raise self._wrong(position, line, "a JSON object")
        return value

    def _wrong(self, position: int, line: bytes, expected: str) -> FormatError:
        return FormatError(
            Span(position, len(line)), expected=expected, found=repr(line[:60].decode("utf-8", "replace"))
        )


def _plain_entry(entry: SealEntry) -> dict[str, Any]:
    fields = {
        **fields_of(entry, "input", "path", "kind"),
        "bytes": entry.length,
        "modified_utc": entry.modified,
        "changed_utc": entry.changed,
        **fields_of(entry, "mode", "sha256"),
    }
    if not isinstance(entry.problem, Absent):
        fields["problem"] = entry.problem
    return plain_object(fields.items())


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return os.fsdecode(base64.b64decode(value["base64"], validate=True))
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    return value


def _text_or_absent(row: Mapping[str, Any], name: str) -> str | Absent:
    return _reason(row, name) if row[name] is None else _text(row[name])


def _reason(row: Mapping[str, Any], name: str) -> Absent:
    return Absent(row.get("absent", {}).get(name, Absent.NOT_APPLICABLE))
