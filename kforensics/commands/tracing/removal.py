"""The settings by which brokers remove records of a topic, as metadata log and `server.properties` have them."""

from collections.abc import Callable, Sequence
from functools import cache

from kforensics.commands.predicting.settings import WEEK_MS, Settings, Surroundings, server_properties
from kforensics.commands.snapshots import Evidence
from kforensics.damage import Absent
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.quorum import newest_log
from kforensics.evidence.model import Problem
from kforensics.protocol.coordinators import CREATED_WITH, created_policy
from kforensics.reconcile.trace.removal_time import NO_LIMIT, RemovalSettings

DAY_MS = 86_400_000


def removal_settings(
    topic: str, evidence: Evidence, histories: Sequence[MetadataHistory], problems: list[Problem]
) -> Callable[[int | Absent], RemovalSettings]:
    """Return a function that gives the settings of a topic at a broker.

    Args:
        problems: what can't be read is added.
    """
    newest = newest_log([one for one in histories if one.input not in evidence.ranks])
    around = Surroundings(newest, (), server_properties(evidence.for_facts(), problems))
    nodes = evidence.nodes_by_rank().get(evidence.final_rank, frozenset())

    @cache
    def of_broker(broker_id: int | Absent) -> RemovalSettings:
        settings = Settings({}, around, broker_id, len(nodes))
        policy, is_known = settings.of_topic(topic, "cleanup.policy")
        if policy is None and (settings.are_topics_known or topic in CREATED_WITH):
            policy, is_known = created_policy(topic), True
        return RemovalSettings(
            cleanup_policy=policy if policy is not None and is_known else Absent.UNKNOWN,
            delete_retention_ms=settings.number(topic, "delete.retention.ms", DAY_MS),
            min_compaction_lag_ms=settings.number(topic, "min.compaction.lag.ms", 0),
            max_compaction_lag_ms=settings.number(topic, "max.compaction.lag.ms", NO_LIMIT),
            retention_ms=settings.number(topic, "retention.ms", WEEK_MS),
            is_known=settings.are_topics_known,
        )

    return of_broker
