"""The state of evidence at one moment, file by file, and how it differs from its state at another."""

import hashlib
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.model import Problem
from kforensics.source.mapped import link_target, open_evidence
from kforensics.source.walk import Obstacle, TreeEntry, walk_tree
from kforensics.words import utc_second

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

    Args:
        number: of the input, from 0.
        jobs: the number of threads that read and hash.

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
    """Yield what differs, and each sealed entry that holds; both sides come in their order and neither is held in memory.

    Args:
        found: those of now, in the same order.
        problems: where a path that could not be read is added.
    """
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
    """Return a time with all nine digits behind the point, which a number in JSON would lose; unknown where it is in no year from 1 to 9999.

    Args:
        time_ns: since 1970.
    """
    seconds, rest = divmod(time_ns, 1_000_000_000)
    text = utc_second(seconds)
    return Absent.UNKNOWN if text is None else f"{text}.{rest:09d}Z"
