"""Offsets that consumer groups committed, from every replica of `__consumer_offsets` among the inputs."""

from collections.abc import Iterable, Iterator

from kforensics.damage import Absent, Span
from kforensics.errors import EvidenceError
from kforensics.evidence.captured.reading import captured_commits
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Citation, GroupCommit
from kforensics.evidence.replica.collect import segment_paths
from kforensics.formats.log.records import Record
from kforensics.formats.messages.schema import Decoded
from kforensics.formats.segment.walk import iter_records
from kforensics.source.capture import CapturedSegment
from kforensics.source.mapped import open_evidence
from kforensics.units import OFFSETS_TOPIC, TopicPartition

_COMMIT_KEYS = frozenset({"OffsetCommitKey", "LegacyOffsetCommitKey"})


def walk_group_commits(places: Iterable[PartitionPlace]) -> Iterator[GroupCommit]:
    """Yield the offset commits that can be read, in the order of the logs; an unreadable file gives none.

    Commits inside a transaction that was aborted or is still open are left out: they never took effect.
    """
    for place in places:
        if place.topic_partition.topic != OFFSETS_TOPIC:
            continue
        for path in segment_paths(place):
            try:
                yield from commits_in_file(place, path)
            except EvidenceError:
                continue


def commits_in_file(place: PartitionPlace, path: str) -> Iterator[GroupCommit]:
    """Yield the offset commits of one segment that took effect, in the order in which they did; of each transaction the highest."""
    # A transaction that never ends must not hold all of a log: of its commits only those are kept that can count.
    pending: dict[int, _Highest] = {}
    with open_evidence(place.state.root / path) as file:
        if isinstance(file, CapturedSegment):
            yield from _captured_commits(file, place, path)
            return
        for record in iter_records(file):
            if not isinstance(record, Record):
                continue
            if record.is_control:
                ended = pending.pop(record.producer_id, {})
                if record.key is not None and record.key[2:4] == b"\x00\x01":
                    yield from ended.values()
                continue
            commit = _commit_of(record, place, path)
            if commit is None:
                continue
            if record.is_transactional:
                _keep(pending.setdefault(record.producer_id, {}), commit)
            else:
                yield commit


def _captured_commits(file: CapturedSegment, place: PartitionPlace, path: str) -> Iterator[GroupCommit]:
    """Yield the commits that a capture holds of a segment: the highest of each group, partition and leader epoch."""
    for topic, partition, group, offset, leader_epoch, time_ms, position in captured_commits(file):
        yield GroupCommit(
            partition=TopicPartition(topic, partition),
            group=group,
            offset=offset,
            leader_epoch=Absent.NOT_WRITTEN if leader_epoch is None else leader_epoch,
            time_ms=time_ms,
            citation=Citation(input=place.state.input, path=path, span=Span(position, 0)),
        )


def highest_commits(commits: Iterable[GroupCommit]) -> Iterable[GroupCommit]:
    """Return the first of the highest offsets that each group committed in each leader epoch of a partition."""
    best: _Highest = {}
    for commit in commits:
        _keep(best, commit)
    return best.values()


_Highest = dict[tuple[TopicPartition, str, int | Absent], GroupCommit]


def _keep(best: _Highest, commit: GroupCommit) -> None:
    key = (commit.partition, commit.group, commit.leader_epoch)
    if key not in best or best[key].offset < commit.offset:
        best[key] = commit


def _commit_of(record: Record, place: PartitionPlace, path: str) -> GroupCommit | None:
    if record.key is None or record.value is None or record.key[:2] not in {b"\x00\x00", b"\x00\x01"}:
        return None
    from kforensics.formats.messages.coordinators import parse_group_record  # noqa: PLC0415 - 10 ms, where no group committed

    parsed = parse_group_record(record.key, record.value)
    if (
        not isinstance(parsed.key, Decoded)
        or not isinstance(parsed.value, Decoded)
        or parsed.key.name not in _COMMIT_KEYS
    ):
        return None
    key, value = parsed.key.fields, parsed.value.fields
    epoch = value.get("leader_epoch", -1)
    return GroupCommit(
        partition=TopicPartition(str(key["topic"]), int(key["partition"])),
        group=str(key["group"]),
        offset=int(value["offset"]),
        leader_epoch=epoch if isinstance(epoch, int) and epoch >= 0 else Absent.NOT_WRITTEN,
        time_ms=int(value["commit_timestamp"]),
        citation=Citation(input=place.state.input, path=path, span=Span(record.batch_position, 0)),
    )
