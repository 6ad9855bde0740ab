"""What retention takes from the logs that have loaded, some 30 seconds after."""

from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from kforensics.commands.loading import DirectoryOnDisk
from kforensics.commands.predicting.settings import Policy
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.replica.loader_reader import read_needed
from kforensics.evidence.replica.loader_values import Batches, Content, Need
from kforensics.formats.log.batch_table import NO_TIMESTAMP
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.protocol.loading.names import LOG, TIME_INDEX, padded
from kforensics.protocol.loading.retention import AgedSegment, RetentionRule, due_segments
from kforensics.protocol.loading.values import LoadOutcome
from kforensics.protocol.loading.versions import loading_rules
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.logs.predicted_load import DueSegments
from kforensics.source.mapped import open_evidence

_BEGINNING = 1 << 16
"""Bytes of a segment whose batches are held against its time index."""


def find_due_segments(
    disk: DirectoryOnDisk,
    outcome: LoadOutcome,
    segments: Sequence[tuple[int, int]],
    policy: Policy,
    *,
    now_ms: int,
    version: KafkaVersion,
) -> DueSegments | Absent:
    """Return the segments that retention deletes once the high watermark has reached the log end.

    Args:
        segments: base offset and length of each that it leaves.

    Returns:
        Which ones; not applicable where none are due, unreadable where their age can't be read.
    """
    state = outcome.state
    if isinstance(state, Absent):
        return Absent.NOT_APPLICABLE
    bases = sorted({base for base, _ in segments if f"{padded(base)}{LOG}" in outcome.tree})
    ends = [*bases[1:], state.log_end_offset]
    rules = policy.policy
    asks_age = rules.deletes and rules.retention_ms >= 0
    aged: list[AgedSegment] = []
    for base, end in zip(bases, ends, strict=True):
        length = outcome.tree[f"{padded(base)}{LOG}"]
        try:
            is_asked = length and asks_age
            timestamp = _timestamp(disk, outcome, base, now_ms=now_ms, version=version) if is_asked else now_ms
        except EvidenceError:
            return Absent.UNREADABLE
        by_time = asks_age and now_ms - timestamp > rules.retention_ms
        is_kept = not by_time and (not rules.deletes or rules.retention_bytes < 0) and end > state.log_start_offset
        if is_kept and not aged:
            return Absent.NOT_APPLICABLE
        aged.append(AgedSegment(base, end, length, timestamp))
        if is_kept:
            break  # the walk ends at the first segment that is kept: later ones are not read
    due = due_segments(
        aged,
        rules,
        log_start_offset=state.log_start_offset,
        high_watermark=state.log_end_offset,
        now_ms=now_ms,
        version=version,
    )
    if not due:
        return Absent.NOT_APPLICABLE
    lengths = {one.base_offset: one.length for one in aged}
    aged_out = {base for base, rule in due if rule is RetentionRule.TIME}
    misdated = tuple(
        one.base_offset
        for one in aged
        if one.base_offset in aged_out
        and one.timestamp_ms == _indexed_timestamp(disk, outcome, one.base_offset)
        and one.timestamp_ms < (recorded := _first_timestamps(disk, outcome, one.base_offset))
        and now_ms - recorded <= rules.retention_ms
    )
    return DueSegments(
        base_offsets=tuple(base for base, _ in due),
        bytes=sum(lengths[base] for base, _ in due),
        rule=due[-1][1],
        is_setting_known=policy.is_known,
        is_whole_log=len(due) == len(bases),
        misdated=misdated,
    )


def _first_timestamps(disk: DirectoryOnDisk, outcome: LoadOutcome, base: int) -> int:
    """Return the largest timestamp of the batches at the beginning of a segment, -1 where none can be read."""
    name = f"{padded(base)}{LOG}"
    before = outcome.origins.get(name, name)
    with suppress(EvidenceError), open_evidence(disk.folder / disk.origins.get(before, before)) as file:
        for window in walk_segment(file, level=Level.CRC, end=min(file.size, _BEGINNING)):
            sound = window.batches[window.batches["crc_valid"]]
            if len(sound):
                return int(sound["max_timestamp"].max())
    return NO_TIMESTAMP


def _timestamp(disk: DirectoryOnDisk, outcome: LoadOutcome, base: int, *, now_ms: int, version: KafkaVersion) -> int:
    """Return the largest timestamp of a segment as its broker knows it; that of its last change where it knows none, as before 0.10.1 (KIP-33)."""
    name = f"{padded(base)}{LOG}"
    before = outcome.origins.get(name, name)
    origin = disk.origins.get(before, before)
    scanned = next((one for one in outcome.scanned if one.base_offset == base), None)
    largest = NO_TIMESTAMP
    if not loading_rules(version).has_time_indexes:
        is_truncated = outcome.tree[name] != disk.files.get(before)
        return now_ms if is_truncated else cast("int", _read(disk, Need(origin, Content.CHANGED)))
    if scanned is not None:
        found = cast("Batches | None", disk.read.get(Need(origin, Content.CHECKED_BATCHES)))
        largest = max(
            (one.max_timestamp for one in (found.batches if found else ()) if one.position < scanned.kept_length),
            default=NO_TIMESTAMP,
        )
    else:
        largest = _indexed_timestamp(disk, outcome, base)
    return largest if largest >= 0 else cast("int", _read(disk, Need(origin, Content.CHANGED)))


def _indexed_timestamp(disk: DirectoryOnDisk, outcome: LoadOutcome, base: int) -> int:
    """Return the last timestamp of the time index of a segment, -1 where it has none."""
    index = outcome.origins.get(f"{padded(base)}{TIME_INDEX}")
    if index is None or not disk.files.get(index):
        return NO_TIMESTAMP
    return cast("int", _read(disk, Need(disk.origins.get(index, index), Content.LAST_TIMESTAMP)))


def _read(disk: DirectoryOnDisk, need: Need) -> object:
    if need not in disk.read:
        disk.read[need] = read_needed(disk.folder, need)
    return disk.read[need]
