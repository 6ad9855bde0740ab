"""Facts about a partition beyond its replicas: leaders, ISRs, versions of brokers, and the records that consumers and transactions prove committed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Citation, GroupCommit
from kforensics.protocol.epochs import EpochRules
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import PROTOCOL_RULES, KafkaVersion, epoch_rules_of
from kforensics.units import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """The state of a partition from one moment on, as the controller recorded it."""

    leader: int | Absent
    """The leader, `NOT_APPLICABLE` if the partition had none."""
    leader_epoch: int
    isr: frozenset[int] | Absent
    replicas: tuple[int, ...] | Absent
    eligible: frozenset[int] = frozenset()
    """The ELR: replicas outside the ISR that hold every committed record (KIP-966)."""
    last_known: tuple[int, ...] = ()
    """The last known leader, which is elected where ISR and ELR are empty (KIP-966)."""
    unclean: bool
    """Whether the leader was not in the ISR before, or the record says that it has to recover."""
    directories: tuple[tuple[int, str], ...] = ()
    """The id of the log directory that is to hold each replica, since 3.7."""
    recorded_at: int | Absent
    """The offset of the record in the metadata log."""
    time_ms: int | Absent
    citation: Citation
    is_stated: bool = True
    """The record or the line itself says whether the election was unclean; else it follows from the ISR that the last lines gave."""
    topic_id: str | Absent = Absent.UNKNOWN
    """The id of the topic that a log line names."""
    is_creation: bool = False
    """The log line reports the creation of the partition: before it there was none."""
    partition_epoch: int | Absent = Absent.UNKNOWN
    """The number of the state, where a log line names it: a controller counts up with every change of the partition."""
    shows_isr_before: bool = True
    """No change of the ISR between the state before and this one can have gone without a record or a line."""
    recovering: tuple[Citation, ...] = ()
    """The lines of the leader that it was elected uncleanly."""
    is_own_line: bool = False
    """The leader itself logged that it begins to lead in this epoch."""

    def is_next(self, before: "Leadership") -> bool:
        """Return whether nothing lies between the state before and this one: then the ISR of that is the one at this election."""
        numbers = before.partition_epoch, self.partition_epoch
        is_counted = isinstance(numbers[0], int) and isinstance(numbers[1], int) and numbers[1] == numbers[0] + 1
        return self.shows_isr_before or is_counted


def electable_of(state: Leadership) -> frozenset[int]:
    """Return the brokers that are elected without an operator's doing: of the ISR and the ELR, and where both are empty the last known leader (KIP-966)."""
    isr = frozenset() if isinstance(state.isr, Absent) else state.isr
    return isr | state.eligible or frozenset(state.last_known if len(state.last_known) == 1 else ())


class Restart(NamedTuple):
    """A broker came back after a stop."""

    recorded_at: int | Absent
    """The offset of its registration in the metadata log."""
    time_ms: int | Absent
    is_clean: bool
    """It had announced its stop, or found the marker of a clean one."""
    other_disk: bool = False
    """A log directory that it had registered before is not there any more."""
    missing_directories: frozenset[str] = frozenset()
    """The ids of those directories, where the metadata log names them."""


class LogLoad(NamedTuple):
    """A broker loaded a log at its start, as its lines say."""

    time_ms: int
    log_end_offset: int
    end_at_stop: int | Absent
    """Where the log ended when the broker stopped cleanly before: a stop writes a producer snapshot there (1.0 and later)."""


class OwnIsrLine(NamedTuple):
    """A leader's line that it asks for another ISR."""

    leader: int
    isr: frozenset[int]
    """The one that it asks for."""
    named: frozenset[int]
    """With those that were in sync before."""
    log_end_offset: int
    time_ms: int | Absent
    citation: Citation


class LoggedEnd(NamedTuple):
    """An offset that a broker's log had reached, as a line of that broker says."""

    offset: int
    time_ms: int | Absent
    citation: Citation

    @property
    def place(self) -> str:
        """The line, in words."""
        return f"line {self.citation.line} of {self.citation.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenBroker:
    """A broker whose log directories are among the inputs."""

    broker_id: int
    directory_ids: frozenset[str]
    """The directory ids of `meta.properties`, since 3.7; empty before."""
    is_empty: bool
    """Whether none of its log directories holds a partition other than the metadata log."""
    named: Mapping[TopicPartition, CheckpointValue] = field(default_factory=dict)
    """Partitions that its checkpoints name and of which none of its log directories holds a directory."""
    other_case: frozenset[TopicPartition] = frozenset()
    """Partitions that its checkpoints name and whose directory may be one that differs from it in case only."""
    empty_beside: tuple[str, ...] = ()
    """Empty directories beside its log directories: each may be a log directory whose disk was emptied, exchanged or not mounted."""
    renames_unnamed: bool | Absent = False
    """Whether a start of it takes a directory without a topic id for a stray; unknown where it may be of a release that does not yet."""


Given = Mapping[int, GivenBroker]
"""Brokers by id."""


class ClusterFacts:
    """Facts beyond the replicas of one partition; each is unknown, or there is none, unless a kind of evidence shows it."""

    def leaderships(self, partition: TopicPartition, topic_id: str | Absent) -> tuple[Leadership, ...]:  # noqa: ARG002
        """Return every recorded state of the partition, the oldest first; empty if no metadata is among the inputs."""
        return ()

    def own_isr_line(self, partition: TopicPartition) -> OwnIsrLine | None:  # noqa: ARG002
        """Return the newest line in which a leader asks for another ISR; none where no line or the metadata log does."""
        return None

    def unclean_elections_before(
        self,
        first: Leadership,  # noqa: ARG002
        partition: TopicPartition,  # noqa: ARG002
        topic_id: str | Absent,  # noqa: ARG002
    ) -> tuple[Leadership, ...]:
        """Return unclean elections that log lines report from before the first state of a compacted metadata log, each behind the state before it."""
        return ()

    def topic_id(self, topic: str) -> str | Absent:  # noqa: ARG002
        """Return the topic id that the metadata log has now; unknown where it has no such topic."""
        return Absent.UNKNOWN

    def is_of_another(self, topic: str, topic_id: str) -> bool:  # noqa: ARG002
        """Whether the metadata log has the id for a topic of another name."""
        return False

    def is_deleted(self, topic: str, topic_id: str | Absent) -> bool:  # noqa: ARG002
        """Whether the metadata log records that the topic of that id was deleted; without an id, the last one of that name."""
        return False

    def deletion_ms(self, topic: str, topic_id: str | Absent, directory: str) -> int | Absent:  # noqa: ARG002
        """Return when a record, or a line of a ZooKeeper cluster, says that the topic of a directory was deleted, milliseconds UTC; absent where none says so."""
        return Absent.UNKNOWN

    def knows_every_deletion(self) -> bool:
        """Whether the metadata log goes back to its first record: a topic of which it has none was not deleted by it."""
        return False

    def recreated_ms(self, topic: str) -> int | Absent:  # noqa: ARG002
        """Return when the topic of now was created, milliseconds UTC, where the metadata log knows an earlier one of its name; absent where it does not say."""
        return Absent.UNKNOWN

    def exists_since_ms(self, topic: str) -> int | Absent:  # noqa: ARG002
        """Return a time from which on the topic of now is there by the metadata log, milliseconds UTC: no earlier than its creation; absent where it does not say."""
        return Absent.UNKNOWN

    def is_deletion_logged(self, topic: str) -> bool:  # noqa: ARG002
        """Whether log lines say that the topic was deleted, none says that it was created again, and the newest lines that would are there."""
        return False

    def commits(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:  # noqa: ARG002
        """Return the committed offsets of consumer groups, the newest of each group and epoch."""
        return ()

    def unclean_restarts(self, broker_id: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return the metadata offsets where the broker registered again without a clean shutdown before."""
        return ()

    def restarts(self, broker_id: int) -> tuple[Restart, ...]:
        """Return every time that the broker came back, oldest first, its first start left out."""
        return tuple(
            Restart(recorded_at=at, time_ms=Absent.UNKNOWN, is_clean=False) for at in self.unclean_restarts(broker_id)
        )

    def loads(self, broker_id: int, partition: TopicPartition) -> tuple[LogLoad, ...]:  # noqa: ARG002
        """Return the loads of a partition's log that the broker's lines report, oldest first."""
        return ()

    def logged_ends(self, partition: TopicPartition) -> Mapping[int, LoggedEnd]:  # noqa: ARG002
        """Return by broker how far its log of the partition had grown by its own lines, where none says that it was truncated or replaced since."""
        return {}

    def enters_elected_epochs(self) -> bool:
        """Whether a leader enters its epoch in its file when it is elected, not with its first record (KAFKA-7415), as far as versions are known."""
        return True

    def verifies_clean_stops(self) -> bool:
        """Whether the controller keeps a broker in the ISR only where its disk holds the marker of its last clean stop (KIP-966)."""
        return False

    def metadata_gaps(self) -> tuple[str, ...]:
        """Return the parts of the metadata log that are missing or can't be read, as parts of a sentence."""
        return ()

    def is_newest_metadata(self) -> bool:
        """Whether no later metadata can be committed than that among the inputs: it is of voters as they are now, of more than half of them."""
        return False

    def later_epoch(self, partition: TopicPartition) -> int | Absent:  # noqa: ARG002
        """Return the highest leader epoch of the partition that log lines name after the end of the metadata log; absent where none does."""
        return Absent.NOT_APPLICABLE

    def ends_before(self, time_ms: int | Absent) -> bool:  # noqa: ARG002
        """Whether the metadata log ends before a time, so that it can't show who led then."""
        return False

    def first_line_times(self) -> Mapping[int, int | Absent]:
        """Return when the lines of each broker begin whose server.log is among the inputs, milliseconds UTC; unknown where its clock went back in between.

        state-change.log and controller.log do not show how a broker started.
        """
        return {}

    def logs_without_newest(self) -> Mapping[int, tuple[str, ...]]:
        """Return by broker the names of its logs of which only rolled files are among the inputs, so that its newest lines are not known."""
        return {}

    def reports_every_leader(self, since_ms: int) -> bool:  # noqa: ARG002
        """Whether every broker of the cluster logs each leader epoch in which it leads, and its lines reach back before a time: an epoch that none names had no leader."""
        return False

    def named_brokers(self) -> frozenset[int]:
        """Return brokers that any log line names as leader or in sync."""
        return frozenset()

    def is_unbroken(self, broker_id: int, since_ms: int, until_ms: int) -> bool:  # noqa: ARG002
        """Return whether the broker's log lines begin before a time, reach another, and report no start after an unclean shutdown in between."""
        return False

    def started_clean(self, broker_id: int, since_ms: int) -> bool:  # noqa: ARG002
        """Return whether the broker's first start since then found the marker of a clean stop, by its own lines."""
        return False

    def registered_directories(self, broker_id: int) -> frozenset[str] | Absent:  # noqa: ARG002
        """Return the ids of the log directories that the broker registered last; unknown before 3.7 and without a metadata log."""
        return Absent.UNKNOWN

    def has_metadata_log(self) -> bool:
        """Return whether the cluster keeps its metadata in a log of its own (KRaft)."""
        return False

    def allows_unclean_election(self, topic: str, recorded_at: int | Absent) -> bool | Absent:  # noqa: ARG002
        """Return `unclean.leader.election.enable` as it was for a topic at a metadata offset, without one as it is; unknown if no input shows it."""
        return Absent.UNKNOWN

    def goes_on_without(self) -> int | Absent:
        """Return the offset from which on the metadata quorum forgets what was committed, or has written it anew; unknown where no input shows that it does."""
        return Absent.UNKNOWN

    def halts_out_of_range(self, topic: str) -> bool | Absent:
        """Return whether a broker halts that fetches above its leader's end, rather than truncate: up to 1.0 without unclean elections; unknown if no input shows it."""
        is_allowed = self.allows_unclean_election(topic, Absent.UNKNOWN)
        return False if is_allowed is True or self.has_metadata_log() else Absent.UNKNOWN

    def needed_in_sync(self, topic: str) -> int | Absent:  # noqa: ARG002
        """Return how many replicas must be in sync before a leader commits; unknown if no input shows the setting.

        `min.insync.replicas` since 3.7 (KIP-966), 1 before, whatever the setting says.
        """
        return Absent.UNKNOWN


Commits = Callable[[TopicPartition], tuple[GroupCommit, ...]]


class CommittedFacts(ClusterFacts):
    """The facts where no metadata log is among the inputs: what consumer groups committed.

    Args:
        commits: committed consumer offsets of a partition.
    """

    def __init__(self, commits: Commits) -> None:
        self._commits = commits

    def commits(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:
        """Return the committed offsets of consumer groups."""
        return self._commits(partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerVersions:
    """The versions of Kafka that the brokers run."""

    by_broker: Mapping[int, KafkaVersion] = field(default_factory=dict)
    """The version that a broker's log files name last."""
    at_least: KafkaVersion | None = None
    """The lowest version that the cluster's metadata.version requires of every broker."""

    def epoch_rules(self, broker: int | Absent, protocol: ProtocolName) -> EpochRules:
        """Return the rules of the broker's leader epoch cache; of the last release of the protocol if its version is not known."""
        version = self.by_broker.get(broker) if isinstance(broker, int) else None
        return PROTOCOL_RULES[protocol].epoch_rules if version is None else epoch_rules_of(version)

    def keeps_epoch_of_election(self, broker: int) -> bool:
        """Whether the epoch of an election is in the directory of the new leader from then on, though it writes no record (KAFKA-7415, KAFKA-10706)."""
        version = self.by_broker.get(broker, self.at_least)
        rules = None if version is None else epoch_rules_of(version)
        return rules is not None and rules.enters_epoch_when_elected and rules.trims_at_log_end

    def confidence(self, broker: int | Absent, jira: str) -> str | None:
        """Return `likely` if the broker's version is known and has the bug, `possible` if it may have it, else None."""
        from kforensics.protocol.known_bugs import BUGS, is_affected  # noqa: PLC0415 - where a trace of a bug is found

        version = self.by_broker.get(broker) if isinstance(broker, int) else None
        if version is not None:
            return "likely" if is_affected(version, jira) else None
        if self.at_least is None or not any(fixed > self.at_least for _, fixed in BUGS[jira].affected):
            return None
        return "possible"
