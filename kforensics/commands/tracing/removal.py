"""The settings by which brokers remove records of a topic, as metadata log and `server.properties` have them."""

from collections.abc import Callable
from functools import cache

from kforensics.case.cluster import cluster_of
from kforensics.case.model import Case
from kforensics.commands.predicting.settings import WEEK_MS, Settings, Surroundings, server_properties
from kforensics.damage import Absent
from kforensics.evidence.metadata.quorum import newest_log
from kforensics.evidence.model import Problem
from kforensics.protocol.coordinators import CREATED_WITH, created_policy
from kforensics.reconcile.trace.removal_time import NO_LIMIT, RemovalSettings

DAY_MS = 86_400_000


def removal_settings(case: Case, problems: list[Problem]) -> Callable[[int | Absent], RemovalSettings]:
    """Return a function that gives the settings of the topic that is asked about at a broker.

    Args:
        problems: what can't be read is added.
    """
    topic = case.ask.topic or ""
    newest = newest_log([one for one in cluster_of(case).histories if one.input not in case.ranks])
    around = Surroundings(newest, (), server_properties(case.for_facts(), problems))
    nodes = case.nodes_by_rank().get(case.final_rank, frozenset())

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
