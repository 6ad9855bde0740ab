"""Which entries of a timeline a reader needs, alike on a screen and on a page."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.render.events import GRAVE

# What a person has to know to follow an incident; the rest is shown with -v.
_SHOWN = frozenset(
    {
        "broker-start",
        "broker-stop",
        "broker-halted",
        "start-failed",
        "fatal-fault",
        "retention",
        "broker-fenced",
        "recovery",
        "unclean-election",
        "isr-shrink",
        "leader-lost",
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
    about = [
        entry
        for entry in timeline
        if not entry.is_quiet
        and (entry.kind in _SHOWN or is_of_unknown_end(entry))
        and (isinstance(entry.topic_partition, Absent) or entry.topic_partition in eventful)
    ]
    times = [
        truncation.time_ms
        for incident in incidents
        for truncation in incident.truncations
        if isinstance(truncation.time_ms, int)
    ]
    times += [entry.time_ms for entry in about if entry.kind in GRAVE and isinstance(entry.time_ms, int)]
    end = max(times, default=None)
    begin = _first_creation(incidents)
    return [entry for entry in _restarts_only(about) if _is_within(entry, begin, end)]


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


def _restarts_only(entries: Sequence[TimelineEntry]) -> Iterator[TimelineEntry]:
    """Yield the entries without the first start of each broker: how the cluster first started explains nothing."""
    seen: set[int | Absent] = set()
    for entry in entries:
        if entry.kind == "broker-start" and entry.broker_id not in seen:
            seen.add(entry.broker_id)
            continue
        seen.add(entry.broker_id)
        yield entry
