"""Who leads each partition by what is here, and how far its logs here speak for it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kforensics.case.cluster import cluster_of, newest_time
from kforensics.case.model import Case, fact_of_question, places_of, settings_of
from kforensics.damage import Absent
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, checkpoint_value
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.state import newest_log
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.leadership import GapKind, LeadershipAccount, account_of
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import form, listed

_LED_SINCE = "a replica that is not among the inputs may have been elected since; they do not show who led later"


class UncleanElection(NamedTuple):
    """An unclean election on record."""

    leader_epoch: int
    """The one that it began."""
    time_ms: int
    """-1 where the record has none."""
    leader_before: int


class Leaders:
    """The leaders of partitions, now or at the time that is asked about, and the replicas here that speak for them."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.places = places_of(case)
        self.cluster = cluster_of(case)
        self.inputs = case.inputs
        self.at_ms = case.ask.at_ms

    @property
    def history(self) -> MetadataHistory | None:
        """The newest metadata log."""
        return newest_log(self.cluster.histories)

    @property
    def version(self) -> KafkaVersion | None:
        """The oldest version that a broker is known to run."""
        known = list(self.cluster.versions.by_broker.values())
        if known:
            return min(known)
        return self.cluster.versions.at_least

    def live(self, topic: str | None = None) -> dict[TopicPartition, tuple[PartitionPlace, ...]]:
        """Return the replicas as they are now, of one topic or of all but the metadata's, by partition."""
        found = {}
        for partition, group in self.places.by_partition.items():
            if partition.topic in METADATA_TOPICS or (topic is not None and partition.topic != topic):
                continue
            now = tuple(one for one in group if self.is_now(one) and one.is_live)
            if now:
                found[partition] = now
        return found

    def leaderships(self, partition: TopicPartition) -> Sequence[Leadership]:
        """Return the states of a partition on record up to the time that is asked about; those of no known time are left out where one is."""
        known = self.cluster.facts.leaderships(partition, Absent.UNKNOWN)
        if self.at_ms is None:
            return known
        return [one for one in known if isinstance(one.time_ms, int) and one.time_ms <= self.at_ms]

    def copies(self, partition: TopicPartition) -> tuple[PartitionPlace, ...]:
        """Return every directory of a partition: replicas, those that are moving or being deleted, and earlier snapshots."""
        return self.places.by_partition.get(partition, ())

    def is_now(self, place: PartitionPlace) -> bool:
        """Whether a directory is as it is now, not of an earlier snapshot."""
        return place.state.input not in self.case.ranks

    def is_gone(self, partition: TopicPartition) -> bool:
        """Return whether the brokers that held a partition of which earlier copies alone are here are given as they are now."""
        known = self.leaderships(partition)
        assigned = known[-1].replicas if known else Absent.UNKNOWN
        holders = {one.state.broker_id for one in self.copies(partition) if not self.is_now(one) and one.is_live}
        holders |= set() if isinstance(assigned, Absent) else set(assigned)
        return holders <= self.case.nodes_by_rank().get(self.case.final_rank, frozenset())

    def owner(self, place: PartitionPlace) -> str:
        """Return in words whose directory it is."""
        broker = place.state.broker_id
        who = f"input {place.state.input + 1}" if isinstance(broker, Absent) else f"broker {broker}"
        if not self.is_now(place):
            return f"an earlier snapshot of {who}"
        return f"the log of {who}" if place.is_live else f"a directory of {who} that is no live replica"

    def leader(self, partition: TopicPartition, *, newest_epoch: int) -> int | Absent:
        """Return the broker that the newest record names as leader, not applicable where it says that none leads; unknown where logs hold a newer leader epoch."""
        known = self.leaderships(partition)
        if not known or known[-1].leader_epoch < newest_epoch:
            return Absent.UNKNOWN
        return known[-1].leader

    def leader_epoch(self, partition: TopicPartition) -> int:
        """Return the newest leader epoch of a partition on record, -1 where there is none."""
        return max((one.leader_epoch for one in self.leaderships(partition)), default=-1)

    def last_unclean_election(self, partition: TopicPartition, *, until_now: bool = False) -> UncleanElection | None:
        """Return the last unclean election of another leader than the one before, up to the time that is asked about; none without any such election.

        Since 4.1 the last leader, too, is elected uncleanly when it comes back (KIP-966): it has all that it had.

        Args:
            until_now: those after that time count, too.
        """
        facts = self.cluster.facts
        known = facts.leaderships(partition, Absent.UNKNOWN) if until_now else self.leaderships(partition)
        last, found = None, None
        for one in known:
            if isinstance(one.leader, Absent):
                continue
            if one.unclean and last is not None and last != one.leader:
                time_ms = -1 if isinstance(one.time_ms, Absent) else one.time_ms
                found = UncleanElection(one.leader_epoch, time_ms, leader_before=last)
            last = one.leader
        return found

    def absent_leader(self, partition: TopicPartition, leader: int | Absent) -> int | None:
        """Return the leader of a partition where it is known and its log is not here, else none."""
        return None if isinstance(leader, Absent) or leader in self._holders(partition) else leader

    def is_alone(self, partition: TopicPartition, leader: int | Absent) -> bool:
        """Whether it is not known who leads a partition, and another replica may than the only one here."""
        known = self.leaderships(partition)
        assigned = known[-1].replicas if known else Absent.UNKNOWN
        is_only = not isinstance(assigned, Absent) and len(assigned) == 1
        return isinstance(leader, Absent) and len(self._holders(partition)) < 2 and not is_only

    def without_candidate(self, partition: TopicPartition, leader: int | Absent) -> str | None:
        """Return a clause that says why no replica here is shown to speak for a partition; none where one is, or where its leader is known to be absent.

        A partition without a leader is led next by a member of its ISR or ELR; another replica may lack what was committed, or hold what they discard.
        A broker's copy of the metadata log ends where the broker stopped: where other replicas are not here, one of them may have led since.
        """
        if leader is Absent.NOT_APPLICABLE:
            newest = self.leaderships(partition)[-1]
            in_sync = frozenset() if isinstance(newest.isr, Absent) else newest.isr
            candidates = in_sync | newest.eligible
            if candidates:
                if candidates & self._holders(partition):
                    return _LED_SINCE if self._may_have_led_since(partition, candidates) else None
                names = listed([f"broker {one}" for one in sorted(candidates)])
                which = "ISR" if candidates == in_sync else "ELR" if candidates == newest.eligible else "ISR or ELR"
                return f"it has no leader, and {names} of its {which} {form(len(candidates), 'is', 'are')} not among the inputs"
        if isinstance(leader, int) and leader in self._holders(partition):
            known = self.leaderships(partition)[-1]
            others = known.isr if isinstance(known.replicas, Absent) else frozenset(known.replicas)
            if not isinstance(others, Absent) and self._may_have_led_since(partition, others):
                return _LED_SINCE
        if self.is_alone(partition, leader):
            return "no input says who leads it, and one replica alone is here"
        return None

    def _may_have_led_since(self, partition: TopicPartition, brokers: frozenset[int]) -> bool:
        """Whether one of these brokers whose replica is not here may have been elected after the last leader on record."""
        given = frozenset(one for one in self._holders(partition) if isinstance(one, int))
        if brokers <= given or (self.at_ms is not None and self._is_recorded(self.at_ms)):
            return False
        gaps = account_of(partition, Absent.UNKNOWN, self.cluster.facts, given=given).gaps
        return any(gap.kind is GapKind.END for gap in gaps)

    def _is_recorded(self, time_ms: int) -> bool:
        """Whether the newest metadata log reaches beyond a time."""
        newest_ms = newest_time(self.history)
        return isinstance(newest_ms, int) and newest_ms > time_ms

    @property
    def is_history_newest(self) -> bool:
        """Whether no topic can have been created after the end of the newest metadata log: it is a voter's, or every registered broker is here."""
        history = self.history
        if history is None or self.cluster.facts.is_newest_metadata():
            return True
        here = {one.broker_id for at, one in enumerate(self.inputs.described) if at not in self.case.ranks}
        return history.brokers.keys() <= here

    def _holders(self, partition: TopicPartition) -> set[int | Absent]:
        is_past = self.at_ms is not None
        live = (one for one in self.copies(partition) if (is_past or self.is_now(one)) and one.is_live)
        return {one.state.broker_id for one in live}

    def unread(
        self,
        partition: TopicPartition,
        leader: int | Absent,
        *,
        end: int | None,
        promised_end: int,
        is_damaged: bool,
    ) -> str | None:
        """Return a clause that says why the log of a partition is here in part; none where it is here as a whole."""
        absent = self.absent_leader(partition, leader)
        if absent is not None:
            leads = "leads it" if self.at_ms is None else "led it then"
            return f"broker {absent}, which {leads}, is not among the inputs"
        lacking = self.without_candidate(partition, leader)
        if lacking is not None:
            return lacking
        if end is not None and end < promised_end:
            return "its log here ends below a high watermark or recovery point that was written of it"
        if is_damaged:
            return "its log here can't be read as a whole"
        return None if end is None else self._grown_beyond(partition, leader, end)

    def _grown_beyond(self, partition: TopicPartition, leader: int | Absent, end: int) -> str | None:
        """Return a clause that names the line by which the log that speaks for a partition had grown beyond its end; none where no line does."""
        holders = self._holders(partition)
        broker = leader if isinstance(leader, int) else next(iter(holders)) if len(holders) == 1 else Absent.UNKNOWN
        if self.at_ms is not None or not isinstance(broker, int):
            return None
        reached = self.cluster.facts.logged_ends(partition).get(broker)
        if reached is None or reached.offset <= end:
            return None
        if not (isinstance(reached.time_ms, int) and self._is_recorded(reached.time_ms)):
            return None  # it may have been copied before, and says what was so then
        return f"the log of broker {broker} had reached offset {reached.offset:,} by {reached.place}, and ends at {end:,} here"

    def leadership(self, partition: TopicPartition, *, newest_epoch: int) -> LeadershipAccount:
        """Return who led a partition, with what is unknown of it, given the highest leader epoch that a replica of it knows, -1 where none knows any."""
        return account_of(partition, Absent.UNKNOWN, self.cluster.facts, newest_epoch=newest_epoch)

    def promised_end(self, partition: TopicPartition) -> int:
        """Return the highest high watermark or recovery point that a replica of now was left with, 0 where none has either: a log that ends below it has lost records."""
        return max((value for _, value in self._promises(partition)), default=0)

    def promised_end_of_leader(
        self, partition: TopicPartition, leader: int | Absent, epochs: Mapping[int | Absent, int]
    ) -> int:
        """Return the highest high watermark or recovery point that the leader's log has to reach: one of a follower whose log ends before an unclean election on record does not count where the leader's log is here."""
        unclean = self.last_unclean_election(partition)
        since = unclean.leader_epoch if unclean is not None and leader in self._holders(partition) else -1
        return max(
            (
                value
                for broker, value in self._promises(partition)
                if broker == leader or epochs.get(broker, since) >= since
            ),
            default=0,
        )

    def _promises(self, partition: TopicPartition) -> Iterator[tuple[int | Absent, int]]:
        """Yield the high watermarks and recovery points of replicas of now, with the brokers that wrote them."""
        for place in self.copies(partition):
            if self.is_now(place) and place.is_live:
                for name in ("high_watermark", "recovery_point"):
                    value = checkpoint_value(place.state, name, partition)
                    if not isinstance(value, Absent):
                        yield place.state.broker_id, value.value

    def without_log(self) -> tuple[TopicPartition, ...]:
        """Return the partitions that the metadata log or a checkpoint names and of which no live replica is here, those of the metadata apart."""
        live = self.live()
        named = set()
        history = self.history
        removed = set()
        if history is not None:
            topics = history.topics.values()
            names = {one.topic_id: one.name for one in topics if isinstance(one.removed, Absent)}
            removed = {one.name for one in topics} - set(names.values())
            named = {TopicPartition(names[key], number) for key, number in history.partitions if key in names}
        states = {id(place.state): place.state for group in live.values() for place in group}.values()
        for state in states:
            named |= {one for one in state.without_directory.get("high_watermark", {}) if one.topic not in removed}
        return tuple(sorted(one for one in named if one not in live and one.topic not in METADATA_TOPICS))

    def settings(self, name: str) -> tuple[int, ...]:
        """Return the values of a setting in the configuration files and in the broker logs among the inputs."""
        printed = (
            value
            for file in self.cluster.log_files
            for event in file.events
            if event.kind is LogEventKind.CONFIGURATION and isinstance(value := event.fields.get(name), int)
        )
        return (*settings_of(self.case).numbers(name), *printed)


def weight_of(leader: int | Absent, place: PartitionPlace, last_epoch: int, end: int) -> tuple[bool, int, int]:
    """Return how much a replica speaks for its partition: as the leader, else by its last leader epoch, -1 for none, and its log end offset."""
    return place.state.broker_id == leader, last_epoch, end


@fact_of_question
def leaders_of(case: Case) -> Leaders:
    """Return the leaders of the partitions of a case."""
    return Leaders(case)
