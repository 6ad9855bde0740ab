"""The time of the first record of a replica whose log is here from its first offset on."""

from collections.abc import Collection, Iterable

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.formats.log.batch_table import CODEC_MASK
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import open_evidence
from kforensics.units import TopicPartition

_FIRST_SEGMENT = f"{0:020d}.log"


def first_record_times(
    places: Iterable[PartitionPlace], wanted: Collection[tuple[int, TopicPartition]]
) -> dict[tuple[int, TopicPartition], int]:
    """Return when the first record of each log was written by its own timestamp, in UTC ms; none of a log that does not begin at offset 0.

    Args:
        wanted: broker and partition of the logs in question.
    """
    found: dict[tuple[int, TopicPartition], int] = {}
    for place in places:
        broker = place.state.broker_id
        if (
            place.directory_state != "live"
            or isinstance(broker, Absent)
            or (broker, place.topic_partition) not in wanted
        ):
            continue
        try:
            with open_evidence(place.state.root / place.path / _FIRST_SEGMENT) as file:
                window = next(walk_segment(file, level=Level.HEADERS, end=1), None)
        except EvidenceError:
            continue
        if window is None or not len(window.batches):
            continue
        first = window.batches[0]
        is_wrapper = first["magic"] < 2 and first["attributes"] & CODEC_MASK
        if not first["base_offset"] and not is_wrapper and first["base_timestamp"] > 0:
            found[broker, place.topic_partition] = int(first["base_timestamp"])
    return found
