"""Whether the inputs would show that records were truncated from the logs of a partition: without, absence is no proof that a record was never there."""

from collections.abc import Collection

from kforensics.case.cluster import Cluster
from kforensics.damage import Absent
from kforensics.evidence.metadata.quorum import newest_log
from kforensics.reconcile.observed.facts import Leadership
from kforensics.units import TopicPartition
from kforensics.words import listed


class TruncationAccount:
    """What metadata and server logs say about changes of leaders, at which followers truncate what the new leader lacks."""

    def __init__(self, gathered: Cluster) -> None:
        self._facts = gathered.facts
        self._has_metadata = newest_log(gathered.histories) is not None
        self._logged_from: dict[int, int | Absent] = {}
        for item in gathered.events:
            if isinstance(item.node_id, int) and isinstance(item.time_ms, int):
                self._logged_from.setdefault(item.node_id, item.time_ms)
        for file in gathered.log_files:
            if isinstance(file.node_id, int):
                self._logged_from.setdefault(file.node_id, Absent.UNKNOWN)

    def has_changed(self, partition: TopicPartition, topic_id: str | Absent) -> bool:
        """Whether more than one broker led, by what is on record."""
        return len(_leaders(self._facts.leaderships(partition, topic_id))) > 1

    def doubt(self, partition: TopicPartition, topic_id: str | Absent, brokers: Collection[int]) -> str:
        """Return why a truncation may have left no trace in the inputs; empty where one would have."""
        states = self._facts.leaderships(partition, topic_id)
        if self._has_metadata and states and len(_leaders(states)) < 2:
            return ""
        silent = sorted(set(brokers) - self._logged_from.keys())
        if silent or not brokers:
            who = f"broker {listed([str(one) for one in silent])}" if silent else "any broker"
            changed = (
                "its leader has changed"
                if len(_leaders(states)) > 1
                else "no input shows that its leader never changed"
            )
            return f"{changed}, and no server.log of {who} shows whether records were truncated then"
        changes = [one.time_ms for one in states[1:] if isinstance(one.time_ms, int)]
        late = sorted(
            broker
            for broker in brokers
            if changes and isinstance(since := self._logged_from[broker], int) and since > min(changes)
        )
        if late:
            return f"the logs of broker {listed([str(one) for one in late])} begin after its leader had changed, so that a truncation then may be in none"
        return ""


def _leaders(states: Collection[Leadership]) -> set[int]:
    return {one.leader for one in states if isinstance(one.leader, int)}
