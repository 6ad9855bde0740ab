"""Ways out: the same starts under changes that are assumed and not made, alone and in pairs, ranked by what each loses."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import cast

from kforensics.commands.lost_records import find_lost_records
from kforensics.commands.predicting.directories import Reads
from kforensics.commands.predicting.log_starts import Conditions
from kforensics.commands.predicting.node_starts import NodeStarts
from kforensics.commands.predicting.nodes import Node
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.loader_reader import LOG_STARTS, MARKER, RECOVERY_POINTS, read_needed
from kforensics.formats.log.loader_values import Batches, Content, Need
from kforensics.protocol.epochs import Epochs, assign
from kforensics.protocol.loading.disk import (
    CLEANED,
    DELETED,
    EPOCH_FILE,
    INDEX,
    LOG,
    METADATA_FILE,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    LoadingError,
    offset_of,
)
from kforensics.protocol.loading.node import Fate
from kforensics.protocol.loading.starts import DUPLICATE, StartResult
from kforensics.protocol.loading.versions import distinct_rules
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.logs.predicted_load import (
    ChangeKind,
    LostPiece,
    LostRecords,
    PredictedLog,
    VirtualChange,
    WayOut,
)
from kforensics.source.walk import join

MOST_LOGS = 8
"""Logs in trouble that are changed one by one; more are changed together."""
MOST_IN_PAIRS = 10
"""Changes that are tried in pairs, the best ones."""
OLDEST_WAY_OUT = KafkaVersion(2, 4)
"""Brokers of this and later are not advised to start an older one."""
FIRST_TO_EMPTY_SEGMENTS = KafkaVersion(4, 0)
Start = Callable[[Conditions], NodeStarts]

_ASSUMED = {
    ChangeKind.MARKER_AWAY: "that a recovery is wanted: every log is scanned from its recovery point on",
    ChangeKind.MARKER_THERE: "that nothing is missing at the ends of the logs: without recovery a broken end stays, and is appended to",
    ChangeKind.CHECKPOINT_AWAY: "that the checkpoint holds nothing that is needed: recovery points and log starts count as 0",
    ChangeKind.INDEX_AWAY: "that the broker scans this segment, and keeps later ones whatever it truncates",
    ChangeKind.TIME_INDEX_AWAY: "that lookups by time and retention may go by the time of the file's last change",
    ChangeKind.TXN_INDEX_AWAY: "that consumers with read_committed may see records of aborted transactions where the segment is not scanned",
    ChangeKind.SNAPSHOT_AWAY: "that an older snapshot, or the log behind it, has all producers",
    ChangeKind.SNAPSHOTS_AWAY: "that idempotent producers may be forgotten where the stop was clean",
    ChangeKind.EPOCH_FILE_AWAY: "that a leader need not answer for epochs below those that are scanned",
    ChangeKind.TOPIC_ID_AWAY: "that the topic id is written again; without it Kafka 3.7 and later takes the directory for a stray",
    ChangeKind.FILES_AWAY: "that these files are not needed: compare them with the segments first",
    ChangeKind.DIRECTORY_AWAY: "that another replica has all of it: this one starts empty, and is no leader before it has caught up",
    ChangeKind.SPACE_FREED: "that no I/O error is met: Kafka 4.0 to 4.4 empties a sound segment on one while it recovers it",
    ChangeKind.RETENTION_OFF: "that retention is set to none before the start, for every topic",
    ChangeKind.OTHER_VERSION: "that this version can be started on these directories",
}
COPY_FIRST = "that a copy of the log directories was made first"


@dataclass(slots=True)
class _Row:
    changes: tuple[VirtualChange, ...]
    started: NodeStarts
    way: WayOut


@dataclass
class WaysOut:
    """Searches the ways out of one node."""

    node: Node
    inputs: Inputs
    conditions: Conditions
    start: Start
    reads: Reads
    problems: list[Problem]
    logs: Sequence[PredictedLog] = ()
    """What the starts of all nodes make of each log as it is: what another one discards, too, is held by none."""
    _lost: dict[tuple[int, str, tuple[LostPiece, ...]], LostRecords] = field(default_factory=dict)
    _true: dict[tuple[int, str], Epochs | None] = field(default_factory=dict)

    def find(self, as_it_is: NodeStarts) -> tuple[WayOut, ...]:
        """Return all rows, the best first."""
        base = self._row((), as_it_is)
        rows = [base, *(self._row(changes) for changes in self._singles(as_it_is))]
        if any(_gravity(row.way) < _gravity(base.way) for row in rows) or not _is_perfect(base.way):
            best = sorted((row for row in rows if row.changes), key=lambda row: _gravity(row.way))[:MOST_IN_PAIRS]
            if not any(_is_perfect(row.way) for row in rows):
                rows += [
                    self._row((*one.changes, *other.changes))
                    for one, other in combinations(best, 2)
                    if _go_together(one.changes[0], other.changes[0])
                ]
        return tuple(
            sorted((way for way in _with_transactions(rows)), key=lambda way: (_gravity(way), len(way.changes)))
        )

    def _singles(self, as_it_is: NodeStarts) -> Iterator[tuple[VirtualChange, ...]]:
        trouble = _in_trouble(as_it_is)
        is_clean = as_it_is.starts[0].clean
        if _is_perfect(self._way((), as_it_is)) and not trouble and not _due(as_it_is):
            return
        yield from ((one,) for one in self._of_node(as_it_is, is_clean=is_clean))
        paths = [(log.input, log.path) for log in trouble]
        for kind, found in self._files(paths):
            if len(paths) <= MOST_LOGS:
                yield from ((VirtualChange(kind, number, names),) for number, names in found)
            if len(found) > 1:
                yield tuple(VirtualChange(kind, number, names) for number, names in found)

    def _of_node(self, as_it_is: NodeStarts, *, is_clean: bool) -> Iterator[VirtualChange]:
        node, conditions = self.node, self.conditions
        for kind, name in ((ChangeKind.MARKER_AWAY, MARKER),):
            places = self._places(name)
            if places:
                for number, paths in places:
                    yield VirtualChange(kind, number, paths)
        if not is_clean:
            yield VirtualChange(ChangeKind.MARKER_THERE, node.first)
        for name in (RECOVERY_POINTS, LOG_STARTS):
            for number, paths in self._places(name):
                yield VirtualChange(ChangeKind.CHECKPOINT_AWAY, number, paths)
        if conditions.version >= FIRST_TO_EMPTY_SEGMENTS and any(log.scanned for log in as_it_is.logs):
            yield VirtualChange(ChangeKind.SPACE_FREED, node.first)
        if _due(as_it_is):
            yield VirtualChange(ChangeKind.RETENTION_OFF, node.first)
        for version in distinct_rules():
            is_close = version >= OLDEST_WAY_OUT or conditions.version < OLDEST_WAY_OUT
            if is_close and version[:2] != conditions.version[:2] and not node.is_not_migrated(version):
                yield VirtualChange(ChangeKind.OTHER_VERSION, node.first, value=str(version))

    def _places(self, name: str) -> list[tuple[int, tuple[str, ...]]]:
        """By input: where its log directories hold a file."""
        out = []
        for number, one in self.node.members:
            paths = tuple(
                join(folder, name)
                for folder in one.log_dir_paths
                if any(entry.name == name for entry in one.listings.of(folder).entries)
            )
            if paths:
                out.append((number, paths))
        return out

    def _files(
        self, paths: Sequence[tuple[int, str]]
    ) -> Iterator[tuple[ChangeKind, list[tuple[int, tuple[str, ...]]]]]:
        found: dict[ChangeKind, list[tuple[int, tuple[str, ...]]]] = {}
        members = dict(self.node.members)
        for number, path in paths:
            names = [entry.name for entry in members[number].listings.of(path).entries if not entry.is_directory]
            for kind, chosen in removable_files(names):
                found.setdefault(kind, []).append((number, tuple(join(path, name) for name in chosen)))
            found.setdefault(ChangeKind.DIRECTORY_AWAY, []).append((number, (path,)))
        yield from found.items()

    def _row(self, changes: tuple[VirtualChange, ...], started: NodeStarts | None = None) -> _Row:
        started = started or self.start(_changed(self.conditions, changes))
        return _Row(changes, started, self._way(changes, started))

    def _way(self, changes: tuple[VirtualChange, ...], started: NodeStarts) -> WayOut:
        last = started.starts[-1]
        lost = [
            self._lost_of(log.input, log.path, log.lost)
            for log in started.logs
            if log.lost.pieces and log.is_reached
            if log.fate is not Fate.DELETED or (log.input, log.path) not in self._deleted
        ]
        lost += [
            self._lost_of(change.input, path, self._whole(change.input, path))
            for change in changes
            if change.kind is ChangeKind.DIRECTORY_AWAY
            for path in change.paths
        ]
        final = [log for log in started.logs if log.start == last.number]
        strays = {(log.input, log.path) for log in final if log.fate is Fate.STRAY}
        lost += [
            self._lost_of(*place, self._whole(*place))
            for change in changes
            if change.kind is ChangeKind.TOPIC_ID_AWAY
            for place in [(change.input, path.rpartition("/")[0]) for path in change.paths]
            if place in strays
        ]
        touched = {(log.input, log.path) for log in _in_trouble(started)}
        touched |= {(change.input, path.rpartition("/")[0]) for change in changes for path in change.paths}
        assumed = [_ASSUMED[kind] for kind in dict.fromkeys(change.kind for change in changes)]
        return WayOut(
            node=self.node.first,
            changes=changes,
            result=last.result,
            exception=last.exception,
            reason=last.reason,
            start_count=len(started.starts),
            records=sum(one.records for one in lost),
            certain=sum(one.certain for one in lost),
            possible=sum(one.possible for one in lost),
            only_here=sum(one.only_here for one in lost),
            holes=sum(_holes(log) for log in started.logs),
            epochs_wrong=sum(self._is_wrong(log) for log in final if (log.input, log.path) in touched),
            transactions_forgotten=0,
            bytes_scanned=sum(start.bytes_scanned for start in started.starts),
            bytes_due=sum(_due_bytes(log) for log in final),
            assumed=(COPY_FIRST, *assumed) if changes else (COPY_FIRST,),
        )

    def _lost_of(self, number: int, path: str, lost: LostRecords) -> LostRecords:
        key = number, path, lost.pieces
        if key not in self._lost:
            self._lost[key] = find_lost_records(self.inputs, number, path, lost, self.problems, self._discarded)
        return self._lost[key]

    @cached_property
    def _discarded(self) -> Mapping[tuple[int, str], tuple[LostPiece, ...]]:
        return {
            (log.input, log.path): log.lost.pieces
            for log in self.logs
            if log.lost.pieces and log.is_reached and log.node != self.node.first
        }

    @cached_property
    def _deleted(self) -> frozenset[tuple[int, str]]:
        return frozenset((log.input, log.path) for log in self.logs if isinstance(log.topic_deleted_ms, int))

    def _whole(self, number: int, path: str) -> LostRecords:
        entries = dict(self.node.members)[number].listings.of(path).entries
        return LostRecords(
            pieces=tuple(LostPiece(one.name, 0, one.length) for one in entries if one.name.endswith(LOG))
        )

    def _is_wrong(self, log: PredictedLog) -> bool:
        """Whether the epoch cache lacks an epoch of the batches, or has it begin above them."""
        state = log.after
        if isinstance(state, Absent) or isinstance(state.epochs, Absent) or isinstance(state.log_end_offset, Absent):
            return False
        true = self._true_epochs(log.input, log.path)
        if true is None:
            return False
        known = {entry.leader_epoch: entry.start_offset for entry in state.epochs}
        start = state.log_start_offset if isinstance(state.log_start_offset, int) else 0
        kept = [
            entry
            for at, entry in enumerate(true)
            if entry.start_offset < state.log_end_offset and (at + 1 >= len(true) or true[at + 1].start_offset > start)
        ]
        return any(
            entry.leader_epoch not in known or known[entry.leader_epoch] > max(entry.start_offset, start)
            for entry in kept
        )

    def _true_epochs(self, number: int, path: str) -> Epochs | None:
        """Where each leader epoch begins by the batches themselves; none where they can't be read."""
        key = number, path
        if key not in self._true:
            self._true[key] = self._read_epochs(number, path)
        return self._true[key]

    def _read_epochs(self, number: int, path: str) -> Epochs | None:
        one = dict(self.node.members)[number]
        folder = one.root / path
        reads = self.reads.setdefault(folder, {})
        epochs: Epochs = ()
        for entry in sorted(one.listings.of(path).entries, key=lambda each: each.name):
            if not entry.name.endswith(LOG):
                continue
            checked = Need(entry.name, Content.CHECKED_BATCHES)
            need = checked if checked in reads else Need(entry.name, Content.BATCHES)
            try:
                found = cast("Batches", reads[need] if need in reads else read_needed(folder, need))
                reads[need] = found
                for batch in found.batches:
                    if batch.leader_epoch >= 0 and (not epochs or batch.leader_epoch > epochs[-1].leader_epoch):
                        epochs = assign(epochs, batch.leader_epoch, batch.base_offset)
            except EvidenceError:
                return None
        return epochs


def _changed(conditions: Conditions, changes: Iterable[VirtualChange]) -> Conditions:
    without = dict(conditions.without)
    for change in changes:
        match change.kind:
            case ChangeKind.MARKER_THERE:
                conditions = replace(conditions, with_marker=True)
            case ChangeKind.OTHER_VERSION:
                conditions = replace(conditions, version=KafkaVersion(*map(int, change.value.split("."))))
            case ChangeKind.RETENTION_OFF:
                off = {"retention.ms": "-1", "retention.bytes": "-1"}
                conditions = replace(conditions, settings={**conditions.settings, **off})
            case ChangeKind.SPACE_FREED:
                continue
            case _:
                without[change.input] = without.get(change.input, frozenset()) | set(change.paths)
    return replace(conditions, without=without)


def removable_files(names: Sequence[str]) -> Iterator[tuple[ChangeKind, list[str]]]:
    """Yield the files of a directory that each change moves away."""
    odd = [name for name in names if name.endswith((SWAP, CLEANED)) or not _has_offset(name)]
    if odd:
        yield ChangeKind.FILES_AWAY, odd
    sound = [name for name in sorted(names) if name not in odd]
    for kind, ending in (
        (ChangeKind.INDEX_AWAY, INDEX),
        (ChangeKind.TIME_INDEX_AWAY, TIME_INDEX),
        (ChangeKind.TXN_INDEX_AWAY, TXN_INDEX),
        (ChangeKind.SNAPSHOT_AWAY, SNAPSHOT),
    ):
        some = [name for name in sound if name.endswith(ending)]
        if some:
            yield kind, some if kind is ChangeKind.TXN_INDEX_AWAY else some[-1:]
        if kind is ChangeKind.SNAPSHOT_AWAY and len(some) > 1:
            yield ChangeKind.SNAPSHOTS_AWAY, some
    if EPOCH_FILE in names:
        yield ChangeKind.EPOCH_FILE_AWAY, [EPOCH_FILE]
    if METADATA_FILE in names:
        yield ChangeKind.TOPIC_ID_AWAY, [METADATA_FILE]


def _has_offset(name: str) -> bool:
    """Whether a file's name is one that loading can read."""
    if not name.endswith((LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT)) or name.endswith(DELETED):
        return True
    try:
        offset = offset_of(name)
    except LoadingError:
        return False
    return name.startswith(f"{offset:020d}.")


def _go_together(one: VirtualChange, other: VirtualChange) -> bool:
    """Whether two changes make sense in one row."""
    if one.kind is other.kind:
        return one.paths != other.paths and one.kind is not ChangeKind.OTHER_VERSION
    away = ChangeKind.DIRECTORY_AWAY
    inside = any(path.startswith(f"{folder}/") for folder in one.paths for path in other.paths) or any(
        path.startswith(f"{folder}/") for folder in other.paths for path in one.paths
    )
    return not (away in {one.kind, other.kind} and inside) and {one.kind, other.kind} != {
        ChangeKind.MARKER_AWAY,
        ChangeKind.MARKER_THERE,
    }


def _in_trouble(started: NodeStarts) -> list[PredictedLog]:
    """Directories that fail, lose records, or are there twice; each once."""
    found = {
        (log.input, log.path): log
        for log in started.logs
        if log.outcome != "loads" or (log.lost.pieces and log.is_reached)
    }
    reason = started.starts[0].reason
    if reason.startswith(DUPLICATE):
        name = reason.removeprefix(DUPLICATE)
        found |= {(log.input, log.path): log for log in started.logs if log.path.rpartition("/")[2] == name}
    return list(found.values())


def _due(started: NodeStarts) -> bool:
    return any(_due_bytes(log) for log in started.logs)


def _due_bytes(log: PredictedLog) -> int:
    return 0 if isinstance(log.due, Absent) or not log.due.is_setting_known else log.due.bytes


def _holes(log: PredictedLog) -> int:
    """Segments that one load truncates while it keeps later ones."""
    state = log.after
    if isinstance(state, Absent) or not log.is_reached:
        return 0
    last = state.segments[-1][0] if state.segments else -1
    return sum(after < before and base < last for base, before, after in log.scanned)


def _gravity(way: WayOut) -> tuple[int, ...]:
    """Return what rows are ranked by, the best first."""
    rank = {StartResult.STARTS: 0, StartResult.DIRECTORY_OFFLINE: 1, StartResult.EXITS: 2}
    return (
        3 if isinstance(way.result, Absent) else rank[way.result],
        way.only_here,
        way.certain,
        way.possible,
        way.holes,
        way.epochs_wrong,
        way.transactions_forgotten,
        way.bytes_due,
        way.bytes_scanned,
    )


def _is_perfect(way: WayOut) -> bool:
    return not any(_gravity(way)[:-2])


def _with_transactions(rows: Sequence[_Row]) -> Iterator[WayOut]:
    """Yield the rows with the logs in which each forgets an open transaction: where the last stable offset is above the lowest of all rows."""
    stable: dict[tuple[int, str], int] = {}
    finals = [_stable_offsets(row.started) for row in rows]
    for final in finals:
        for key, (offset, end) in final.items():
            if offset < end:
                stable[key] = min(offset, stable.get(key, offset))
    for row, final in zip(rows, finals, strict=True):
        forgotten = sum(final[key][0] > offset for key, offset in stable.items() if key in final)
        yield replace(row.way, transactions_forgotten=forgotten)


def _stable_offsets(started: NodeStarts) -> dict[tuple[int, str], tuple[int, int]]:
    """Last stable offset and log end of each log once the last start has loaded it."""
    last = started.starts[-1].number
    out = {}
    for log in started.logs:
        if log.start == last and not isinstance(log.after, Absent):
            offset, end = log.after.last_stable_offset, log.after.log_end_offset
            if not isinstance(offset, Absent) and not isinstance(end, Absent):
                out[log.input, log.path] = (offset, end)
    return out
