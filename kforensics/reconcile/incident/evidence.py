"""The evidence of an incident beyond the directories of its partition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kforensics.damage import Absent
from kforensics.protocol.outcome import ProtocolName
from kforensics.reconcile.bugs.log_signs import Sign
from kforensics.reconcile.history.deleted_records import DeletionRequest
from kforensics.reconcile.history.topic_incarnations import Incarnation
from kforensics.reconcile.incident.doubts import Moments, WholeReturn
from kforensics.reconcile.observed.broker_versions import BrokerVersions
from kforensics.reconcile.observed.facts import ClusterFacts, GroupCommit
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEvidence:
    """The evidence beyond the directories of the partition."""

    facts: ClusterFacts
    logged: Sequence[LoggedTruncation]
    """The logged truncations of this partition."""
    incarnation: Incarnation
    """What log lines say of its creation."""
    last_logged_ms: int | Absent
    """Time of the last line of all logs."""
    protocol_hints: Mapping[int, ProtocolName]
    commits: Sequence[GroupCommit]
    """Out of the consumer offsets as they are now."""
    versions: BrokerVersions = field(default_factory=BrokerVersions)
    signs: Sequence[Sign] = ()
    """Signs of known bugs in lines of it and of its brokers."""
    moments: Moments = field(default_factory=Moments)
    """The moments at which the inputs were taken."""
    whole_returns: Sequence[WholeReturn] = ()
    """Followers that truncated nothing by the leader's answer."""
    deletions: Sequence[DeletionRequest] = ()
    """Requests of clients to delete records of the partition, by log lines."""
    is_deletion_logged: bool = False
    """Whether a log line says that the topic was deleted."""
    has_zookeeper: bool = False
    """Whether its brokers run with ZooKeeper: they put a directory aside for its removal on request alone."""
    wanted_leader: int | None = None
    """The broker that is taken as the final leader, where it holds the partition."""
    is_order_in_doubt: bool = False
    """The times of files say that an earlier snapshot is younger than the directories as they are now, and nothing proves either."""
