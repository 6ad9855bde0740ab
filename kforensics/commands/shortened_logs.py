"""Partitions on the disks of logs that end before offsets which lines of their brokers name: what was put back, or copied too early, is the disk."""

from collections.abc import Sequence

from kforensics.case.comparison import PartitionResult
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.findings.answers.model import State
from kforensics.findings.concern import Concern, ConcernKind
from kforensics.units import METADATA_TOPICS, TopicPartition

_SAME = frozenset({State.AGREE, State.SAME_ENDS})
"""States that say that every replica ends where the log does."""


def with_shortened_logs(
    results: Sequence[PartitionResult], groups: Sequence[tuple[TopicPartition, tuple[PartitionPlace, ...]]]
) -> list[PartitionResult]:
    """Return the results, in which no partition agrees of which a replica is in a log directory where another log ends before a logged offset."""
    ended = {
        (one.partition, number)
        for one in results
        for concern in one.judged.concerns
        if concern.kind is ConcernKind.LOGGED_END
        for number in concern.inputs
    }
    if not ended:
        return list(results)
    places = dict(groups)
    disks = {
        (place.state.input, place.state.log_dir)
        for partition, number in ended
        for place in places.get(partition, ())
        if place.state.input == number and place.directory_state == "live"
    }
    return [_on(disks, one, places.get(one.partition, ())) for one in results]


def _on(disks: set[tuple[int, str]], result: PartitionResult, places: Sequence[PartitionPlace]) -> PartitionResult:
    live = [place.state for place in places if place.directory_state == "live"]
    on = [one for one in live if (one.input, one.log_dir) in disks]
    judged = result.judged
    # One that is behind on another disk says nothing of those that it follows.
    is_calm = judged.state in _SAME or (judged.state is State.BEHIND and len(on) == len(live))
    if not on or not is_calm or judged.is_deleted or judged.partition.topic in METADATA_TOPICS:
        return result
    concern = Concern(
        state=State.UNKNOWN,
        kind=ConcernKind.SAME_DISK,
        owners=tuple(dict.fromkeys(f"broker {one.broker_id}" for one in on)),
        inputs=tuple(dict.fromkeys(one.input for one in on)),
    )
    return result._replace(judged=judged._replace(concerns=(*judged.concerns, concern)))
