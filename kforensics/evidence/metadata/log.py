"""The KRaft metadata log of one node, read whole: its segments and snapshots become the history of the cluster.

Where the log begins above 0 the oldest snapshot that reaches its start opens the history; where a part of it can't be read the next snapshot closes the gap.
Nothing here says whether a record was committed: compare the logs of several controllers for that (`compare.py`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, Span
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, Inputs
from kforensics.evidence.metadata.files import MetadataFiles, RecordPlaces, find_metadata_logs
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.partitions import PartitionHistories
from kforensics.evidence.metadata.replay import MetadataReplay
from kforensics.evidence.metadata.state import QuorumChange, SnapshotFile, TopicState, Unread, When, newest_log
from kforensics.evidence.model import Citation, Problem
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import CONTROL_BIT, NO_TIMESTAMP, BatchTable, empty_batches
from kforensics.formats.messages.control import ControlRecord, ControlType, parse_control_record
from kforensics.formats.messages.metadata import parse_metadata_record
from kforensics.formats.messages.metadata_bulk import OtherRecord, PartitionRecords, sort_records
from kforensics.formats.messages.schema import Decoded, Undecoded, not_understood
from kforensics.formats.segment.walk import iter_record_chunks, iter_records
from kforensics.source.mapped import open_evidence
from kforensics.source.walk import join
from kforensics.units import EpochEntry


def read_metadata_log(files: MetadataFiles) -> MetadataHistory:
    """Return the history in one node's metadata log; bytes that can't be read become damage or a problem in it."""
    return _LogReader(files, RecordPlaces(files.input)).read()


def read_metadata_logs(inputs: Inputs) -> list[MetadataHistory]:
    """Return the history of every metadata log among the inputs; the newest keeps its partitions, the others are to be compared with it only."""
    histories: list[MetadataHistory] = []
    for files in find_metadata_logs(inputs):
        histories.append(read_metadata_log(files))
        newest = newest_log(histories)
        histories = [one if one is newest else one.without_partitions() for one in histories]
    return histories


@dataclass(slots=True)
class _LogReader:
    """A reader of one log, which adds all records to the history."""

    files: MetadataFiles
    places: RecordPlaces
    replay: MetadataReplay = field(default_factory=MetadataReplay)
    snapshots: list[SnapshotFile] = field(default_factory=list)
    quorum: list[QuorumChange] = field(default_factory=list)
    named_voters: tuple[int, ...] = ()
    """As the newest record names them: a leader change, or a change of the voters alone (KIP-853)."""
    voter_directories: dict[int, str] = field(default_factory=dict)
    """The directory id of each voter by the newest record or snapshot that names it (KIP-853)."""
    kraft_version: int = -1
    directories_from: int = -1
    """The offset of that record, or that the snapshot covers last."""
    damage: list[tuple[str, Damage]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unread: dict[tuple[str, str], Unread] = field(default_factory=dict)
    """By file and reason: of a newer release every record may have a field that is not known."""
    formats: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    batches: list[BatchTable] = field(default_factory=list)
    start_offset: int | None = None
    next_offset: int = 0
    is_log_known: bool = True

    def read(self) -> MetadataHistory:
        for end_offset, raft_epoch, path in self.files.snapshots:
            self._read_snapshot(end_offset, raft_epoch, path)
        for path in self.files.segments:
            try:
                self._read_segment(path)
            except EvidenceError as error:
                self._problem(path, error.problem)
                self.is_log_known = False
        complete = [one for one in self.snapshots if one.is_complete]
        if complete and (self.start_offset is None or complete[-1].end_offset > self.next_offset):
            self._apply_snapshot(complete[-1])  # a start drops the log for it (`truncateToLatestSnapshot`)
        if self.files.directory and not self.files.segments and self.next_offset:
            self._problem(
                self.files.directory,
                f"no segment of the log is here: what follows its snapshot at offset {self.next_offset} is missing",
            )
        self.replay.finish(self.next_offset - 1)
        for one in self.unread.values():
            self._problem(one.path, one.message)
        batches = np.concatenate(self.batches) if self.batches else empty_batches()
        replay, steps = self.replay, self.replay.partitions
        return MetadataHistory(
            input=self.files.input,
            node_id=self.files.node_id,
            directory=self.files.directory,
            start_offset=self.next_offset if self.start_offset is None else self.start_offset,
            end_offset=self.next_offset,
            epochs=raft_epochs(batches),
            batches=batches,
            topics=replay.topics,
            topic_ids=_ids_by_name(replay.topics.values()),
            partitions=PartitionHistories(steps.keys, steps.topics, steps.statuses, steps.steps(), self.places),
            brokers=replay.brokers,
            cordoning=replay.cordoning,
            controllers=replay.controllers,
            configs=replay.configs,
            features=replay.features,
            acls=replay.acls,
            producer_ids=replay.producer_ids,
            quorum=self.quorum,
            current_voters=self._voters,
            voter_directories=self.voter_directories,
            has_no_voter=self.directories_from >= 0 and not self.voter_directories,
            kraft_version=self.kraft_version,
            quorum_state=None if self.quorum else self._by_quorum_state(),
            snapshots=tuple(self.snapshots),
            aborted=tuple(replay.aborted),
            gaps=tuple(self.gaps),
            unapplied=tuple(replay.unapplied),
            unread=tuple(self.unread.values()),
            formats=self.formats,
            damage=tuple(self.damage),
            problems=tuple(self.problems),
            is_log_known=self.is_log_known,
            migration=replay.migration,
        )

    @property
    def _voters(self) -> tuple[int, ...]:
        """The voters by the newest record that names them, else by the files beside the log."""
        return self.named_voters or tuple(sorted(self.files.voters))

    def _by_quorum_state(self) -> QuorumChange | None:
        state = self.files.quorum
        if state is None or not isinstance(state.leader_id, int) or not isinstance(state.leader_epoch, int):
            return None
        citation = Citation(input=self.files.input, path=join(self.files.directory, "quorum-state"))
        when = When(self.next_offset, state.leader_epoch, NO_TIMESTAMP, citation, from_snapshot=True)
        return QuorumChange(state.leader_id, state.leader_epoch, self._voters, when)

    def _problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(input=self.files.input, path=path, message=message))

    def _read_segment(self, path: str) -> None:
        with open_evidence(self._location(path)) as file:
            table: BatchTable | None = None
            first_place = 0
            for chunk in iter_record_chunks(file):
                if isinstance(chunk, Damage):
                    self.damage.append((path, chunk))
                    continue
                if chunk.batches is not table:
                    table = chunk.batches
                    self.batches.append(table[table["crc_valid"]])
                    first_place = self.places.add_batches(path, table)
                self._read_chunk(path, chunk, first_place)

    def _read_chunk(self, path: str, chunk: RecordChunk, first_place: int) -> None:
        offsets = chunk.offset
        behind = np.maximum.accumulate(offsets) + 1
        expected = np.concatenate(([self.next_offset], np.maximum(behind[:-1], self.next_offset)))
        bases = chunk.batches["base_offset"][chunk.rows]
        begins_batch = np.diff(chunk.rows, prepend=-1) != 0
        breaks = np.flatnonzero(begins_batch & (bases > expected)).tolist()
        if self.start_offset is None:
            breaks = [0, *(place for place in breaks if place)]
        begins_with_one = bool(breaks) and not breaks[0]
        starts = breaks if begins_with_one else [0, *breaks]
        for first, end in zip(starts, [*starts[1:], len(offsets)], strict=True):
            if first or begins_with_one:
                self._expect(int(bases[first]), path)
            # Records that the snapshot covers are not applied again.
            is_new = offsets[first:end] >= np.maximum(expected[first:end], self.next_offset)
            self._read_rows(path, chunk, first + np.flatnonzero(is_new), first_place)
            self.next_offset = max(self.next_offset, int(behind[end - 1]))

    def _read_rows(self, path: str, chunk: RecordChunk, rows: NDArray[np.intp], first_place: int) -> None:
        for part in sort_records(chunk, rows):
            if isinstance(part, PartitionRecords):
                places = first_place + chunk.rows[part.rows]
                self._partitions(path, part, chunk.offset[part.rows], chunk.timestamp_ms[part.rows], places)
                continue
            place = first_place + int(chunk.rows[part.row])
            when = self.places.when(place, int(chunk.offset[part.row]), int(chunk.timestamp_ms[part.row]))
            if part.is_control:
                self._control(path, part.key, part.value, when)
            else:
                self._message(path, part.value, when, place)

    def _partitions(
        self,
        path: str,
        records: PartitionRecords,
        offsets: NDArray[np.int64],
        times: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> None:
        if self.replay.is_in_transaction:
            left: Sequence[int] = range(len(records.rows))
        else:
            left = self.replay.add_partitions(records, offsets, times, places)
            for at in self.replay.partitions.odd:
                self._not_understood(path, int(offsets[at]), parse_metadata_record(records.value(at)))
        for at in left:
            when = self.places.when(int(places[at]), int(offsets[at]), int(times[at]))
            self._message(path, records.value(at), when, int(places[at]))

    def _location(self, path: str) -> Path:
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
            closed = "a snapshot has the state behind it" if snapshot is not None else "no snapshot covers them"
            self._problem(path, f"metadata records {first_missing}..{last_missing} are missing; {closed}")

    def _snapshot_for(self, first_missing: int, base_offset: int) -> SnapshotFile | None:
        complete = [one for one in self.snapshots if one.is_complete and one.end_offset > first_missing]
        reaching = [one for one in complete if one.end_offset >= base_offset]
        if reaching:
            return reaching[0]
        return complete[-1] if complete else None

    def _apply_snapshot(self, snapshot: SnapshotFile) -> None:
        span = snapshot.citation.span
        time = snapshot.last_contained_timestamp_ms
        place = self.places.add_snapshot(
            snapshot.citation.path, 0 if isinstance(span, Absent) else span.length, snapshot.raft_epoch
        )
        when = self.places.when(
            place, max(snapshot.end_offset - 1, 0), NO_TIMESTAMP if isinstance(time, Absent) else time
        )
        self.replay.finish(self.next_offset - 1)
        try:
            self.replay.apply_snapshot(self._messages_of(snapshot.citation.path, when.offset), when, place)
        except EvidenceError as error:
            self._problem(snapshot.citation.path, error.problem)
        self.next_offset = max(self.next_offset, snapshot.end_offset)

    def _control(self, path: str, key: bytes | None, value: bytes | None, when: When) -> None:
        control = parse_control_record(key, value)
        if isinstance(control.value, Undecoded) and control.value.is_newer:
            self._not_understood(path, when.offset, control.value)
        if control.type is ControlType.LEADER_CHANGE and isinstance(control.value, Decoded):
            fields = control.value.fields
            voters = tuple(voter["voter_id"] for voter in fields["voters"] or ())
            self.quorum.append(QuorumChange(fields["leader_id"], when.raft_epoch, voters, when))
            self.named_voters = voters
        self._note_quorum(control, when.offset)
        if control.type is ControlType.KRAFT_VOTERS and isinstance(control.value, Decoded):
            self.named_voters = tuple(sorted(self.voter_directories))

    def _note_quorum(self, control: ControlRecord, offset: int) -> None:
        """Note the directory ids of voters, and a level that no release knows."""
        if not isinstance(control.value, Decoded):
            return
        fields = control.value.fields
        if control.type is ControlType.KRAFT_VERSION:
            self.kraft_version = max(self.kraft_version, fields["k_raft_version"])
        if control.type is ControlType.KRAFT_VOTERS and offset > self.directories_from:
            named = fields["voters"]
            self.voter_directories = {voter["voter_id"]: voter["voter_directory_id"] for voter in named}
            self.directories_from = offset

    def _message(self, path: str, value: bytes | None, when: When, place: int) -> None:
        message = Undecoded("there is no value") if value is None else parse_metadata_record(value)
        if isinstance(message, Decoded):
            self.replay.add(message, when, place)
            self.formats[message.name, message.version] = path, when.offset
        self._not_understood(path, when.offset, message, is_empty=not value)

    def _not_understood(self, path: str, offset: int, message: Decoded | Undecoded, *, is_empty: bool = False) -> None:
        if isinstance(message, Undecoded):
            words = f"{message.name or 'a record'} is not understood: {message.reason}"
        elif not (words := not_understood(message)):
            return
        known = self.unread.get((path, words))
        self.unread[path, words] = (
            known._replace(records=known.records + 1)
            if known is not None
            else Unread(
                path, offset, words, is_newer=isinstance(message, Decoded) or message.is_newer, is_empty=is_empty
            )
        )

    def _read_snapshot(self, end_offset: int, raft_epoch: int, path: str) -> None:
        """Look whether a snapshot is whole; its records are read when they are needed."""
        time: int | Absent = Absent.NOT_WRITTEN
        is_ended = is_damaged = False
        try:
            with open_evidence(self._location(path)) as file:
                length = file.size
                for chunk in iter_record_chunks(file):
                    if isinstance(chunk, Damage):
                        self.damage.append((path, chunk))
                        is_damaged |= chunk.hides_content
                        continue
                    for control in _controls(chunk):
                        if control.type is ControlType.SNAPSHOT_HEADER and isinstance(control.value, Decoded):
                            time = control.value.fields["last_contained_log_timestamp"]
                        self._note_quorum(control, max(end_offset - 1, 0))
                        is_ended |= control.type is ControlType.SNAPSHOT_FOOTER
        except (EvidenceError, FormatError) as error:
            self._problem(path, error.problem if isinstance(error, EvidenceError) else str(error))
            return
        is_complete = is_ended and not is_damaged
        if not is_complete:
            self._problem(path, "the snapshot has no footer or is damaged; it is not used")
        citation = Citation(input=self.files.input, path=path, span=Span(0, length))
        self.snapshots.append(SnapshotFile(end_offset, raft_epoch, time, citation, is_complete))

    def _messages_of(self, path: str, end_offset: int) -> Iterator[Decoded]:
        """Yield the records of a snapshot; what is not understood was written by the last offset that it covers."""
        with open_evidence(self._location(path)) as file:
            for record in iter_records(file):
                if isinstance(record, Damage) or record.is_control or record.value is None:
                    continue
                message = parse_metadata_record(record.value)
                self._not_understood(path, end_offset, message)
                if isinstance(message, Decoded):
                    yield message


def _ids_by_name(topics: Iterable[TopicState]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for topic in sorted(topics, key=lambda topic: topic.created.offset):
        found.setdefault(topic.name, []).append(topic.topic_id)
    return found


def _controls(chunk: RecordChunk) -> Iterator[ControlRecord]:
    is_control = chunk.batches["attributes"][chunk.rows] & CONTROL_BIT > 0
    for part in sort_records(chunk, np.flatnonzero(is_control)):
        if isinstance(part, OtherRecord):
            yield parse_control_record(part.key, part.value)


def raft_epochs(batches: BatchTable) -> tuple[EpochEntry, ...]:
    """Return the offset at which each leader epoch of the metadata log begins, from its batches."""
    epochs = batches["partition_leader_epoch"]
    firsts = np.flatnonzero(np.diff(epochs, prepend=-2))
    return tuple(
        EpochEntry(epoch, offset)
        for epoch, offset in zip(epochs[firsts].tolist(), batches["base_offset"][firsts].tolist(), strict=True)
    )
