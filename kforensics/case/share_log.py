"""`__share_group_state` of the inputs: where share groups start in each partition, and what set them back."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property

from kforensics.case.leaders import Leaders, weight_of
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.coordinators.group_log import CommitKey, Name
from kforensics.evidence.coordinators.transaction_log import UNCHANGED, ShareLog, SharePartition
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import GroupCommit, Problem
from kforensics.evidence.replica.loader_reader import read_needed
from kforensics.formats.log.loader_values import Content, Need, TopicIdFile
from kforensics.protocol.loading.disk import METADATA_FILE
from kforensics.reconcile.coordinator_topics import CoordinatorTopic, coordinator_topic
from kforensics.reconcile.groups.replay import Change, Position
from kforensics.reconcile.groups.state import Played, SetBack, ShareState, played
from kforensics.reconcile.history.log_starts import LogStart
from kforensics.units import SHARE_TOPIC, TopicPartition
from kforensics.words import utc_words


def commit_of(key: CommitKey, position: Position, rename_group: Callable[[str], str]) -> GroupCommit:
    """Return a position as what its group committed."""
    name, topic = (one.decode(errors="replace") if isinstance(one, bytes) else one for one in (key.group, key.topic))
    return GroupCommit(
        partition=TopicPartition(topic, key.partition),
        group=rename_group(name),
        offset=position.offset,
        leader_epoch=position.leader_epoch if position.leader_epoch >= 0 else Absent.NOT_WRITTEN,
        time_ms=position.committed_ms,
        citation=position.at.cite(position.place),
    )


class SharePositions:
    """The share partitions of all groups.

    Args:
        until_ms: records that are newer are left out.
    """

    def __init__(self, given: Leaders, *, until_ms: int | None) -> None:
        self.problems: list[Problem] = []
        self.skipped = 0
        self.why_skipped = ""
        self._logs: dict[int, tuple[PartitionPlace, Played]] = {}
        unread: dict[int, str] = {}
        for partition, places in given.live(SHARE_TOPIC).items():
            logs = [ShareLog(place) for place in places]
            states = {id(log): played(log.changes(until_ms=until_ms)) for log in logs}
            leader = given.leader(partition, newest_epoch=max(log.last_epoch for log in logs))
            chosen = max(logs, key=lambda log: weight_of(leader, log.place, log.last_epoch, log.end))
            self._logs[partition.partition] = chosen.place, states[id(chosen)]
            self.problems += chosen.problems
            self.skipped += chosen.skipped
            self.why_skipped = self.why_skipped or chosen.why_skipped
            epochs = {log.place.state.broker_id: log.last_epoch for log in logs}
            why = given.unread(
                partition,
                leader,
                end=chosen.end,
                promised_end=given.promised_end_of_leader(partition, leader, epochs),
                is_damaged=bool(chosen.problems or chosen.skipped),
            )
            if why is not None:
                unread[partition.partition] = why
        self.topic: CoordinatorTopic = coordinator_topic(
            SHARE_TOPIC,
            self._logs,
            history=given.history,
            is_history_newest=given.is_history_newest,
            settings=given.settings("share.coordinator.state.topic.num.partitions"),
            names=((key.coordinator_key, number) for number, (_, log) in self._logs.items() for key in log.states),
            unread=unread,
        )
        history = given.history
        self._given = given
        self._held_earlier: set[SharePartition] = set()
        self._only_earlier = list(self._lost(until_ms))
        self._names = {} if history is None else {one.topic_id: one.name for one in history.topics.values()}

    def by_group(self) -> dict[Name, list[tuple[CommitKey, Position, ShareState]]]:
        """Return the share partitions that a leader has begun, by group; a topic whose name no input shows has its id for a name."""
        found: dict[Name, list[tuple[CommitKey, Position, ShareState]]] = defaultdict(list)
        for place, log in self._logs.values():
            for key, state in log.states.items():
                if state.start_offset == UNCHANGED:
                    continue
                commit = self._key(key)
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

    def commits(self, rename_group: Callable[[str], str]) -> Iterator[GroupCommit]:
        """Yield where each group starts, with what an earlier copy knows further on."""
        was_at = {self._key(key): state.reached for _, key, state, known in self._only_earlier if known is not None}
        for found in self.by_group().values():
            for key, position, _ in found:
                yield commit_of(key, position, rename_group)._replace(
                    is_share=True, was_at=was_at.get(key, Absent.NOT_APPLICABLE)
                )

    def setbacks(self) -> list[Change]:
        """Return the start offsets that went back, in the order of each log."""
        back = [self._change(place, one) for place, log in self._logs.values() for one in log.setbacks]
        return [*back, *(self._gone(*one) for one in self._only_earlier)]

    def skips(self, start_of: Callable[[CommitKey], LogStart | None]) -> Iterator[Change]:
        """Yield the start offsets that went past some that their group was not done with, and what had deleted the records there."""
        for place, log in self._logs.values():
            for one in log.skips:
                key = self._key(one.key)
                begins = start_of(key)
                by_then = None if begins is None else begins.by(one.at.time_ms, one.previous)
                log_start = min(by_then, one.offset) if isinstance(by_then, int) and by_then > one.previous else None
                removal = None if begins is None or log_start is None else begins.removal(one.previous)
                yield Change(
                    key=key,
                    offset=one.offset,
                    previous=one.previous,
                    time_ms=one.at.time_ms,
                    by="administrator" if one.is_reset else "unknown" if log_start is None else "member",
                    confidence="likely",
                    reason="" if removal is None else removal.sentence,
                    citations=(one.at.cite(place),),
                    had_members=True,
                    is_share=True,
                    log_start=log_start,
                )

    def removals(self, *, since_earlier: bool = False) -> Iterator[Change]:
        """Yield the start offsets that a record removed; by `since_earlier` those alone that an earlier copy has and that are in force no more."""
        for place, log in self._logs.values():
            gone = self._held_earlier - log.states.keys() if since_earlier else None
            for key, offset, at in log.removals:
                if offset > UNCHANGED and (gone is None or key in gone):
                    yield Change(
                        key=self._key(key),
                        offset=None,
                        previous=offset,
                        time_ms=at.time_ms,
                        by="deletion",
                        confidence="proven",
                        reason="a record removed the share partition: its group, its offsets or its topic was deleted",
                        citations=(at.cite(place),),
                        had_members=False,
                        is_share=True,
                    )

    def _lost(
        self, until_ms: int | None
    ) -> Iterator[tuple[PartitionPlace, SharePartition, ShareState, ShareState | None]]:
        """Yield the start offsets of earlier copies that the log of now is behind or has not, and no record of it says why."""
        anywhere = {one for one in self._given.places.by_partition if one.topic == SHARE_TOPIC}
        for partition in sorted(anywhere):
            _, log = self._logs.get(partition.partition, (None, Played({}, [])))
            if partition.partition not in self._logs and not self._given.is_gone(partition):
                continue
            told = {one.key for one in log.setbacks} | {key for key, _, _ in log.removals}
            furthest: dict[SharePartition, tuple[PartitionPlace, ShareState]] = {}
            for place in self._given.copies(partition):
                if self._given.is_now(place) or not place.is_live:
                    continue
                for key, state in played(ShareLog(place).changes(until_ms=until_ms)).states.items():
                    if key not in furthest or state.reached > furthest[key][1].reached:
                        furthest[key] = place, state
            self._held_earlier |= furthest.keys()
            for key, (place, state) in furthest.items():
                known = log.states.get(key)
                if key not in told and state.reached > (0 if known is None else known.reached):
                    yield place, key, state, known

    def _gone(self, place: PartitionPlace, key: SharePartition, state: ShareState, known: ShareState | None) -> Change:
        began = "" if known is None else "; the group began anew, or its coordinator went on from an older log"
        return Change(
            key=self._key(key),
            offset=None if known is None else known.start_offset,
            previous=state.reached,
            time_ms=state.at.time_ms if known is None else known.at.time_ms,
            by="unknown",
            confidence="possible",
            reason=f"an earlier copy of {place.topic_partition} holds the start offset, and no record of the log of now says what became of it{began}",
            citations=(state.at.cite(place),),
            had_members=False,
            is_share=True,
            is_lost=known is None,
        )

    def _key(self, key: SharePartition) -> CommitKey:
        name = self._names.get(key.topic_id) or self._names_on_disk.get(key.topic_id, key.topic_id)
        return CommitKey(key.group, name, key.partition)

    @cached_property
    def _names_on_disk(self) -> dict[str, str]:
        """Return the names of topics by the ids in their directories, for those that the metadata among the inputs does not have."""
        found: dict[str, str] = {}
        for partition, places in self._given.live().items():
            for place in places:
                with suppress(EvidenceError):
                    read = read_needed(
                        place.state.listings.root / place.path, Need(METADATA_FILE, Content.PARTITION_METADATA)
                    )
                    if isinstance(read, TopicIdFile):
                        found[str(read.topic_id)] = partition.topic
        return found

    def _change(self, place: PartitionPlace, one: SetBack) -> Change:
        recreated = (
            ""
            if one.removed is None
            else f"the share group itself was removed at {utc_words(one.removed.time_ms)}, and created again since"
        )
        reset = "the state epoch rose: the offsets of the group were altered while it was empty"
        return Change(
            key=self._key(one.key),
            offset=one.offset,
            previous=one.previous,
            time_ms=one.at.time_ms,
            by="administrator" if one.is_reset else "unknown",
            confidence="proven" if one.is_reset else "possible",
            reason=reset if one.is_reset else recreated or "no reset precedes the record",
            citations=(one.at.cite(place),) if one.removed is None else (one.at.cite(place), one.removed.cite(place)),
            had_members=False,
            is_share=True,
            recreated=recreated,
        )
