"""The rules of loading asked of a partition directory on disk: what they need is read, and nothing else."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kforensics.errors import EvidenceError, MissingBytes
from kforensics.evidence.replica.loader_reader import read_needed
from kforensics.evidence.replica.loader_scan import ScansAhead
from kforensics.formats.log.loader_values import Batches, Content, Need
from kforensics.protocol.loading.alike import OtherRules, loads_alike
from kforensics.protocol.loading.disk import LoadedDirectory, LoadOutcome, LoadSettings, Unpredictable
from kforensics.protocol.loading.load import load_after_clean_shutdown, load_partition
from kforensics.protocol.loading.versions import LoadingRules
from kforensics.source.store import store_of


@dataclass(slots=True)
class DirectoryOnDisk:
    """A partition directory as it lies there, or as earlier starts left it; `after` gives the next."""

    folder: Path
    files: Mapping[str, int]
    folders: frozenset[str] = frozenset()
    """What lies there and is no plain file."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where a file is on disk under another name."""
    written: Mapping[Need, object] = field(default_factory=dict)
    """Content that earlier starts wrote."""
    read: dict[Need, object] = field(default_factory=dict)
    """What has been read, by the names on disk; later starts need not read it again."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, by the names on disk, with what was met."""
    scans: ScansAhead | None = None
    """Segments that are scanned by several processes; None to scan each alone."""

    def load(
        self,
        *,
        clean_shutdown: bool,
        recovery_point: int,
        log_start_offset: int,
        settings: LoadSettings,
        rules: LoadingRules,
    ) -> LoadOutcome | Unpredictable:
        """Load the log as a broker does; files are read as the rules ask for them."""
        contents = _Contents(self)
        while True:
            try:
                outcome = load_partition(
                    self._directory(contents),
                    clean_shutdown=clean_shutdown,
                    recovery_point=recovery_point,
                    log_start_offset=log_start_offset,
                    settings=settings,
                    rules=rules,
                )
            except MissingBytes as error:
                return Unpredictable(f"a start reads bytes that the capture does not hold: those of {error.where}")
            except EvidenceError as error:
                return Unpredictable(error.problem)
            if not isinstance(outcome, Need):
                return outcome
            # The file can't be read: what the broker does then is played.
            contents.missing.add(outcome.file)

    def load_after_clean_shutdown(
        self, *, recovery_point: int, log_start_offset: int, settings: LoadSettings, rules: LoadingRules
    ) -> LoadOutcome | None:
        """Load the log where its log directory was closed cleanly and only derived files change, for which little is read; None where `load` has to be asked."""
        return load_after_clean_shutdown(
            self._directory(_Contents(self)),
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            settings=settings,
            rules=rules,
        )

    def loads_alike(
        self,
        outcome: LoadOutcome,
        others: OtherRules,
        *,
        clean_shutdown: bool,
        recovery_point: int,
        log_start_offset: int,
    ) -> bool:
        """Return whether other versions keep the same segments of the log, and serve the same of them; false too where only their loads can tell."""
        # What only they look at is no problem of the version that was played.
        unreadable = dict(self.unreadable)
        try:
            return loads_alike(
                self._directory(_Contents(self)),
                outcome,
                others,
                clean_shutdown=clean_shutdown,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
            )
        except EvidenceError:
            return False
        finally:
            self.unreadable = unreadable

    def _directory(self, contents: "_Contents") -> LoadedDirectory:
        return LoadedDirectory(
            name=self.folder.name,
            files=self.files,
            folders=self.folders,
            unreadable=frozenset(contents.missing),
            contents=contents,
        )

    @property
    def is_advanced(self) -> bool:
        """Whether a start has changed it."""
        return bool(self.origins or self.written)

    def after(self, outcome: LoadOutcome) -> "DirectoryOnDisk":
        """Return the directory as a load leaves it."""
        names = {before: name for name, before in outcome.origins.items()}
        # What an earlier start wrote, and this one left, is not what lies on disk under that name.
        made = {need.file for need in self.written}
        kept = {need._replace(file=names[need.file]): one for need, one in self.written.items() if need.file in names}
        origins = {name: self.origins.get(before, before) for before, name in names.items() if before not in made}
        return replace(self, files=outcome.tree, origins=origins, written={**kept, **outcome.written})


class _Contents(Mapping[Need, object]):
    """The contents of a directory's files, each read when the rules ask for it first."""

    def __init__(self, disk: DirectoryOnDisk) -> None:
        self._disk = disk
        self._known: dict[Need, object] = dict(disk.written) if disk.is_advanced else disk.read
        self.missing: set[str] = set()
        """Files that the rules asked for and that can't be read, by the names that they have now."""

    def __contains__(self, need: object) -> bool:
        """Whether a content is known, or can be read now."""
        return need in self._known or (isinstance(need, Need) and self._is_readable(need))

    def get(self, need: Need, default: Any = None) -> Any:
        """Return a content, which is read where it is not known; the default where it can't be."""
        return self._known[need] if need in self._known or self._is_readable(need) else default

    def _is_readable(self, need: Need) -> bool:
        disk, on_disk = self._disk, need
        if self._known is not disk.read:
            written = disk.written.get(need._replace(position=0))
            if isinstance(written, Batches):
                self._known[need] = written.behind(need.position)
                return True
            on_disk = need._replace(file=disk.origins.get(need.file, need.file))
        if on_disk not in disk.read:
            try:
                scanned = self._scanned(on_disk)
                disk.read[on_disk] = read_needed(disk.folder, on_disk, disk.scans) if scanned is None else scanned
            except EvidenceError as error:
                if not store_of(disk.folder).holds_bytes:  # what can't be read here can be read by the broker
                    raise
                disk.unreadable[on_disk.file] = error.problem
                return False
        if self._known is not disk.read:
            self._known[need] = disk.read[on_disk]
        return True

    def _scanned(self, need: Need) -> Batches | None:
        """Return batches that a scan of the whole file has read and found sound; none where they have to be read."""
        if need.content is not Content.BATCHES or not store_of(self._disk.folder).holds_bytes:
            return None
        found = self._disk.read.get(Need(need.file, Content.CHECKED_BATCHES))
        if not isinstance(found, Batches) or not found.are_sound:
            return None
        is_boundary = need.position == found.end or any(one.position == need.position for one in found.batches)
        return found.behind(need.position) if is_boundary else None

    def __getitem__(self, need: Need) -> object:
        if need not in self:
            raise KeyError(need)
        return self._known[need]

    def __iter__(self) -> Iterator[Need]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def bytes_scanned(outcome: LoadOutcome) -> int:
    """Return the bytes of segments that a load reads through."""
    return sum(one.length for one in outcome.scanned)
