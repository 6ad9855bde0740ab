"""The KRaft metadata log of one node, read whole: its segments and snapshots become the history of the cluster.

Where the log begins above 0 the oldest snapshot that reaches its start opens the history; where a part of it can't be
read the next snapshot closes the
gap. Nothing here says whether a record was committed: compare the logs of several controllers for that
(`metadata_compare.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kforensics.damage import Absent, Damage, Gravity, Span
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.metadata_history import MetadataHistory
from kforensics.evidence.metadata_replay import MetadataReplay
from kforensics.evidence.metadata_state import (
    QuorumChange,
    SnapshotFile,
    When,
)
from kforensics.evidence.model import Citation, Problem
from kforensics.formats.batch_table import BatchTable, empty_batches
from kforensics.formats.control_record import ControlType, parse_control_record
from kforensics.formats.message_schema import Decoded, Undecoded
from kforensics.formats.metadata_record import parse_metadata_record
from kforensics.formats.segment import Level, iter_records, walk_segment
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import FileKind, FileSuffix, parse_partition_directory
from kforensics.source.walk import FoundDirectory, FoundFile
from kforensics.units import EpochEntry

__all__ = ["MetadataFiles", "MetadataHistory", "find_metadata_logs", "newest_log", "raft_epochs", "read_metadata_log"]

NO_TIME = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFiles:
    """The files of one node's metadata log, by path relative to the input."""

    input: int
    node_id: int | Absent
    root: Path
    directory: str
    segments: tuple[str, ...]
    """In the order of their base offsets."""
    snapshots: tuple[tuple[int, int, str], ...]
    """End offset, raft epoch and path, in the order of the end offsets."""


def find_metadata_logs(inputs: Inputs) -> tuple[MetadataFiles, ...]:
    """The metadata logs among the inputs, brokers' copies too; a single snapshot or segment is a log of its own."""
    return tuple(one for number, found in enumerate(inputs.found) for one in _metadata_files(number, found))


def newest_log(histories: Sequence[MetadataHistory]) -> MetadataHistory | None:
    """The log that a new controller would have to hold: highest last epoch, then the longest; a voter's before a copy."""
    return max(histories, key=lambda one: (one.last_epoch, one.end_offset, one.is_of_voter), default=None)


def read_metadata_log(files: MetadataFiles) -> MetadataHistory:
    """The history that one node's metadata log tells; what can't be read is damage or a problem in it."""
    return _LogReader(files).read()


def _metadata_files(number: int, found: FoundInput) -> Iterator[MetadataFiles]:
    by_directory: dict[str, list[FoundFile]] = {}
    for one in found.walk():
        if not isinstance(one, FoundFile) or one.name.suffix is not FileSuffix.NONE:
            continue
        if one.path == WHOLE_INPUT:
            if one.name.kind is FileKind.METADATA_SNAPSHOT or (
                one.name.kind is FileKind.SEGMENT and is_metadata_directory(found.root.parent.name)
            ):
                by_directory.setdefault("", []).append(one)
        elif isinstance(one.partition, FoundDirectory) and _is_metadata(one.partition):
            by_directory.setdefault(one.partition.path, []).append(one)
    for directory, members in sorted(by_directory.items()):
        segments = [one for one in members if one.name.kind is FileKind.SEGMENT]
        snapshots = [one for one in members if one.name.kind is FileKind.METADATA_SNAPSHOT]
        if segments or snapshots:
            yield MetadataFiles(
                input=number,
                node_id=found.described.broker_id,
                root=found.root,
                directory=directory,
                segments=tuple(one.path for one in sorted(segments, key=lambda one: _number(one.name.base_offset))),
                snapshots=tuple(
                    sorted(
                        (_number(one.name.base_offset), _number(one.name.leader_epoch), one.path) for one in snapshots
                    )
                ),
            )


def is_metadata_directory(name: str) -> bool:
    """Whether a directory's name is that of the metadata log."""
    parsed = parse_partition_directory(name)
    return parsed is not None and parsed.is_metadata


def _is_metadata(directory: FoundDirectory) -> bool:
    return not isinstance(directory.name, Absent) and directory.name.is_metadata


def _number(value: int | Absent) -> int:
    return 0 if isinstance(value, Absent) else value


@dataclass(slots=True)
class _LogReader:
    """Reads one log; everything it holds goes into the history."""

    files: MetadataFiles
    replay: MetadataReplay = field(default_factory=MetadataReplay)
    snapshots: list[SnapshotFile] = field(default_factory=list)
    contents: dict[int, tuple[Decoded, ...]] = field(default_factory=dict)
    quorum: list[QuorumChange] = field(default_factory=list)
    damage: list[tuple[str, Damage]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    batches: list[BatchTable] = field(default_factory=list)
    start_offset: int | None = None
    next_offset: int = 0

    def read(self) -> MetadataHistory:
        for end_offset, raft_epoch, path in self.files.snapshots:
            self._read_snapshot(end_offset, raft_epoch, path)
        for path in self.files.segments:
            try:
                self._read_segment(path)
            except EvidenceError as error:
                self._problem(path, error.problem)
        if self.start_offset is None:
            self._open_with_newest_snapshot()
        self.replay.finish()
        batches = np.concatenate(self.batches) if self.batches else empty_batches()
        replay = self.replay
        return MetadataHistory(
            input=self.files.input,
            node_id=self.files.node_id,
            directory=self.files.directory,
            start_offset=self.next_offset if self.start_offset is None else self.start_offset,
            end_offset=self.next_offset,
            epochs=raft_epochs(batches),
            batches=batches,
            topics=replay.topics,
            partitions=replay.partitions,
            brokers=replay.brokers,
            controllers=replay.controllers,
            configs=replay.configs,
            features=replay.features,
            quorum=self.quorum,
            snapshots=tuple(self.snapshots),
            aborted=tuple(replay.aborted),
            gaps=tuple(self.gaps),
            unapplied=tuple(replay.unapplied),
            damage=tuple(self.damage),
            problems=tuple(self.problems),
        )

    def _problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(input=self.files.input, path=path, message=message))

    def _read_segment(self, path: str) -> None:
        with open_evidence(self._place(path)) as file:
            lengths: dict[int, int] = {}
            for window in walk_segment(file, level=Level.CRC):
                sound = window.batches[window.batches["crc_valid"]]
                self.batches.append(sound)
                lengths.update(zip(sound["position"].tolist(), sound["length"].tolist(), strict=True))
            position = -1
            citation = Citation(input=self.files.input, path=path)
            for record in iter_records(file):
                if isinstance(record, Damage):
                    self.damage.append((path, record))
                    continue
                if record.batch_position != position:
                    position = record.batch_position
                    citation = Citation(
                        input=self.files.input, path=path, span=Span(position, lengths.get(position, 0))
                    )
                    self._expect(record.batch_base_offset, path)
                when = When(record.offset, record.partition_leader_epoch, record.timestamp_ms, citation)
                if record.offset < self.next_offset:
                    continue  # a snapshot stood in for it
                self.next_offset = record.offset + 1
                if record.is_control:
                    self._control(record.key, record.value, when)
                else:
                    self._message(record.value, when)

    def _place(self, path: str) -> Path:
        return self.files.root if path == WHOLE_INPUT else self.files.root / path

    def _expect(self, base_offset: int, path: str) -> None:
        """Open the log with a snapshot, or close a gap with one."""
        if self.start_offset is None:
            self.start_offset = base_offset
            if base_offset == 0:
                return
        elif base_offset <= self.next_offset:
            return
        first_missing = self.next_offset
        snapshot = self._snapshot_for(first_missing, base_offset)
        if snapshot is not None:
            self._apply_snapshot(snapshot)
        opens = first_missing == 0
        if snapshot is None or snapshot.end_offset < base_offset or not opens:
            last_missing = base_offset - 1
            self.gaps.append((first_missing, last_missing))
            closed = "a snapshot tells the state behind it" if snapshot is not None else "no snapshot covers them"
            self._problem(path, f"metadata records {first_missing}..{last_missing} are missing; {closed}")

    def _snapshot_for(self, first_missing: int, base_offset: int) -> SnapshotFile | None:
        complete = [one for one in self.snapshots if one.is_complete and one.end_offset > first_missing]
        reaching = [one for one in complete if one.end_offset >= base_offset]
        if reaching:
            return reaching[0]
        return complete[-1] if complete else None

    def _open_with_newest_snapshot(self) -> None:
        complete = [one for one in self.snapshots if one.is_complete]
        if complete:
            self._apply_snapshot(complete[-1])

    def _apply_snapshot(self, snapshot: SnapshotFile) -> None:
        time = snapshot.last_contained_timestamp_ms
        when = When(
            max(snapshot.end_offset - 1, 0),
            snapshot.raft_epoch,
            NO_TIME if isinstance(time, Absent) else time,
            snapshot.citation,
            from_snapshot=True,
        )
        self.replay.apply_snapshot(self.contents[snapshot.end_offset], when)
        self.next_offset = max(self.next_offset, snapshot.end_offset)

    def _control(self, key: bytes | None, value: bytes | None, when: When) -> None:
        control = parse_control_record(key, value)
        if control.type is ControlType.LEADER_CHANGE and isinstance(control.value, Decoded):
            fields = control.value.fields
            voters = tuple(voter["voter_id"] for voter in fields["voters"] or ())
            self.quorum.append(QuorumChange(fields["leader_id"], when.raft_epoch, voters, when))

    def _message(self, value: bytes | None, when: When) -> None:
        message = Undecoded("there is no value") if value is None else parse_metadata_record(value)
        if isinstance(message, Decoded):
            self.replay.add(message, when)
        else:
            name = message.name or "a record"
            self._problem(when.citation.path, f"offset {when.offset}: {name} is not understood: {message.reason}")

    def _read_snapshot(self, end_offset: int, raft_epoch: int, path: str) -> None:
        messages: list[Decoded] = []
        time: int | Absent = Absent.NOT_WRITTEN
        complete = False
        try:
            with open_evidence(self._place(path)) as file:
                length = file.size
                for record in iter_records(file):
                    if isinstance(record, Damage):
                        self.damage.append((path, record))
                    elif record.is_control:
                        control = parse_control_record(record.key, record.value)
                        if control.type is ControlType.SNAPSHOT_HEADER and isinstance(control.value, Decoded):
                            time = control.value.fields["last_contained_log_timestamp"]
                        complete = complete or control.type is ControlType.SNAPSHOT_FOOTER
                    elif record.value is not None and isinstance(
                        message := parse_metadata_record(record.value), Decoded
                    ):
                        messages.append(message)
        except (EvidenceError, FormatError) as error:
            self._problem(path, error.problem if isinstance(error, EvidenceError) else str(error))
            return
        complete = complete and not any(
            name == path and damage.gravity is Gravity.DAMAGE for name, damage in self.damage
        )
        if not complete:
            self._problem(path, "the snapshot has no footer or is damaged; it is not used")
        citation = Citation(input=self.files.input, path=path, span=Span(0, length))
        self.snapshots.append(SnapshotFile(end_offset, raft_epoch, time, citation, complete))
        self.contents[end_offset] = tuple(messages)


def raft_epochs(batches: BatchTable) -> tuple[EpochEntry, ...]:
    """Where each leader epoch of the metadata log begins, from its batches."""
    epochs = batches["partition_leader_epoch"]
    firsts = np.flatnonzero(np.diff(epochs, prepend=-2))
    return tuple(
        EpochEntry(epoch, offset)
        for epoch, offset in zip(epochs[firsts].tolist(), batches["base_offset"][firsts].tolist(), strict=True)
    )
