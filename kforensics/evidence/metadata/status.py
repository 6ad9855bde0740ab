"""The part of a partition's state beside its epochs in a metadata record, and what a change leaves of it.

(Kafka: PartitionRegistration.merge, 2.8 to 4.4)
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kforensics.damage import Absent
from kforensics.formats.messages.metadata import LEADER_UNCHANGED, NO_CHANGE, NO_LEADER, RECOVERING

Fields = Mapping[str, Any]


class PartitionStatus(NamedTuple):
    """The part of a partition's state beside its epochs in a metadata record; `PartitionState` explains the fields."""

    leader: int | Absent
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    is_recovering: bool
    directories: tuple[str, ...]


def stated_status(fields: Fields) -> PartitionStatus:
    """Return the status in a PartitionRecord.

    Args:
        fields: of any version; what a version lacks is empty.
    """
    leader = fields["leader"]
    return PartitionStatus(
        Absent.NOT_APPLICABLE if leader == NO_LEADER else leader,
        fields["isr"] or (),
        fields["replicas"] or (),
        fields["adding_replicas"] or (),
        fields["removing_replicas"] or (),
        fields.get("eligible_leader_replicas") or (),
        fields.get("last_known_elr") or (),
        fields.get("leader_recovery_state") == RECOVERING,
        fields.get("directories") or (),
    )


def changed_status(status: PartitionStatus, fields: Fields) -> PartitionStatus:
    """Return the status that a PartitionChangeRecord leads to (`PartitionRegistration.merge`).

    Args:
        fields: of any version; a field that is null, or unchanged by its own value for that, keeps what was there.
    """
    get = fields.get
    leader = status.leader
    if fields["leader"] != LEADER_UNCHANGED:
        leader = Absent.NOT_APPLICABLE if fields["leader"] == NO_LEADER else fields["leader"]
    recovery = get("leader_recovery_state", NO_CHANGE)
    return PartitionStatus(
        leader,
        _changed(fields["isr"], status.isr),
        _changed(get("replicas"), status.replicas),
        _changed(get("adding_replicas"), status.adding_replicas),
        _changed(get("removing_replicas"), status.removing_replicas),
        _changed(get("eligible_leader_replicas"), status.eligible_leader_replicas),
        _changed(get("last_known_elr"), status.last_known_elr),
        status.is_recovering if recovery == NO_CHANGE else recovery == RECOVERING,
        _changed(get("directories"), status.directories),
    )


def has_elr(status: PartitionStatus) -> bool:
    """Return whether a replica outside the ISR may become leader.

    Args:
        status: with members of the ELR, or a last known one.
    """
    return bool(status.eligible_leader_replicas or status.last_known_elr)


def _changed(new: tuple[Any, ...] | None, old: tuple[Any, ...]) -> tuple[Any, ...]:
    return old if new is None else new
