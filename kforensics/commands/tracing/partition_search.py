"""The search of the partitions of a topic whose logs are read: once for what `diff` and `explain` say of them and for their records."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from kforensics.case.account import accounts_of, explain_replicas, settled
from kforensics.case.comparison import compare_replicas, without_tables
from kforensics.case.model import places_of
from kforensics.commands.tracing.by_time import search_by_time
from kforensics.commands.tracing.coverage import searched
from kforensics.commands.tracing.records import Place, Reread, grouped, outcome_of, slices_of
from kforensics.commands.tracing.scan import MOST_HELD, Hit, Markers, ScannedPartition, ScannedReplica, scan_partitions
from kforensics.commands.tracing.topic_evidence import TopicEvidence, TracedPartition, current_id
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.content.search import RecordSearch
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Citation, Problem
from kforensics.evidence.replica.collect import CollectedReplica
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.reconcile.logs.divergence import EndsDoNotDecideError
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.reconcile.trace.fate import FateJudge
from kforensics.reconcile.trace.found_record import LaterRecord
from kforensics.reconcile.trace.model import CopyKind, TracedRecord
from kforensics.source.naming import FileSuffix, parse_file_name
from kforensics.units import TopicPartition

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
