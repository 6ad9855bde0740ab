"""Which entries of a timeline a reader needs, alike on a screen and on a page."""

from collections.abc import Collection, Sequence

from kforensics.damage import Absent
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.render.events import GRAVE
from kforensics.units import TopicPartition

# What decides something in an incident; the rest is shown with -v. Of elections those count that were unclean, or after which a log was truncated,
# and of an ISR that shrinks that only one replica is left in it.
_SHOWN = frozenset(
    {
        "broker-stop",
        "broker-halted",
        "start-failed",
        "fatal-fault",
        "retention",
        "broker-fenced",
        "recovery",
        "unclean-election",
        "isr-shrink",
        "log-dir-failed",
        "truncation-refused",
        "segments-deleted",
        "topic-deleted",
    }
)

AFTERMATH_MS = 1_000
"""How long after the last grave event the timeline continues."""


_SHOWN_ALONE = frozenset(
    {"retention", "start-failed", "fatal-fault", "broker-halted", "log-dir-error", "log-dir-failed"}
)
"""Kinds that are shown also where nothing happened to a partition: records that were deleted, and nodes that ended."""


def shown_entries(
    timeline: Sequence[TimelineEntry], incidents: Sequence[PartitionIncident], *, verbose: bool
) -> list[TimelineEntry]:
    """Return the entries that a person needs to follow the incident: none where nothing happened, all where `verbose`.

    Args:
        incidents: of all partitions; those of partitions that lost or truncated nothing are left out.
    """
    if verbose:
        return list(timeline)
    eventful = {
        incident.partition
        for incident in incidents
        if incident.truncations or incident.losses or incident.counts_at_least
    }
    if not eventful:
        return [entry for entry in timeline if not entry.is_quiet and entry.kind in _SHOWN_ALONE]
    truncations = [one for incident in incidents for one in incident.truncations]
    cited = {citation for one in truncations for citation in one.citations}
    decided = {(one.topic_partition, one.leader_epoch) for one in truncations}
    about = [
        entry
        for entry in timeline
        if not entry.is_quiet
        and _decides(entry, decided)
        and (entry.kind != "truncation" or not cited.intersection(entry.citations))
        and (isinstance(entry.topic_partition, Absent) or entry.topic_partition in eventful)
    ]
    times = [one.time_ms for one in truncations if isinstance(one.time_ms, int)]
    times += [entry.time_ms for entry in about if entry.kind in GRAVE and isinstance(entry.time_ms, int)]
    end = max(times, default=None)
    begin = _first_creation(incidents)
    return [entry for entry in about if _is_within(entry, begin, end)]


def _decides(entry: TimelineEntry, elections: Collection[tuple[TopicPartition, int | Absent]]) -> bool:
    """Whether an entry decided something.

    Args:
        elections: partitions and leader epochs in which logs were truncated.
    """
    if entry.kind == "leader-change":
        return (entry.topic_partition, entry.leader_epoch) in elections and entry.leader_epoch != 0
    if entry.kind == "isr-shrink":
        isr = entry.detail.get("isr")
        return not isinstance(isr, tuple) or len(isr) < 2
    return entry.kind in _SHOWN or is_of_unknown_end(entry)


def is_of_unknown_end(entry: TimelineEntry) -> bool:
    """Whether an entry is a truncation that is among none that are explained, as nothing shows how far the log had reached."""
    return entry.kind == "truncation" and not entry.is_quiet and isinstance(entry.detail.get("effect"), Absent)


def _is_within(entry: TimelineEntry, begin: int, end: int | None) -> bool:
    if not isinstance(entry.time_ms, int):
        return True
    return begin <= entry.time_ms and (end is None or entry.time_ms <= end + AFTERMATH_MS)


def _first_creation(incidents: Sequence[PartitionIncident]) -> int:
    """When the first of the partitions that something happened to was made, 0 where that is not known: before, the cluster came up."""
    first = [
        incident.leaderships[0]
        for incident in incidents
        if (incident.truncations or incident.losses) and incident.leaderships
    ]
    made = [state.time_ms for state in first if state.leader_epoch == 0 and isinstance(state.time_ms, int)]
    return min(made) if len(made) == len(first) and made else 0
