"""What every search of a topic's partitions shares: the comparison of replicas, the settings of the topic, changes of leaders, and the records that were found."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kforensics.case.cluster import Cluster, cluster_of
from kforensics.case.comparison import comparison_of
from kforensics.case.model import Case, now_of, places_of
from kforensics.case.settings import retention_of, settings_by_node
from kforensics.case.tiers import remote_copies_of
from kforensics.commands.tracing.scan import Hit, Markers, ScannedReplica, records_with_horizons
from kforensics.damage import Absent, Damage
from kforensics.errors import EvidenceError
from kforensics.evidence.captured.reading import readable_ranges
from kforensics.evidence.content import RecordSearch
from kforensics.evidence.metadata.state import newest_log
from kforensics.evidence.model import Problem, Replica, Segment
from kforensics.evidence.replica.batch_reader import start_position
from kforensics.formats.columns.record_stream import part_of, split_control
from kforensics.formats.log.records import Record
from kforensics.formats.segment.walk import iter_record_chunks
from kforensics.protocol.coordinators import CREATED_WITH, created_policy
from kforensics.reconcile.history.log_starts import LogStartMove, log_start_moves
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.logged_events import lines_of_nodes
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.reconcile.trace.fate import FateJudge
from kforensics.reconcile.trace.found_record import FoundCopy, FoundRecord, LaterRecord
from kforensics.reconcile.trace.model import CopyKind, SearchedPartition, TracedRecord
from kforensics.reconcile.trace.removal_time import NO_LIMIT, RemovalSettings
from kforensics.source.mapped import open_evidence
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import listed

if TYPE_CHECKING:
    from kforensics.reconcile.incident.model import PartitionIncident

SLICE_BYTES = 1 << 20
SLICE_OFFSETS = 8192

Place = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """Reads matching records again, by slices of offsets.

    Args:
        slices: as `slices_of` gives them.
    """

    replicas: tuple[ScannedReplica, ...]
    search: RecordSearch
    slices: tuple[OffsetRange, ...]

    def hits(self, offsets: OffsetRange) -> list[Hit]:
        """Return the copies at some offsets, both ends included; what can't be read any more gives none."""
        return [
            hit
            for one in self.replicas
            for segment in one.files()
            if _touches(segment, offsets)
            for hit in one.hits(segment.path, self._records(one, segment, offsets))
        ]

    def _records(self, one: ScannedReplica, segment: Segment, offsets: OffsetRange) -> Iterator[tuple[Record, int]]:
        root = one.place.state.root
        start = start_position(segment, offsets.first)
        try:
            with open_evidence(root / segment.path if segment.path != "." else root) as file:
                for span in readable_ranges(file):
                    if span.end <= start:
                        continue
                    end = min(span.end, _end_position(segment, offsets.last))
                    for chunk in iter_record_chunks(file, start=max(span.position, start), end=end):
                        if isinstance(chunk, Damage):
                            continue
                        for part, is_control in split_control(chunk):
                            if is_control:
                                continue
                            rows = self.search.find(part)
                            at = part.offset[rows]
                            rows = rows[(at >= offsets.first) & (at <= offsets.last)]
                            if len(rows):
                                yield from records_with_horizons(part_of(part, rows))
        except EvidenceError:
            return  # that it changed since it was read is a problem already


def slices_of(replicas: Sequence[ScannedReplica]) -> tuple[OffsetRange, ...]:
    """Return ranges of offsets of which each copy holds some thousand records and not much more than a MiB, as far as its batches are known."""
    edges: set[int] = set()
    last = -1
    for one in replicas:
        for segment in one.files():
            if isinstance(segment.last_offset, Absent):
                continue
            last = max(last, segment.last_offset)
            batches = segment.batches
            if isinstance(batches, Absent):
                edges.update((segment.digests["bucket"] * np.int64(65_536)).tolist())
                continue
            pieces = np.maximum(
                (batches["position"] + batches["length"]) // SLICE_BYTES, batches["last_offset"] // SLICE_OFFSETS
            )
            edges.update(batches["base_offset"][np.flatnonzero(np.diff(pieces, prepend=-1) != 0)].tolist())
    ordered = sorted({0, *(edge for edge in edges if 0 < edge <= last), last + 1})
    return tuple(OffsetRange(first, end - 1) for first, end in pairwise(ordered) if end > first)


def _touches(segment: Segment, offsets: OffsetRange) -> bool:
    first, last = segment.first_offset, segment.last_offset
    return (
        not isinstance(first, Absent)
        and not isinstance(last, Absent)
        and first <= offsets.last
        and last >= offsets.first
    )


def _end_position(segment: Segment, last_offset: int) -> int:
    """Return a position behind every batch that touches the offset or one below it."""
    if isinstance(segment.batches, Absent):
        later = segment.digests[segment.digests["bucket"] > last_offset // 65_536]
        return int(later["position"][0]) if len(later) and not segment.damage else segment.length
    touching = segment.batches[segment.batches["base_offset"] <= last_offset]
    return int((touching["position"] + touching["length"]).max()) if len(touching) else segment.length


def grouped(hits: Sequence[Hit], markers: Mapping[Place, Markers]) -> Iterator[FoundRecord]:
    """Yield the distinct records among the hits, by topic id, offset, leader epoch and content."""
    at_offset: dict[int, list[Hit]] = {}
    for hit in hits:
        offset = hit.record.offset
        if offset in at_offset:
            at_offset[offset].append(hit)
        else:
            at_offset[offset] = [hit]
    for offset in sorted(at_offset):
        those = at_offset[offset]
        if len(those) == 1:
            named = those[0].file.replica.topic_id
            yield _found(those, Absent.UNKNOWN if isinstance(named, Absent) else named, markers)
        else:
            yield from _distinct(those, markers)


def _distinct(hits: Sequence[Hit], markers: Mapping[Place, Markers]) -> Iterator[FoundRecord]:
    groups: dict[tuple[Any, ...], list[Hit]] = defaultdict(list)
    for hit in hits:
        record, topic_id = hit.record, hit.file.replica.topic_id
        content = (record.timestamp_ms, record.key, record.value, record.headers)
        name = "" if isinstance(topic_id, Absent) else topic_id
        groups[record.offset, record.partition_leader_epoch, name, content].append(hit)
    _join_nameless(groups)
    for key in sorted(groups, key=lambda one: one[:3]):
        yield _found(groups[key], key[2] or Absent.UNKNOWN, markers)


def _found(hits: Sequence[Hit], topic_id: str | Absent, markers: Mapping[Place, Markers]) -> FoundRecord:
    record = hits[0].record
    outcome: bool | Absent | None = Absent.NOT_APPLICABLE
    if record.is_transactional:
        outcome = outcome_of(record, (markers[hit.file.replica.input, hit.file.replica.path] for hit in hits))
    copies = [FoundCopy(file, copy.batch_position, horizon) for file, copy, horizon in hits]
    return FoundRecord(record, topic_id, tuple(copies), outcome)


def _join_nameless(groups: dict[tuple[Any, ...], list[Hit]]) -> None:
    """Join copies in directories without a topic id with the record that one with an id holds, where there is one such alone."""
    named: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for key in groups:
        if key[2]:
            named[key[0], key[1], key[3]].append(key)
    for key in [key for key in groups if not key[2]]:
        twins = named.get((key[0], key[1], key[3]), ())
        if len(twins) == 1:
            groups[twins[0]] += groups.pop(key)


def outcome_of(record: Record, markers: Iterable[Markers]) -> bool | Absent | None:
    """Return whether the transaction of a record was aborted, None where no marker follows in any of some logs; absent for records of none."""
    if not record.is_transactional:
        return Absent.NOT_APPLICABLE
    ends = [end for one in markers if (end := one.after(record.producer_id, record.offset)) is not None]
    return min(ends)[1] if ends else None


class TruncationAccount:
    """What metadata and server logs say about changes of leaders, at which followers truncate what the new leader lacks."""

    def __init__(self, gathered: Cluster) -> None:
        self._facts = gathered.facts
        self._has_metadata = newest_log(gathered.histories) is not None
        self._logged_from: dict[int, int | Absent] = {}
        for one in lines_of_nodes(gathered.events):
            if isinstance(one.node_id, int) and isinstance(one.begin_ms, int):
                self._logged_from.setdefault(one.node_id, one.begin_ms)
        for file in gathered.log_files:
            if isinstance(file.node_id, int):
                self._logged_from.setdefault(file.node_id, Absent.UNKNOWN)

    def has_changed(self, partition: TopicPartition, topic_id: str | Absent) -> bool:
        """Whether more than one broker led, by what is on record."""
        return len(_leaders(self._facts.leaderships(partition, topic_id))) > 1

    def doubt(self, partition: TopicPartition, topic_id: str | Absent, brokers: Collection[int]) -> str:
        """Return why a truncation may have left no trace in the inputs; empty where one would have."""
        states = self._facts.leaderships(partition, topic_id)
        if self._has_metadata and states and len(_leaders(states)) < 2:
            return ""
        silent = sorted(set(brokers) - self._logged_from.keys())
        if silent or not brokers:
            who = f"broker {listed([str(one) for one in silent])}" if silent else "any broker"
            changed = (
                "its leader has changed"
                if len(_leaders(states)) > 1
                else "no input shows that its leader never changed"
            )
            return f"{changed}, and no server.log of {who} shows whether records were truncated then"
        changes = [one.time_ms for one in states[1:] if isinstance(one.time_ms, int)]
        late = sorted(
            broker
            for broker in brokers
            if changes and isinstance(since := self._logged_from[broker], int) and since > min(changes)
        )
        if late:
            return f"the logs of broker {listed([str(one) for one in late])} begin after its leader had changed, so that a truncation then may be in none"
        return ""


def _leaders(states: Collection[Leadership]) -> set[int]:
    return {one.leader for one in states if isinstance(one.leader, int)}


DAY_MS = 86_400_000


def removal_settings(case: Case, problems: list[Problem]) -> Callable[[int | Absent], RemovalSettings]:
    """Return a function that gives the settings of the topic that is asked about at a broker."""
    topic = case.ask.topic or ""
    by_node = settings_by_node(case, problems)

    @cache
    def of_broker(broker_id: int | Absent) -> RemovalSettings:
        settings = by_node(broker_id)
        policy, is_known = settings.of_topic(topic, "cleanup.policy")
        if policy is None and (settings.are_topics_known or topic in CREATED_WITH):
            policy, is_known = created_policy(topic), True
        return RemovalSettings(
            cleanup_policy=policy if policy is not None and is_known else Absent.UNKNOWN,
            delete_retention_ms=settings.number(topic, "delete.retention.ms", DAY_MS),
            min_compaction_lag_ms=settings.number(topic, "min.compaction.lag.ms", 0),
            max_compaction_lag_ms=settings.number(topic, "max.compaction.lag.ms", NO_LIMIT),
            retention=settings.retention(topic).policy,
            is_known=settings.are_topics_known,
        )

    return of_broker


class TracedPartition(NamedTuple):
    """What was searched of a partition, and the records that match."""

    looked: SearchedPartition
    records: Callable[[], Iterable[TracedRecord]]
    files: Sequence[Place]
    """The segment files that were searched."""
    damaged: Sequence[Place]
    """Those of them that can't be read at some place."""


class TopicEvidence:
    """The inputs of a search, and what is known of them before any log is read.

    Args:
        problems: what can't be read is added.
    """

    def __init__(self, case: Case, search: RecordSearch, problems: list[Problem]) -> None:
        self.case = case
        self.search = search
        self.problems = problems
        now = now_of(case)
        problems += places_of(now).problems if case.ranks else ()
        self.comparison = comparison_of(now)
        self.truncations = TruncationAccount(cluster_of(case))
        self.settings = removal_settings(case, problems)
        self.remote = remote_copies_of(case)

    def judge(
        self,
        partition: TopicPartition,
        replicas: Sequence[ScannedReplica],
        report: PartitionReport | None,
        incident: "PartitionIncident | None" = None,
        successors: Mapping[bytes, Sequence[LaterRecord]] | None = None,
        *,
        is_compacted: bool = False,
    ) -> FateJudge:
        """Return the judge of the records of one partition.

        Args:
            successors: by key, records of that key, of no aborted or open transaction.
        """
        current = current_id(replicas, report)
        return FateJudge(
            partition,
            report=report,
            incident=incident,
            views=[one.log for one in replicas if one.kind is CopyKind.LIVE and is_of(one.replica, current)],
            is_compacted=is_compacted,
            successors=successors or {},
            topic_ids=frozenset(
                str(one.replica.topic_id)
                for one in replicas
                if one.kind is CopyKind.LIVE and not isinstance(one.replica.topic_id, Absent)
            ),
            settings=self.settings,
            remote=self.remote,
            log_starts=self._log_starts.get(partition, ()),
            retention=partial(retention_of(self.case), partition),
        )

    @cached_property
    def _log_starts(self) -> Mapping[TopicPartition, Sequence[LogStartMove]]:
        return log_start_moves(cluster_of(self.case).events)


def current_id(scanned: Sequence[ScannedReplica], report: PartitionReport | None) -> str | Absent:
    """Return the id of the topic as it is now."""
    if report is not None and not isinstance(report.topic_id, Absent):
        return report.topic_id
    ids = [one.replica.topic_id for one in scanned if one.kind is CopyKind.LIVE]
    return next((one for one in ids if not isinstance(one, Absent)), Absent.UNKNOWN)


def is_of(replica: Replica, current: str | Absent) -> bool:
    """Whether a replica may be of the topic of an id."""
    return isinstance(current, Absent) or isinstance(replica.topic_id, Absent) or replica.topic_id == current
