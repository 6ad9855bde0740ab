"""The search of the partitions of a topic whose logs are read: once for what `diff` and `explain` say of them and for their records.

Records of a span of time are found by the time indexes: of each segment the batches from the index's position on, of which only those are decoded whose headers
leave room for such a record. An entry of a time index says the largest timestamp up to an offset (`TimeIndex.maybeAppend`), so the lower bound of the span
alone is looked up; timestamps need not rise. A batch's largest timestamp is in its header. Its first one is no lower bound: records may be older than the
first of their batch.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kforensics.case.account import accounts_of, explain_replicas, settled
from kforensics.case.comparison import compare_replicas, without_tables
from kforensics.case.model import places_of
from kforensics.commands.tracing.coverage import searched
from kforensics.commands.tracing.scan import (
    LEFT_OVER,
    MOST_HELD,
    Hit,
    Markers,
    ScannedPartition,
    ScannedReplica,
    SearchedFile,
    Taker,
    kind_of,
    scan_partitions,
    scanned_replica,
)
from kforensics.commands.tracing.topic_evidence import (
    Place,
    Reread,
    TopicEvidence,
    TracedPartition,
    current_id,
    grouped,
    outcome_of,
    slices_of,
)
from kforensics.damage import Absent, Damage
from kforensics.errors import EvidenceError
from kforensics.evidence.content import RecordSearch, find_range
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Citation, Problem, Segment
from kforensics.evidence.replica.collect import CollectedReplica, collect_replica
from kforensics.formats.log.batch_table import NEWEST_MAGIC, TIMESTAMP_TYPE_BIT, BatchTable
from kforensics.formats.segment.walk import Level, iter_record_chunks, walk_segment
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.reconcile.logs.divergence import EndsDoNotDecideError
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.reconcile.trace.fate import FateJudge
from kforensics.reconcile.trace.found_record import LaterRecord
from kforensics.reconcile.trace.model import CopyKind, TracedRecord
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import FileSuffix, parse_file_name
from kforensics.units import Depth, TopicPartition


def search_by_time(
    group: Sequence[PartitionPlace], ranks: Mapping[int, int], search: RecordSearch
) -> ScannedPartition | None:
    """Return the directories of a partition, read at their ends, and the copies that match; None where that is not enough to say all of them.

    It is not where anything is damaged, captured or left over, where segments do not join, where records are of transactions or too many to be held,
    and where the live replicas do not all hold the same of them.
    """
    replicas: list[ScannedReplica] = []
    hits: list[Hit] = []
    for place in group:
        one = _searched(place, ranks, search)
        if one is None:
            return None
        replicas.append(one[0])
        hits += one[1]
    if any(hit.record.is_transactional for hit in hits) or not _agree(replicas, hits):
        return None
    return ScannedPartition(replicas, len(hits), hits)


def _searched(
    place: PartitionPlace, ranks: Mapping[int, int], search: RecordSearch
) -> tuple[ScannedReplica, list[Hit]] | None:
    if not place.state.store.holds_bytes:
        return None
    collected = collect_replica(place, left_over=LEFT_OVER, depth=Depth.TAILS)
    replica = collected.replica
    if collected.problems or replica.damage or replica.deleted_segments:
        return None
    files: dict[str, SearchedFile] = {}
    for segment, behind in zip(replica.segments, [*replica.segments[1:], None], strict=True):
        # A start after an unclean stop rebuilds the indexes from the recovery point on, and all of that was read.
        is_index_sound = replica.clean_shutdown or segment.unread_below > 0
        next_offset = None if behind is None else behind.base_offset
        file = _search_segment(place, segment, search, next_offset, is_index_sound=is_index_sound)
        if file is None:
            return None
        files[segment.path] = file
    segments = tuple(file.segment for file in files.values() if file.segment is not None)
    collected = CollectedReplica(replica=replace(replica, segments=segments), problems=())
    one = scanned_replica(place, collected, kind_of(replica, ranks), files)
    return one, [hit for path, file in files.items() for hit in one.hits(path, file.hits)]


def _search_segment(
    place: PartitionPlace, segment: Segment, search: RecordSearch, next_offset: int | None, *, is_index_sound: bool
) -> SearchedFile | None:
    """Return what a segment gives; None where it has to be read whole."""
    assert search.time_ms is not None
    if segment.damage:
        return None
    out = SearchedFile(segment=segment)
    if not segment.length:
        return out
    taker = Taker(search, out)
    path = place.state.root / segment.path
    try:
        with open_evidence(path) as file:
            from_ms = search.time_ms[0] if is_index_sound else None
            start, _ = find_range(
                file, path, segment.base_offset, from_offset=None, to_offset=None, from_time_ms=from_ms
            )
            end, newest_ms = None, -1
            for window in walk_segment(file, level=Level.CRC, start=start):
                batches = window.batches
                if window.damage or not batches["crc_valid"].all():
                    return None
                if not len(batches):
                    continue
                first = segment.base_offset if end is None and not start else end
                # The offset of a wrapped message set of magic 0 and 1 is that of its last message.
                if (
                    first is not None
                    and int(batches["base_offset"][0]) != first
                    and int(batches["magic"][0]) >= NEWEST_MAGIC
                ):
                    return None
                if (batches["base_offset"][1:] != batches["last_offset"][:-1] + 1).any():
                    return None
                end = int(batches["last_offset"][-1]) + 1
                newest_ms = max(newest_ms, int(batches["max_timestamp"].max()))
                if not _take(file, batches[_may_match(batches, *search.time_ms)], taker):
                    return None
            if end is None or (next_offset is not None and end != next_offset) or out.found > len(out.hits):
                return None
            out.bytes = file.size - start
    except EvidenceError:
        return None
    # What is below the start is older than the span: it makes no difference to records of the span how much.
    known = segment.max_timestamp_ms
    out.segment = replace(segment, max_timestamp_ms=max(newest_ms, known) if isinstance(known, int) else newest_ms)
    out.coverage.runs = list(_runs(segment, end))
    return out


def _may_match(batches: BatchTable, from_ms: int, before_ms: int) -> NDArray[np.bool_]:
    """Which batches may hold a record of a span of time, by their headers; all records of a batch of log-append time have its largest timestamp."""
    newest = batches["max_timestamp"]
    is_log_append = (batches["attributes"] & TIMESTAMP_TYPE_BIT) > 0
    return (newest >= from_ms) & ~(is_log_append & (newest >= before_ms))


def _take(file: EvidenceFile, batches: BatchTable, taker: Taker) -> bool:
    """Take the records of some batches; False where one of them can't be decoded."""
    starts, ends = batches["position"], batches["position"] + batches["length"]
    edges = [0, *(np.flatnonzero(starts[1:] != ends[:-1]) + 1).tolist(), len(batches)]
    for first, behind in pairwise(edges):
        if first == behind:
            continue
        for chunk in iter_record_chunks(file, start=int(starts[first]), end=int(ends[behind - 1])):
            if isinstance(chunk, Damage):
                return False
            taker.take(chunk)
    return True


def _runs(segment: Segment, end: int) -> Iterator[tuple[int, int, int]]:
    first = segment.base_offset
    epochs = [(max(one.start_offset, first), one.leader_epoch) for one in segment.epochs]
    if not epochs or epochs[0][0] > first:
        epochs = [(first, -1), *epochs]
    for (start, epoch), (behind, _) in pairwise([*epochs, (end, -1)]):
        if behind > start:
            yield start, behind - 1, epoch


def _agree(replicas: Sequence[ScannedReplica], hits: Sequence[Hit]) -> bool:
    """Whether each live replica holds the same at each offset that is found and that its log has."""
    live = [one for one in replicas if one.kind is CopyKind.LIVE]
    held: dict[tuple[int, str], dict[int, tuple[object, ...]]] = {
        (one.replica.input, one.replica.path): {} for one in live
    }
    for hit in hits:
        if hit.file.kind is CopyKind.LIVE:
            record = hit.record
            content = (record.partition_leader_epoch, record.timestamp_ms, record.key, record.value, record.headers)
            held[hit.file.replica.input, hit.file.replica.path][record.offset] = content
    found = {offset: content for those in held.values() for offset, content in those.items()}
    offsets = {hit.record.offset for hit in hits}
    if offsets - found.keys():
        return False
    for one in live:
        own = held[one.replica.input, one.replica.path]
        first, last = one.coverage.runs[0][0] if one.coverage.runs else 0, one.log.log_end_offset
        if any(first <= offset < last and own.get(offset) != content for offset, content in found.items()):
            return False
    return True


MOST_KEYS = 10_000
"""Keys of found records whose later records are looked for in compacted logs."""


class PartitionSearch:
    """Searches partitions.

    Args:
        shared: the inputs, and what is searched for.
    """

    def __init__(self, shared: TopicEvidence) -> None:
        self._shared = shared
        self._search = shared.search
        self._ranks = shared.case.ranks
        self._problems = shared.problems
        self._account = accounts_of(shared.case)
        self._explained = {tp for tp, _ in self._account.groups}

    def partitions(self, wanted: Sequence[TopicPartition]) -> list[TracedPartition]:
        """Return what was searched of each partition, and the records that match."""
        groups = [places_of(self._shared.case).by_partition.get(partition, ()) for partition in wanted]
        found = self._by_time(wanted, groups) if self._search.time_ms is not None else None
        if found is not None:
            return found
        scans = scan_partitions(groups, self._ranks, self._search, jobs=self._shared.case.jobs, problems=self._problems)
        return self._judged(wanted, scans)

    def _by_time(
        self, wanted: Sequence[TopicPartition], groups: Sequence[Sequence[PartitionPlace]]
    ) -> list[TracedPartition] | None:
        """Return what the time indexes lead to; None where the logs have to be read whole, as they have to be to show that no record matches."""
        scans: list[ScannedPartition] = []
        for group in groups:
            one = search_by_time(group, self._ranks, self._search)
            if one is None or self._is_compacted(one.replicas):
                return None
            scans.append(one)
        if not 0 < sum(one.found for one in scans) <= MOST_HELD:
            return None
        before = len(self._problems)
        try:
            return self._judged(wanted, scans)
        except (EndsDoNotDecideError, EvidenceError):
            del self._problems[before:]
            return None

    def _judged(self, wanted: Sequence[TopicPartition], scans: Iterable[ScannedPartition]) -> list[TracedPartition]:
        scanned: list[ScannedPartition] = []
        reports: list[PartitionReport | None] = []
        incidents: list[PartitionIncident] = []
        for partition, one in zip(wanted, scans, strict=True):
            reports.append(self._report(one))
            incidents += self._incident(partition, one)
            scanned.append(one if one.hits is None else _without_batches(one))
        settled_of = {one.partition: one for one in settled(incidents)}
        return [
            self._traced(partition, one, report, settled_of.get(partition))
            for partition, one, report in zip(wanted, scanned, reports, strict=True)
        ]

    def _report(self, scanned: ScannedPartition) -> PartitionReport | None:
        now = [one for one in scanned.replicas if one.replica.input not in self._ranks]
        if not now:
            return None
        compared = compare_replicas(
            self._shared.comparison, [one.place for one in now], [_without_swap(one.collected) for one in now]
        )
        self._problems += compared.problems
        return compared.report

    def _incident(self, partition: TopicPartition, scanned: ScannedPartition) -> Iterator[PartitionIncident]:
        if partition in self._explained:
            incident, met = explain_replicas(
                self._account, partition, [_without_swap(one.collected) for one in scanned.replicas]
            )
            self._problems += met
            yield incident

    def _traced(
        self,
        partition: TopicPartition,
        scanned: ScannedPartition,
        report: PartitionReport | None,
        incident: PartitionIncident | None,
    ) -> TracedPartition:
        replicas = scanned.replicas
        current = current_id(replicas, report)
        is_compacted = self._is_compacted(replicas)
        reread = Reread(replicas=tuple(replicas), search=self._search, slices=slices_of(replicas))
        markers = {(one.replica.input, one.replica.path): one.markers for one in replicas}
        successors = self._successors(scanned, reread, markers) if is_compacted else {}
        judge = self._shared.judge(partition, replicas, report, incident, successors, is_compacted=is_compacted)
        looked = searched(
            partition,
            replicas,
            report=report,
            incident=incident,
            current=current,
            account=self._shared.truncations,
            remote=self._shared.remote,
        )
        segments = [(one.replica.input, segment) for one in replicas for segment in one.files()]
        files = [(number, segment.path) for number, segment in segments]
        damaged = [(number, segment.path) for number, segment in segments if segment.damage]
        if scanned.hits is None:
            return TracedPartition(looked, partial(_read_again, judge, reread, markers), files, damaged)
        records = [judge.judge(one) for one in grouped(scanned.hits, markers)]
        if self._search.is_by_offset and self._search.offset is not None:
            is_lost = any(one.state == "lost" for one in records)
            look = judge.replaced if records else judge.not_held
            other = None if is_lost else look(self._search.offset)
            records += [other] if other is not None else []
            # Where two records have the offset, the other one is what was there before.
            if len(records) == 1 and records[0].state not in {"lost", "unknown"}:
                looked = replace(looked, displaced=tuple(judge.displaced(self._search.offset)))
        return TracedPartition(looked, lambda: records, files, damaged)

    def _is_compacted(self, replicas: Sequence[ScannedReplica]) -> bool:
        return any(
            not isinstance(one.replica.cleaner_point, Absent)
            or one.log.cleaned_below > 0
            or self._shared.settings(one.replica.broker_id).is_surely_compacted
            for one in replicas
        )

    def _successors(
        self, scanned: ScannedPartition, reread: Reread, markers: Mapping[Place, Markers]
    ) -> dict[bytes, list[LaterRecord]]:
        """Return the newest records of the found keys, those of aborted and open transactions apart: a cleaner removes nothing for them."""
        found: Iterable[Hit] = ()
        if self._search.is_by_key:
            found = _newest_hits(reread, markers, 1) if scanned.hits is None else scanned.hits
        else:
            keys = _keys(scanned, reread)
            live = [one.place for one in scanned.replicas if one.kind is CopyKind.LIVE]
            if keys is None:
                words = f"more than {MOST_KEYS:,} keys match: whether later records supersede theirs was not looked for"
                place = (live or [one.place for one in scanned.replicas])[0]
                self._problems.append(Problem(input=place.state.input, path=place.path, message=words))
            elif keys:
                search = RecordSearch(keys=keys)
                later = next(scan_partitions([live], {}, search, jobs=self._shared.case.jobs, problems=[]))
                again = Reread(replicas=tuple(later.replicas), search=search, slices=slices_of(later.replicas))
                found = _newest_hits(again, markers, len(keys)) if later.hits is None else later.hits
        newest: dict[tuple[bytes, bool], LaterRecord] = {}
        for hit in found:
            record, file, is_live = hit.record, hit.file, hit.file.kind is CopyKind.LIVE
            if record.key is None or not _supersedes(hit, markers):
                continue
            known = newest.get((record.key, is_live))
            if known is None or known.record.offset < record.offset:
                citation = Citation(input=file.replica.input, path=file.path)
                newest[record.key, is_live] = LaterRecord(record, citation, is_live=is_live)
        out: dict[bytes, list[LaterRecord]] = defaultdict(list)
        for (key, _), one in newest.items():
            out[key].append(one)
        return out


def _read_again(judge: FateJudge, reread: Reread, markers: Mapping[Place, Markers]) -> Iterator[TracedRecord]:
    for offsets in reread.slices:
        for one in grouped(reread.hits(offsets), markers):
            yield judge.judge(one)


def _keys(scanned: ScannedPartition, reread: Reread) -> frozenset[bytes] | None:
    """Return the keys of the records that match; none where they are too many."""
    found = scanned.hits
    keys: set[bytes] = set()
    for hit in found if found is not None else (hit for offsets in reread.slices for hit in reread.hits(offsets)):
        if hit.record.key is not None:
            keys.add(hit.record.key)
        if len(keys) > MOST_KEYS:
            return None
    return frozenset(keys)


def _supersedes(hit: Hit, markers: Mapping[Place, Markers]) -> bool:
    """Whether a cleaner removes earlier records of its key for it: its transaction was committed, or it is of none."""
    outcome = outcome_of(hit.record, [markers[hit.file.replica.input, hit.file.replica.path]])
    return outcome is False or outcome is Absent.NOT_APPLICABLE


def _newest_hits(reread: Reread, markers: Mapping[Place, Markers], keys: int) -> Iterator[Hit]:
    """Yield copies from the end of the log back, until a live replica holds one of each key that supersedes others."""
    live: set[bytes | None] = set()
    for offsets in reversed(reread.slices):
        for hit in reread.hits(offsets):
            if hit.file.kind is CopyKind.LIVE and _supersedes(hit, markers):
                live.add(hit.record.key)
            yield hit
        if len(live) >= keys:
            return


def _without_swap(collected: CollectedReplica) -> CollectedReplica:
    """Return the replica as commands collect it that do not look into what a cleaner left."""
    deleted = collected.replica.deleted_segments
    kept = tuple(one for one in deleted if parse_file_name(one.path.rpartition("/")[2]).suffix is FileSuffix.DELETED)
    return (
        collected
        if len(kept) == len(deleted)
        else collected._replace(replica=replace(collected.replica, deleted_segments=kept))
    )


def _without_batches(scanned: ScannedPartition) -> ScannedPartition:
    """Return the partition without the batch tables of its segments, of which there may be thousands."""
    for one in scanned.replicas:
        one.collected = one.collected._replace(replica=without_tables(one.replica))
    return scanned
