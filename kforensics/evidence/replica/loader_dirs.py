"""Log directories as a broker's start finds them: marker, offset checkpoints, and every sub-directory with its plain files."""

import stat
import sys
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.loader_reader import read_offset_checkpoint
from kforensics.formats.log.loader_values import LoadFailure
from kforensics.source.walk import Listing, Obstacle, join
from kforensics.units import TopicPartition

MARKER = ".kafka_cleanshutdown"
RECOVERY_POINTS, LOG_STARTS = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_POSITIONS = "cleaner-offset-checkpoint"
CHECKPOINT_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class FoundDirectory:
    """A sub-directory of a log directory, whatever its name; what is in it is taken from the listing whenever it is asked for."""

    name: str
    path: str
    """Relative to the input."""
    _input: FoundInput
    _without: Collection[str]

    def content(self, *, once: bool = False) -> "DirectoryContent":
        """Return what is in it."""
        listings = self._input.listings
        found = listings.once(self.path) if once else listings.of(self.path)
        listing = _left(found, self.path, self._without)
        files: dict[str, int] = {}
        folders: list[str] = []
        links: list[str] = []
        for name, mode, length, _ in listing.entries:
            if stat.S_ISREG(mode):
                files[name] = length
            else:
                (links if stat.S_ISLNK(mode) else folders).append(name)
        return DirectoryContent(files, frozenset(folders), tuple(links), listing.obstacles)

    def forget(self) -> None:
        """Drop what is known of it: whoever asks again has it listed again."""
        self._input.listings.forget(self.path)


class DirectoryContent(NamedTuple):
    """The names in a directory."""

    files: dict[str, int]
    """Plain files with their sizes."""
    folders: frozenset[str]
    """Names of what is neither a plain file nor a link."""
    links: tuple[str, ...]
    """Names of symbolic links, which a broker follows and nothing here does."""
    obstacles: tuple[Obstacle, ...]
    """What could not be read of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLogs:
    """One log directory of an input."""

    path: str
    """Relative to the input."""
    has_marker: bool
    recovery_points: dict[TopicPartition, int] | LoadFailure
    log_starts: dict[TopicPartition, int] | LoadFailure
    high_watermarks: dict[TopicPartition, int] | LoadFailure
    cleaner_positions: dict[TopicPartition, int] | LoadFailure
    directories: tuple[FoundDirectory, ...]
    files: frozenset[str]
    """Names of its plain files."""


def find_logs(
    index: int, one: FoundInput, problems: list[Problem], without: Collection[str] = ()
) -> tuple[FoundLogs, ...]:
    """Return the log directories of an input; what can't be read is added to `problems`."""
    return tuple(_log_dir(index, one, log_dir, problems, without) for log_dir in one.log_dir_paths)


def _left(listing: Listing, path: str, without: Collection[str]) -> Listing:
    if not without:
        return listing
    return listing._replace(entries=tuple(one for one in listing.entries if join(path, one.name) not in without))


def _log_dir(index: int, one: FoundInput, path: str, problems: list[Problem], without: Collection[str]) -> FoundLogs:
    listing = _left(one.listings.of(path), path, without)
    problems += [Problem(input=index, path=met.path, message=met.message) for met in listing.obstacles]
    problems += [
        Problem(input=index, path=join(path, entry.name), message="a symbolic link, which is not followed")
        for entry in listing.entries
        if stat.S_ISLNK(entry.mode)
    ]
    names = {entry.name for entry in listing.entries if not entry.is_directory}
    return FoundLogs(
        path=path,
        has_marker=MARKER in names,
        recovery_points=_checkpoint(index, one, join(path, RECOVERY_POINTS), names, problems),
        log_starts=_checkpoint(index, one, join(path, LOG_STARTS), names, problems),
        high_watermarks=_checkpoint(index, one, join(path, HIGH_WATERMARKS), names, problems),
        cleaner_positions=_checkpoint(index, one, join(path, CLEANER_POSITIONS), names, problems),
        directories=tuple(
            FoundDirectory(sys.intern(entry.name), sys.intern(join(path, entry.name)), one, without)
            for entry in listing.entries
            if entry.is_directory
        ),
        files=frozenset(entry.name for entry in listing.entries if stat.S_ISREG(entry.mode)),
    )


def _checkpoint(
    index: int, one: FoundInput, path: str, names: set[str], problems: list[Problem]
) -> dict[TopicPartition, int] | LoadFailure:
    if path.rpartition("/")[2] not in names:
        return {}
    try:
        return read_offset_checkpoint(one.read_small(path, CHECKPOINT_LIMIT))
    except EvidenceError as error:
        problems.append(Problem(input=index, path=path, message=error.problem))
        return LoadFailure("KafkaStorageException", error.problem, is_io=True)
