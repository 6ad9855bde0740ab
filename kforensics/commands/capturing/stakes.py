"""How much of a log a capture takes along: from which offset on a truncation can still happen, and whether its records decide."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kforensics.commands.capturing.folders import FolderPlan
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, checkpoint_value
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.model import BUCKET_OFFSETS
from kforensics.evidence.replica.collect import collect_directory
from kforensics.protocol.loading.disk import first_scanned
from kforensics.source.naming import DirectoryState, FileSuffix
from kforensics.units import OFFSETS_TOPIC, REMOTE_LOG_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from kforensics.evidence.metadata.history import MetadataHistory

MARGIN_OFFSETS = BUCKET_OFFSETS
"""Offsets below the point from which a truncation can still happen, from which batches are taken along, too."""

ALWAYS_BY_RECORD = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""Brokers compact these whatever their settings."""

WITH_CONTENT = ALWAYS_BY_RECORD | {SHARE_TOPIC, REMOTE_LOG_TOPIC}
"""The logs of the coordinators and of the copies in remote storage: their records are the brokers' own, so that they are taken along."""

LARGEST_COORDINATOR_LOG = 256 << 20
"""Bytes of a log of the coordinators up to which its records are taken along."""

LARGEST_CLEANED_LOG = 4 << 20
"""Bytes of a compacted log up to which its records are digested at depth tails, too."""

LARGEST_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What decides how much of a log is taken along."""

    compacted: frozenset[str]
    """Topics that a cleaner works on."""
    all_batches: bool
    margin: int
    is_by_ends: bool
    is_running: bool | None
    """Whether a process holds the lock of a log directory; none where that is not known."""

    def decide(self, folder: FolderPlan) -> None:
        """Decide what is taken along of the log of a partition directory."""
        place = folder.place
        if place is None or folder.is_metadata:
            return
        _decide(folder, self.compacted, all_batches=self.all_batches, margin=self.margin)
        if self.is_by_ends and place.directory_state != DirectoryState.DELETED.value:
            _decide_by_ends(folder, place)
        elif not self.is_running and not place.state.clean_shutdown:
            folder.carried_from = min(folder.carried_from, _scanned_from(folder, place))


def metadata_histories(inputs: Inputs) -> "list[MetadataHistory]":
    """Return what the metadata logs say; one that can't be read is left out."""
    histories = []
    for files in find_metadata_logs(inputs):
        from kforensics.evidence.metadata.log import read_metadata_log  # noqa: PLC0415 - only nodes with a metadata log need it

        with contextlib.suppress(EvidenceError):  # named where the file is taken along
            histories.append(read_metadata_log(files).without_partitions())
    return histories


def compacted_topics(histories: "Sequence[MetadataHistory]") -> frozenset[str]:
    """Return the topics that may be compacted by their settings, as far as the metadata log shows it; the cleaner's checkpoint shows the others."""
    policies: dict[str, str | None] = {}
    for history in histories:
        from kforensics.evidence.metadata.state import TOPIC_RESOURCE  # noqa: PLC0415 - only nodes with a metadata log need it

        for one in history.configs:
            if one.resource_type == TOPIC_RESOURCE and one.name == "cleanup.policy":
                policies[one.resource_name] = one.value
    return frozenset(topic for topic, policy in policies.items() if policy is not None and "compact" in policy)


def _decide(folder: FolderPlan, compacted: frozenset[str], *, all_batches: bool, margin: int) -> None:
    """From which offset a row a batch is taken along, and whether digests of records are."""
    place = folder.place
    assert place is not None
    cleaner_point = checkpoint_value(place.state, "cleaner_point", place.topic_partition)
    folder.by_record = not isinstance(cleaner_point, Absent) or place.topic_partition.topic in compacted
    if place.topic_partition.topic in WITH_CONTENT:
        folder.with_content = sum(entry.length for entry, _, _ in folder.segments()) <= LARGEST_COORDINATOR_LOG
    if folder.with_content:
        return
    if not place.is_live:
        return
    folder.bytes_from = stake(place, margin)
    if not all_batches and not folder.by_record:
        folder.carried_from = folder.bytes_from


def _decide_by_ends(folder: FolderPlan, place: PartitionPlace) -> None:
    """Of small logs that a cleaner works on all rows and records are taken along; of others rows from the high watermark or the recovery point on."""
    length = sum(entry.length for entry, _, _ in folder.segments())
    if folder.with_content or (folder.by_record and length <= LARGEST_CLEANED_LOG):
        folder.carried_from = 0
        return
    folder.by_record = False
    values = [
        checkpoint_value(place.state, name, place.topic_partition) for name in ("high_watermark", "recovery_point")
    ]
    folder.carried_from = min((one.value for one in values if not isinstance(one, Absent)), default=LARGEST_OFFSET)


def _scanned_from(folder: FolderPlan, place: PartitionPlace) -> int:
    """Return the base offset of the segment that holds the recovery point, from which a start after an unclean shutdown reads every batch."""
    if not folder.carried_from:
        return 0
    point = checkpoint_value(place.state, "recovery_point", place.topic_partition)
    bases = sorted(base for _, name, base in folder.segments() if name.suffix is FileSuffix.NONE)
    return bases[first_scanned(bases, 0 if isinstance(point, Absent) else point.value)] if bases else 0


def stake(place: PartitionPlace, margin: int) -> int:
    """Return the offset from which a truncation can still happen, lowered by the margin to the beginning of a run of offsets that has a digest.

    That is the lowest of the high watermark, the recovery point and the beginning of the last leader epoch but one; 0 where one of them is not known.
    """
    partition = place.topic_partition
    values = [checkpoint_value(place.state, name, partition) for name in ("high_watermark", "recovery_point")]
    lowest = min((0 if isinstance(one, Absent) else one.value for one in values), default=0)
    if lowest - margin < BUCKET_OFFSETS:
        return 0  # whatever the epochs are
    epochs = collect_directory(place).replica.checkpoint_epochs
    if isinstance(epochs, Absent) or not epochs:
        return 0
    lowest = min(lowest, epochs[max(len(epochs) - 2, 0)].start_offset)
    return max((lowest - margin) // BUCKET_OFFSETS, 0) * BUCKET_OFFSETS
