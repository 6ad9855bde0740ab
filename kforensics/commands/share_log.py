"""The positions of share groups by `__share_group_state` of the inputs: the replica by which each of its partitions is judged, and names of topics for their ids."""

from collections import defaultdict

from kforensics.commands.coordinator_evidence import CoordinatorEvidence, weight_of
from kforensics.evidence.coordinators.group_log import CommitKey, Name
from kforensics.evidence.coordinators.share_log import UNCHANGED, ShareLog, SharePartition
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Problem
from kforensics.reconcile.coordinator_topics import CoordinatorTopic, coordinator_topic
from kforensics.reconcile.groups.replay import Position
from kforensics.reconcile.groups.share_state import ShareState, played
from kforensics.units import SHARE_TOPIC


class SharePositions:
    """The share partitions of all groups.

    Args:
        given: the inputs.
        until_ms: records that are newer are left out.
    """

    def __init__(self, given: CoordinatorEvidence, *, until_ms: int | None) -> None:
        self.problems: list[Problem] = []
        self.skipped = 0
        self._logs: dict[int, tuple[PartitionPlace, dict[SharePartition, ShareState]]] = {}
        unread: dict[int, str] = {}
        for partition, places in given.live(SHARE_TOPIC).items():
            logs = [ShareLog(place) for place in places]
            states = {id(log): played(log.changes(until_ms=until_ms)) for log in logs}
            leader = given.leader(partition, newest_epoch=max(log.last_epoch for log in logs))
            chosen = max(logs, key=lambda log: weight_of(leader, log.place, log.last_epoch, log.end))
            self._logs[partition.partition] = chosen.place, states[id(chosen)]
            self.problems += chosen.problems
            self.skipped += chosen.skipped
            why = given.unread(
                partition,
                leader,
                end=chosen.end,
                is_damaged=bool(chosen.problems or chosen.skipped),
                epochs={log.place.state.broker_id: log.last_epoch for log in logs},
            )
            if why is not None:
                unread[partition.partition] = why
        self.topic: CoordinatorTopic = coordinator_topic(
            SHARE_TOPIC,
            self._logs,
            history=given.history,
            is_history_newest=given.is_history_newest,
            settings=given.settings("share.coordinator.state.topic.num.partitions"),
            names=((key.coordinator_key, number) for number, (_, states) in self._logs.items() for key in states),
            unread=unread,
        )
        history = given.history
        self._names = {} if history is None else {one.topic_id: one.name for one in history.topics.values()}

    def by_group(self) -> dict[Name, list[tuple[CommitKey, Position, ShareState]]]:
        """Return the share partitions that a leader has begun, by group; a topic whose name no input shows has its id for a name."""
        found: dict[Name, list[tuple[CommitKey, Position, ShareState]]] = defaultdict(list)
        for place, states in self._logs.values():
            for key, state in states.items():
                if state.start_offset == UNCHANGED:
                    continue
                commit = CommitKey(key.group, self._names.get(key.topic_id, key.topic_id), key.partition)
                position = Position(
                    offset=state.start_offset,
                    committed_ms=state.at.time_ms,
                    expire_ms=-1,
                    leader_epoch=state.leader_epoch,
                    at=state.at,
                    place=place,
                )
                found[key.group].append((commit, position, state))
        return found
