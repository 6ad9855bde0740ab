"""One offset by the indexes: where all replicas hold the same record there, no more than the batches that the indexes name is read."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kforensics.case.cluster import cluster_of
from kforensics.case.comparison import compare_replicas
from kforensics.case.model import places_of
from kforensics.commands.tracing.coverage import searched
from kforensics.commands.tracing.records import grouped
from kforensics.commands.tracing.scan import Hit, ScannedReplica, SearchedFile, Taker, scanned_replica
from kforensics.commands.tracing.topic_evidence import TopicEvidence, TracedPartition, current_id, is_of
from kforensics.damage import Absent, Damage
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.content.search import INDEX_LIMIT, RecordSearch, find_range
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import DIGEST_DTYPE, CheckpointValue, Replica, Segment
from kforensics.evidence.replica.collect import CollectedReplica, collect_directory, segment_paths, stitch_replica
from kforensics.formats.index import parse_time_index
from kforensics.formats.segment.walk import Level, iter_record_chunks, walk_segment
from kforensics.reconcile.trace.found_record import may_be_displaced
from kforensics.reconcile.trace.model import CopyKind
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import parse_file_name
from kforensics.units import TopicPartition

_MAGIC_AT = 16


def outline_of(place: PartitionPlace) -> Replica | None:
    """Return the replica with its segments in outline; None where more has to be read to know what its broker loads.

    That is so where the broker did not stop cleanly, a cleaner works on the log, there are no leader epochs or files are left over, of a capture, and where the end of
    the log is damaged.
    """
    paths = segment_paths(place)
    if not place.state.store.holds_bytes or not place.is_live or not place.state.clean_shutdown:
        return None
    collected = collect_directory(place)
    replica = collected.replica
    bases = [_base_of(path) for path in paths]
    is_plain = bases == sorted(set(bases)) and len(paths) == len(segment_paths(place, left_over=()))
    if not paths or not is_plain or collected.problems or replica.damage or replica.orphan_indexes:
        return None
    if isinstance(replica.checkpoint_epochs, Absent) or isinstance(replica.cleaner_point, CheckpointValue):
        return None
    segments = []
    try:
        for path, base, behind in zip(paths, bases, [*bases[1:], None], strict=True):
            with open_evidence(place.state.root / path) as file:
                segment = (
                    _closed(file, path, base, behind, place) if behind is not None else _last(file, path, base, place)
                )
            if segment is None:
                return None
            segments.append(segment)
    except EvidenceError:
        return None
    return stitch_replica(replica, segments, ())


def search_at(place: PartitionPlace, replica: Replica, search: RecordSearch, offset: int) -> SearchedFile | None:
    """Return what the batches that may hold an offset give, of which the indexes say where they are; None where they are damaged, or no segment holds it."""
    for segment in replica.segments:
        last = segment.last_offset
        if isinstance(last, Absent) or not segment.base_offset <= offset <= last:
            continue
        out = SearchedFile(segment=segment)
        taker = Taker(search, out)
        path = place.state.root / segment.path
        try:
            with open_evidence(path) as file:
                start, end = find_range(
                    file, path, segment.base_offset, from_offset=offset, to_offset=offset, from_time_ms=None
                )
                for chunk in iter_record_chunks(file, start=start, end=end):
                    if isinstance(chunk, Damage):
                        return None
                    taker.take(chunk)
                out.bytes = (file.size if end is None else end) - start
        except EvidenceError:
            return None
        return out
    return None


def _base_of(path: str) -> int:
    base = parse_file_name(path.rpartition("/")[2]).base_offset
    assert isinstance(base, int)
    return base


def _closed(
    file: EvidenceFile, path: str, base_offset: int, next_offset: int, place: PartitionPlace, newest_ms: int = -1
) -> Segment | None:
    """Return a segment that ends where the next begins; its newest timestamp is the last of its time index, to which a broker adds it when it closes the segment."""
    head = file.read(0, _MAGIC_AT + 1)
    index = (place.state.root / path).with_suffix(".timeindex")
    if len(head) <= _MAGIC_AT or not index.exists():
        return None
    with open_evidence(index) as times:
        try:
            entries = parse_time_index(times.read_all(INDEX_LIMIT)).entries
        except FormatError:
            return None
    newest_ms = max(newest_ms, int(entries["timestamp"][-1]) if len(entries) else -1)
    if newest_ms < 0:
        return None
    return Segment(
        path=path,
        base_offset=base_offset,
        length=file.size,
        valid_length=file.size,
        recovered_end_offset=next_offset,
        first_offset=base_offset,
        last_offset=next_offset - 1,
        batch_count=1,
        record_count=0,
        epochs=(),
        magics=frozenset({head[_MAGIC_AT]}),
        max_timestamp_ms=newest_ms,
        digests=np.zeros(0, dtype=DIGEST_DTYPE),
        batches=Absent.NOT_WRITTEN,
        mtime_ns=file.mtime_ns,
    )


def _last(file: EvidenceFile, path: str, base_offset: int, place: PartitionPlace) -> Segment | None:
    """Return the last segment, whose end is read from the last batch that its index names."""
    start = find_range(
        file, place.state.root / path, base_offset, from_offset=(1 << 63) - 1, to_offset=None, from_time_ms=None
    ).start
    end, newest_ms = base_offset, -1
    for window in walk_segment(file, level=Level.CRC, start=start):
        if window.damage or not window.batches["crc_valid"].all():
            return None
        if len(window.batches):
            end = int(window.batches["last_offset"][-1]) + 1
            newest_ms = max(newest_ms, int(window.batches["max_timestamp"].max()))
    return _closed(file, path, base_offset, end, place, newest_ms)


def found_by_offset(shared: TopicEvidence, wanted: Sequence[TopicPartition]) -> list[TracedPartition] | None:
    """Return what a look at one offset shows where all replicas hold the same record, without reading the logs whole; None where it does not show all that can be said."""
    if not shared.search.is_by_offset or shared.case.ranks or cluster_of(shared.case).log_files:
        return None
    out = []
    for partition in wanted:
        found = _found_by_offset(shared, partition)
        if found is None:
            return None
        out.append(found)
    return out


def _found_by_offset(shared: TopicEvidence, partition: TopicPartition) -> TracedPartition | None:
    offset = shared.search.offset
    places = places_of(shared.case).by_partition.get(partition, ())
    replicas: list[ScannedReplica] = []
    hits: list[Hit] = []
    for place in places:
        outline = outline_of(place)
        file = search_at(place, outline, shared.search, offset) if outline is not None and offset is not None else None
        if outline is None or file is None or file.segment is None or shared.settings(outline.broker_id).is_compacted:
            return None
        collected = CollectedReplica(replica=outline, problems=())
        replicas.append(scanned_replica(place, collected, CopyKind.LIVE, {file.segment.path: file}))
        hits += replicas[-1].hits(file.segment.path, file.hits)
    found = list(grouped(hits, {(one.replica.input, one.replica.path): one.markers for one in replicas}))
    if len(found) != 1 or len(found[0].copies) != len(places) or found[0].record.is_transactional:
        return None
    compared = compare_replicas(shared.comparison, places, [one.collected for one in replicas])
    report = compared.report
    if report is None or compared.findings or compared.problems or report.is_deleted or report.leader is None:
        return None
    account, offset_now = report.account, found[0].record.offset
    if account is not None and may_be_displaced(offset_now, account, report.leader.view.epochs):
        return None
    current = current_id(replicas, report)
    if not all(is_of(one.replica, current) for one in replicas):
        return None
    record = shared.judge(partition, replicas, report).judge(found[0])
    if record.state != "present" or record.fate:
        return None
    looked = searched(
        partition,
        replicas,
        report=report,
        incident=None,
        current=current,
        account=shared.truncations,
        remote=shared.remote,
    )
    # Every replica holds it: other offsets, and who leads, make no difference to it.
    gaps = tuple(gap for gap in looked.gaps if isinstance(gap.offsets, Absent) and gap.reason != "unknown-leader")
    return TracedPartition(replace(looked, gaps=gaps), lambda: [record], (), ())
