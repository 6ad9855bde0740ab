"""`__consumer_offsets` as its replicas hold it: commits, groups, members and markers, in the order of the log."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from struct import Struct as Layout
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Damage, Span
from kforensics.evidence.coordinators.replica_log import ReplicaLog
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Citation
from kforensics.formats.columns.record_stream import KnownKeys, RecordChunk, part_of
from kforensics.formats.log.batch_table import CONTROL_BIT, NO_PRODUCER, TRANSACTIONAL_BIT, BatchTable
from kforensics.formats.messages.control import ControlType, parse_control_record
from kforensics.formats.messages.coordinators import GROUP_TABLES, parse_group_record
from kforensics.formats.messages.schema import Decoded
from kforensics.formats.segment.walk import iter_record_chunks
from kforensics.units import EpochEntry

Name = str | bytes
"""A name out of the log; as bytes where it is no UTF-8."""


class CommitKey(NamedTuple):
    """A group's position in a partition."""

    group: Name
    topic: Name
    partition: int


class Place(NamedTuple):
    """The place of a record, and when and in which leader epoch it was appended."""

    offset: int
    leader_epoch: int
    time_ms: int
    path: str
    position: int

    def cite(self, place: PartitionPlace) -> Citation:
        """Return the record's batch as a citation."""
        return Citation(input=place.state.input, path=self.path, span=Span(self.position, 0))


class Commit(NamedTuple):
    """A committed offset, or with an offset of None the tombstone of one."""

    key: CommitKey
    offset: int | None
    committed_ms: int
    expire_ms: int
    """-1 where the record names none."""
    leader_epoch: int
    """That of the last consumed record, -1 where the client did not send it (before value version 3)."""
    producer_id: int
    """That of the transaction that it is part of, else -1."""
    at: Place
    expires_with_members: bool = False
    """Its value is of version 0 or 1: it expires while the group has members, too (before KIP-211)."""


class GroupChange(NamedTuple):
    """A record about a group or one of its members; a value of None is a tombstone."""

    group: Name
    record_type: int
    member: Name
    """Empty where the record is about the group."""
    value: dict[str, Any] | None
    at: Place


class TransactionEnd(NamedTuple):
    """An end marker."""

    producer_id: int
    is_commit: bool
    at: Place


GroupEvent = Commit | GroupChange | TransactionEnd


class CommitRun(NamedTuple):
    """Commits one behind the other outside of transactions, as columns: only those that matter are decoded."""

    keys: Sequence[CommitKey]
    """The positions that `ids` counts."""
    ids: NDArray[np.int64]
    """The position of each commit."""
    offsets: NDArray[np.int64]
    """The offset of each commit."""
    leader_epochs: NDArray[np.int64]
    """The leader epoch of the last consumed record of each, -1 where the client did not send it."""
    decode: Callable[[Sequence[int]], Iterator[Commit]]
    """Gives the commits at places of the run, which rise."""
    last: Place
    """The place of the last record."""


class _PlainCommits(NamedTuple):
    """Commits of one chunk outside of transactions; the chunk has bytes of its own."""

    chunk: RecordChunk
    path: str
    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    leader_epochs: NDArray[np.int64]


_COMMIT_TYPES = frozenset({0, 1})
_UNUSED_TYPES = frozenset({4, 7, 9, 13, 15, 16, 21})
"""Assignments, which say nothing about positions or of who is a member."""

_INT16, _INT32, _INT64 = Layout(">h").unpack_from, Layout(">i").unpack_from, Layout(">q").unpack_from
_TAIL_OF_COMMIT = {0: (10, 8), 1: (10, 16), 2: (10, 8), 3: (14, 8)}
"""Of an OffsetCommitValue by version: where the metadata begins, and the bytes behind it, of which the first 8 are the commit timestamp."""

SHORTEST_COMMIT = 20
"""Bytes of the shortest value of a commit: version, offset, empty metadata, commit timestamp."""

LONGEST_RUN = 1 << 16
"""Commits of a run: the more there are, the fewer of them are decoded; each takes some 250 bytes until its run is given."""

_FIRST_WITHOUT_EXPIRY = 2
"""The first version of whose values those of a group with members do not expire (KIP-211)."""

_FIRST_WITH_EPOCH = 3
"""The first version whose values name the leader epoch of the last consumed record (KIP-320)."""

_FLEXIBLE = 4
"""The version whose metadata has a length of one byte where it is short, and whose end are tagged fields, mostly none."""


@dataclass(slots=True)
class LogOutline:
    """The outline of a log by its batches, without their records."""

    log: ReplicaLog
    end: int = 0
    last_epoch: int = -1
    newest_ms: int = -1
    cleaned_until: int = 0
    """Below this offset a cleaner removed records."""
    first_ms: int = -1
    """The time of the first batch at or behind it."""
    epochs: list[EpochEntry] = field(default_factory=list)
    """The offset at which each leader epoch begins."""
    is_whole: bool = True
    """It begins at offset 0, and nothing in it is damaged or can't be read."""

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch of the record at an offset, -1 before the first."""
        known = [entry.leader_epoch for entry in self.epochs if entry.start_offset <= offset]
        return known[-1] if known else -1


def outline(log: ReplicaLog, cleaner_point: int) -> LogOutline:
    """Read the batch headers of a log."""
    # An empty segment behind the records was rolled at its base offset, which is then the end.
    found = LogOutline(log, end=log.last_base, cleaned_until=cleaner_point, is_whole=log.first_base == 0)
    previous_end = log.first_base
    times: list[tuple[int, int]] = []
    for _, rows, _ in log.batches(log.segments):
        if len(rows):
            previous_end = _add(found, rows, previous_end)
            times.append((int(rows["base_offset"][0]), int(rows["max_timestamp"][0])))
            behind = rows[rows["last_offset"] >= found.cleaned_until]
            times += [(int(behind["base_offset"][0]), int(behind["max_timestamp"][0]))] if len(behind) else []
    found.is_whole = found.is_whole and not log.problems
    found.first_ms = next((time for offset, time in sorted(times) if offset >= found.cleaned_until), -1)
    return found


def _add(found: LogOutline, rows: BatchTable, previous_end: int) -> int:
    found.end = max(found.end, int(rows["last_offset"].max()) + 1)
    found.last_epoch = max(found.last_epoch, int(rows["partition_leader_epoch"].max()))
    found.newest_ms = max(found.newest_ms, int(rows["max_timestamp"].max()))
    ends = np.concatenate(([previous_end], rows["last_offset"][:-1] + 1))
    thinned = (rows["magic"] == 2) & (rows["count"] < rows["last_offset"] - rows["base_offset"] + 1)
    gaps = np.flatnonzero((rows["base_offset"] > ends) | thinned)
    if len(gaps):
        last = rows[gaps[-1]]
        until = int(last["last_offset"]) + 1 if thinned[gaps[-1]] else int(last["base_offset"])
        found.cleaned_until = max(found.cleaned_until, until)
    epochs = rows["partition_leader_epoch"]
    for at in np.flatnonzero(
        np.diff(np.concatenate(([found.epochs[-1].leader_epoch if found.epochs else -2], epochs)))
    ):
        found.epochs.append(EpochEntry(int(epochs[at]), int(rows["base_offset"][at])))
    return int(rows["last_offset"][-1]) + 1


def _place(chunk: RecordChunk, path: str, at: int) -> Place:
    batch = chunk.batches[chunk.rows[at]]
    return Place(
        int(chunk.offset[at]),
        int(batch["partition_leader_epoch"]),
        int(chunk.timestamp_ms[at]),
        path,
        int(batch["position"]),
    )


def _plain_commits(
    chunk: RecordChunk, data: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return the committed offset and leader epoch of each record, and which records are values of commits outside of transactions by their lengths."""
    at, length = chunk.value_position, chunk.value_length
    attributes = chunk.batches["attributes"][chunk.rows]
    flags = np.where(chunk.batches["magic"][chunk.rows] == 2, attributes & (CONTROL_BIT | TRANSACTIONAL_BIT), 0)
    is_plain = (flags == 0) & (length >= SHORTEST_COMMIT) & (chunk.key_length > 2)
    safe = np.where(is_plain, at, 0)
    if len(data) < SHORTEST_COMMIT:
        return np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.bool_)
    safe = np.minimum(safe, len(data) - SHORTEST_COMMIT)
    offsets = data[(safe + 2)[:, None] + np.arange(8)].view(">i8")[:, 0].astype(np.int64)
    version = _int16_at(data, safe)
    epochs = data[(safe + 10)[:, None] + np.arange(4)].view(">i4")[:, 0].astype(np.int64)
    epochs = np.where(version >= _FIRST_WITH_EPOCH, np.maximum(epochs, -1), -1)
    fits = np.zeros(len(at), dtype=np.bool_)
    for number, (metadata, tail) in _TAIL_OF_COMMIT.items():
        fits |= (version == number) & (_int16_at(data, safe + metadata) + metadata + 2 + tail == length)
    last = data[np.where(is_plain, at + length - 1, 0)]
    compact = data[safe + 14]
    fits |= (version == _FLEXIBLE) & (compact > 0) & (compact < 0x80) & (compact + 23 == length) & (last == 0)
    return offsets, epochs, is_plain & fits


def _int16_at(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = data[at].astype(np.int64) << 8 | data[at + 1]
    return np.where(found >= 1 << 15, found - (1 << 16), found)


def _with_own_bytes(chunk: RecordChunk) -> tuple[bytearray, RecordChunk]:
    """Return a copy of the bytes of a chunk's records, with eight more behind them, and the chunk over that copy."""
    first, end = int(chunk.key_position[0]), int(chunk.end[-1])
    data = bytearray(end - first + 8)
    data[: end - first] = chunk.view[first:end]
    return data, replace(
        chunk,
        view=memoryview(data),
        key_position=chunk.key_position - first,
        value_position=chunk.value_position - first,
        header_position=chunk.header_position - first,
        end=chunk.end - first,
    )


class GroupLogReader:
    """Reads a log of `__consumer_offsets` once; what it had to skip is counted.

    Args:
        deleted: read the segments renamed `.deleted` in place of the log.
    """

    def __init__(self, log: ReplicaLog, *, deleted: bool = False) -> None:
        self._log = log
        self._segments = log.deleted if deleted else log.segments
        self._keys: dict[bytes, tuple[int, CommitKey | None, Name, Name]] = {}
        self._numbered = KnownKeys(self._number_of)
        self._commit_keys: list[CommitKey] = []
        self._groups: set[Name] = set()
        self.skipped = 0
        """Records of unknown type or version, or that can't be decoded."""
        self.why_skipped = ""
        """Why the first of them is, in words."""

    def names(self) -> tuple[set[Name], set[CommitKey]]:
        """Return the groups that records read so far name, and the positions of their commits, those that were removed among them."""
        keys = {*self._commit_keys, *(one[1] for one in self._keys.values() if one[1] is not None)}
        return {key.group for key in keys} | self._groups, keys

    def events(self, *, from_offset: int = 0) -> Iterator[GroupEvent]:
        """Yield every record that says something about positions or members, in the order of the log."""
        for path, file in self._log.files(self._segments):
            for part in iter_record_chunks(file):
                if isinstance(part, Damage):
                    continue  # the outline of the log has noted it
                yield from self._chunk(part, path, from_offset)

    def parts(self, *, until_ms: int | None = None) -> Iterator[CommitRun | GroupEvent]:
        """Yield the same as `events`, with plain commits in runs."""
        held: list[_PlainCommits] = []
        for path, file in self._log.files(self._segments):
            for part in iter_record_chunks(file):
                if isinstance(part, Damage):
                    continue
                chunk = part
                if until_ms is not None:
                    kept = part.timestamp_ms <= until_ms
                    chunk = part if kept.all() else part_of(part, kept)
                for one in self._runs(chunk, path) if len(chunk.rows) else ():
                    is_plain = isinstance(one, _PlainCommits)
                    if held and (not is_plain or sum(len(each.ids) for each in held) >= LONGEST_RUN):
                        yield self._joined(held)
                        held = []
                    if isinstance(one, _PlainCommits):
                        held.append(one)
                    else:
                        yield one
        if held:
            yield self._joined(held)

    def _runs(self, chunk: RecordChunk, path: str) -> Iterator[_PlainCommits | GroupEvent]:
        data, chunk = _with_own_bytes(chunk)
        offsets, epochs, is_plain = _plain_commits(chunk, np.frombuffer(data, dtype=np.uint8))
        ids = np.full(len(offsets), -1, dtype=np.int64)
        ids[is_plain] = self._numbered.numbers(data, chunk.key_position[is_plain], chunk.key_length[is_plain])
        is_plain = ids >= 0
        edges = np.flatnonzero(np.diff(is_plain)) + 1
        for start, end in pairwise([0, *edges.tolist(), len(ids)]):
            run = part_of(chunk, slice(start, end))
            if is_plain[start]:
                yield _PlainCommits(run, path, ids[start:end], offsets[start:end], epochs[start:end])
            else:
                yield from self._chunk(run, path, 0)

    def _joined(self, held: Sequence[_PlainCommits]) -> CommitRun:
        last = held[-1]
        return CommitRun(
            self._commit_keys,
            np.concatenate([one.ids for one in held]),
            np.concatenate([one.offsets for one in held]),
            np.concatenate([one.leader_epochs for one in held]),
            partial(self._decode_at, held, np.cumsum([len(one.ids) for one in held])),
            _place(last.chunk, last.path, len(last.ids) - 1),
        )

    def _number_of(self, key: bytes) -> int:
        """Return a number for the position that a key of a commit names, -1 for another key."""
        parsed = self._parse_key(key)
        # A key of the first type has versions of its own.
        if parsed is None or parsed[1] is None or key[1] != 1:
            return -1
        self._commit_keys.append(parsed[1])
        return len(self._commit_keys) - 1

    def _decode_at(
        self, held: Sequence[_PlainCommits], ends: NDArray[np.int64], places: Sequence[int]
    ) -> Iterator[Commit]:
        wanted = np.asarray(places, dtype=np.int64)
        bounds = np.searchsorted(wanted, ends).tolist()
        for one, first, end, behind in zip(held, [0, *bounds], bounds, ends.tolist(), strict=False):
            if first < end:
                yield from self._decode(one, wanted[first:end] - (behind - len(one.ids)))

    def _decode(self, commits: _PlainCommits, rows: NDArray[np.int64]) -> Iterator[Commit]:
        """Yield the commits at rows of a chunk, which were found to be some."""
        chunk, path = commits.chunk, commits.path
        batches = chunk.batches[chunk.rows[rows]]
        columns = (
            chunk.offset[rows],
            batches["partition_leader_epoch"],
            chunk.timestamp_ms[rows],
            batches["position"],
            chunk.key_position[rows],
            chunk.key_length[rows],
            chunk.value_position[rows],
            chunk.value_length[rows],
        )
        view = chunk.view
        for offset, epoch, time, position, key_at, key_length, value_at, value_length in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            key, value = bytes(view[key_at : key_at + key_length]), bytes(view[value_at : value_at + value_length])
            commit = self._event(key, value, NO_PRODUCER, Place(offset, epoch, time, path, position))
            assert isinstance(commit, Commit)
            yield commit

    def _chunk(self, chunk: RecordChunk, path: str, from_offset: int) -> Iterator[GroupEvent]:
        view, table = chunk.view, chunk.batches
        attributes = table["attributes"].tolist()
        positions, epochs = table["position"].tolist(), table["partition_leader_epoch"].tolist()
        producers, magics = table["producer_id"].tolist(), table["magic"].tolist()
        columns = (
            chunk.rows,
            chunk.offset,
            chunk.timestamp_ms,
            chunk.key_position,
            chunk.key_length,
            chunk.value_position,
            chunk.value_length,
        )
        for row, offset, time, key_at, key_length, value_at, value_length in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            if offset < from_offset:
                continue
            flags = attributes[row] if magics[row] == 2 else 0
            at = Place(offset, epochs[row], time, path, positions[row])
            key = bytes(view[key_at : key_at + key_length]) if key_length >= 0 else None
            if flags & CONTROL_BIT:
                control = parse_control_record(key, None)
                if control.type in {ControlType.COMMIT, ControlType.ABORT}:
                    yield TransactionEnd(producers[row], control.type is ControlType.COMMIT, at)
                continue
            value = None if value_length < 0 else bytes(view[value_at : value_at + value_length])
            producer = producers[row] if flags & TRANSACTIONAL_BIT else NO_PRODUCER
            event = self._event(key, value, producer, at)
            if event is not None:
                yield event

    def _event(self, key: bytes | None, value: bytes | None, producer: int, at: Place) -> GroupEvent | None:
        known = None if key is None else self._keys.get(key)
        if known is None:
            known = self._parse_key(key)
            if known is None:
                self._skip(key, value)
                return None
        record_type, commit_key, group, member = known
        if commit_key is not None:
            return self._commit(key, commit_key, value, producer, at)
        if record_type in _UNUSED_TYPES:
            return None
        self._groups.add(group)
        if value is None:
            return GroupChange(group, record_type, member, None, at)
        parsed = parse_group_record(key, value).value
        if not isinstance(parsed, Decoded):
            self._skip(key, value)
            return None
        return GroupChange(group, record_type, member, parsed.fields, at)

    def _skip(self, key: bytes | None, value: bytes | None) -> None:
        self.skipped += 1
        self.why_skipped = self.why_skipped or parse_group_record(key, value).why_not_understood

    def _parse_key(self, key: bytes | None) -> tuple[int, CommitKey | None, Name, Name] | None:
        parsed = parse_group_record(key, None).key
        if not isinstance(parsed, Decoded) or parsed.version not in GROUP_TABLES.keys or key is None:
            return None
        fields = parsed.fields
        group = fields.get("group", fields.get("group_id", ""))
        commit_key = CommitKey(group, fields["topic"], fields["partition"]) if parsed.version in _COMMIT_TYPES else None
        known = (parsed.version, commit_key, group, fields.get("member_id", ""))
        if commit_key is not None:
            self._keys[key] = known
        return known

    def _commit(
        self, key: bytes | None, commit_key: CommitKey, value: bytes | None, producer: int, at: Place
    ) -> Commit | None:
        if value is None:
            return Commit(commit_key, None, -1, -1, -1, producer, at)
        length = len(value)
        if length > 16:
            version = _INT16(value)[0]
            tail = _TAIL_OF_COMMIT.get(version)
            # The places are sure where the length of the metadata fits the length of the value.
            if (
                tail is not None
                and key is not None
                and key[1] == 1
                and tail[0] + 2 + _INT16(value, tail[0])[0] + tail[1] == length
            ):
                expire = _INT64(value, length - 8)[0] if version == 1 else -1
                epoch = _INT32(value, 10)[0] if version == 3 else -1
                committed = _INT64(value, length - tail[1])[0]
                is_old = version < _FIRST_WITHOUT_EXPIRY
                return Commit(commit_key, _INT64(value, 2)[0], committed, expire, epoch, producer, at, is_old)
            if version == _FLEXIBLE and 0 < value[14] < 0x80 and value[14] + 23 == length and not value[-1]:
                committed, epoch = _INT64(value, length - 9)[0], _INT32(value, 10)[0]
                return Commit(commit_key, _INT64(value, 2)[0], committed, -1, epoch, producer, at)
        parsed = parse_group_record(key, value).value
        if not isinstance(parsed, Decoded):
            self._skip(key, value)
            return None
        fields = parsed.fields
        return Commit(
            commit_key,
            fields["offset"],
            fields["commit_timestamp"],
            fields.get("expire_timestamp", -1),
            fields.get("leader_epoch", -1),
            producer,
            at,
            parsed.version < _FIRST_WITHOUT_EXPIRY,
        )
