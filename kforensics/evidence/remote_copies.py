"""The offsets of partitions that are in remote storage, by the records of `__remote_log_metadata` (KIP-405)."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.replica.collect import segment_paths
from kforensics.formats.log.records import Record
from kforensics.formats.messages.remote_log import REMOTE_LOG_SEGMENT, parse_remote_log_record
from kforensics.formats.messages.schema import Decoded
from kforensics.formats.segment.walk import iter_records
from kforensics.source.mapped import open_below
from kforensics.units import OffsetRange

_COPY_FINISHED = 1
"""Of the states of a segment (`RemoteLogSegmentState`) the only one in which it can be read; those behind it are of its deletion."""

RemoteCopies = Mapping[tuple[str, int], tuple[OffsetRange, ...]]
"""By topic id and partition."""


class _Copy(NamedTuple):
    topic_id: str
    partition: int
    offsets: OffsetRange


def remote_copies(places: Iterable[PartitionPlace]) -> RemoteCopies:
    """Return the offsets whose copies in remote storage were finished and not deleted since; what can't be read adds nothing."""
    copies: dict[str, _Copy] = {}
    states: dict[str, int] = {}
    for place in places:
        for path in segment_paths(place):
            with suppress(EvidenceError), open_below(place.state.root, path) as file:
                for record in iter_records(file):
                    if isinstance(record, Record) and not record.is_control and record.value is not None:
                        _note(parse_remote_log_record(record.value), copies, states)
    found: dict[tuple[str, int], list[OffsetRange]] = {}
    for segment, copy in copies.items():
        if states[segment] == _COPY_FINISHED:
            found.setdefault((copy.topic_id, copy.partition), []).append(copy.offsets)
    return {key: tuple(sorted(ranges)) for key, ranges in found.items()}


def _note(message: object, copies: dict[str, _Copy], states: dict[str, int]) -> None:
    fields = message.fields if isinstance(message, Decoded) else {}
    if "remote_log_segment_id" not in fields or not isinstance(message, Decoded):
        return
    named, segment = fields["remote_log_segment_id"]["topic_id_partition"], fields["remote_log_segment_id"]["id"]
    states[segment] = max(states.get(segment, 0), fields["remote_log_segment_state"])  # a replica may lag behind
    if message.name == REMOTE_LOG_SEGMENT.name and fields["start_offset"] <= fields["end_offset"]:
        offsets = OffsetRange(fields["start_offset"], fields["end_offset"])
        copies[segment] = _Copy(named["id"], named["partition"], offsets)
