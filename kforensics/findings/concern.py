"""A concern: a statement that speaks against the agreement of a partition's replicas, its state, and what is said of it.

A partition agrees only where every assigned replica is given and nothing speaks against it. The worst concern is the state of the partition. What makes a concern and
the words of each kind are beside each other in `findings/rules/`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from kforensics.damage import Absent
from kforensics.findings.answers.model import State, worst_state
from kforensics.reconcile.committed.judge import CommittedCounts
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.leadership import LeadershipAccount, Risk
from kforensics.reconcile.replicas.report import PartitionReport, ReplicaReport, Verdict
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import command_line, copy_of, counted, form, joined_by_and, place_of_copy


class ConcernKind(StrEnum):
    """The subject of a concern; the order is that of the headlines of one state."""

    EMPTIED = "emptied"
    GONE = "gone"
    LEFT_OUT = "left-out"
    DISCARD = "discard"
    SOLE = "sole"
    PAST_END = "past-end"
    RECOVERY = "recovery"
    ELECTED = "elected"
    OUTSIDE = "outside"
    PROTOCOL = "protocol"
    DIVERGENCE = "divergence"
    UNNAMED = "unnamed"
    MISSING = "missing"
    TAIL = "tail"
    LEADER = "leader"
    COMPACTION = "compaction"
    DAMAGE = "damage"
    OTHER_TOPIC = "other-topic"
    UNKNOWN_TOPIC = "unknown-topic"
    NO_REPLICA = "no-replica"
    DISPLACED = "displaced"
    UNREAD = "unread"
    OUTDATED = "outdated"
    LOGGED_END = "logged-end"
    SAME_DISK = "same-disk"
    ASSIGNMENT = "assignment"
    ALONE = "alone"
    COPIED_AGAIN = "copied-again"
    UNCOMMITTED = "uncommitted"
    BEHIND = "behind"
    ENDS = "ends"
    DELETED = "deleted"
    OBSERVERS = "observers"
    AHEAD = "ahead"
    NO_EPOCHS = "no-epochs"
    LEFT_BYTES = "left-bytes"


OTHER_DISKS = "other log directories of "
"""What precedes an owner some of whose log directories are given, and none that holds the partition."""

ORDER = {kind: at for at, kind in enumerate(ConcernKind)}
"""The order of kinds: of two concerns of one state the first of these makes the headline."""


class Concern(NamedTuple):
    """One reason why a partition does not simply agree."""

    state: State
    kind: ConcernKind
    owners: tuple[str, ...] = ()
    """The owners of the replicas that it is about, in words."""
    inputs: tuple[int, ...] = ()
    """The inputs of these replicas."""
    certain: int = 0
    """Records that were certainly committed, each counted once."""
    possible: int = 0
    records: int = 0
    """The number of all records, where it matters."""
    leader: str = ""
    """The owner of the log that the others follow, in words."""
    guess: str = ""
    """Why that leader is only guessed; empty where it is known."""
    detail: str = ""
    places: tuple[tuple[int, str], ...] = ()
    """Input and path of the directories that it is about, where these are not all that its owners hold."""
    is_sole: bool = False
    """It is about the only member of the ISR."""
    is_replaced: bool = False
    """Others hold other records at these offsets, in a later leader epoch: to start first saves nothing."""
    whole: str = ""
    """The owner of another replica that holds intact all that those hold which it is about; empty where none is known to."""
    holds: str = ""
    """Which offsets each replica can give, in words."""
    is_stated: bool = False
    """It rests on the assignment that an operator stated, and no record does."""
    losing: tuple[str, ...] = ()
    """The owners of the replicas that hold the records it counts, where it is about another one."""


def concern_of(plain: Mapping[str, Any]) -> Concern:
    """Return the concern of its plain values, as the tables of an audit hold them.

    Raises:
        KeyError: state or kind is missing.
        ValueError: state or kind is none that this version knows.
    """
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    values["places"] = tuple((number, path) for number, path in plain.get("places", ()))
    values["state"], values["kind"] = State(plain["state"]), ConcernKind(plain["kind"])
    return Concern(**values)


class JudgedPartition(NamedTuple):
    """A partition with what it gives reason for; small, so that of an agreeing one nothing else has to be kept."""

    partition: TopicPartition
    concerns: tuple[Concern, ...]
    risks: tuple[str, ...] = ()
    """Why elections on record may have lost committed records before, in words."""
    settled_by: str = ""
    """The input that would show what the account of its leaders does not, where there is such a gap."""

    @property
    def is_deleted(self) -> bool:
        """Whether its topic was deleted: nothing was compared."""
        return any(one.kind is ConcernKind.DELETED for one in self.concerns)

    def led_by(self, account: LeadershipAccount, not_compared_below: int) -> "JudgedPartition":
        """Return the same of the partition of an account, with what that account leaves open, and what was not read of its logs."""
        return self._replace(
            partition=account.partition,
            concerns=tuple(
                [
                    one._replace(records=not_compared_below) if one.kind is ConcernKind.ENDS else one
                    for one in self.concerns
                ]
            ),
            risks=tuple(dict.fromkeys([RISKS[one.risk] for one in account.risky if one.risk])),
            settled_by=account.gaps[0].settled_by if account.gaps else "",
        )

    @property
    def state(self) -> State:
        """The worst that any concern leads to."""
        return worst_state(one.state for one in self.concerns) or State.AGREE


RISKS: Mapping[Risk, str] = {
    Risk.UNCLEAN: "an unclean election",
    Risk.UNCLEAN_RESTART: "a leader that had stopped uncleanly",
    Risk.OTHER_DISK: "a leader with another disk",
    Risk.OLDER_DISK: "a leader whose disk had been put back to an earlier state",
    Risk.RESTART: "a leader that had restarted while it alone was in sync",
    Risk.HIGH_WATERMARK: "a leader that had truncated to its high watermark",
}


class Compared(NamedTuple):
    """The replicas of a partition that were compared, as concerns are made of them."""

    report: PartitionReport
    given: tuple[ReplicaReport, ...]
    """Those that count: of the metadata log those of voters."""
    live: tuple[ReplicaReport, ...]
    """Those of which the log is known."""

    @classmethod
    def of(cls, report: PartitionReport) -> "Compared":
        """Return the replicas of a report that count."""
        given = tuple(one for one in report.replicas if _is_replica(one))
        if report.is_quorum and not isinstance(report.assigned, Absent):
            # Observers copy the metadata log and have no part in what is committed.
            given = tuple(one for one in given if report.is_voter(one.view))
        return cls(report, given, tuple(one for one in given if one.view.replica.is_log_known))

    @property
    def observers(self) -> list[LoadedLog]:
        """Copies of the metadata log that are none of voters."""
        report = self.report
        if not report.is_quorum or isinstance(report.assigned, Absent):
            return []
        copies = (one.view for one in report.replicas if _is_replica(one) and one.view.replica.is_log_known)
        return [view for view in copies if not report.is_voter(view)]

    @property
    def is_whole(self) -> bool:
        """Whether every assigned replica is given; one that is known to be nowhere counts as given."""
        return not isinstance(self.report.assigned, Absent) and not self.report.missing_replicas

    @property
    def is_led(self) -> bool:
        """Whether it is known who leads."""
        return self.report.leader is not None and self.report.leader.is_known

    def concern(
        self,
        state: State,
        kind: ConcernKind,
        views: Iterable[LoadedLog] = (),
        counts: CommittedCounts | None = None,
        *,
        detail: str = "",
        records: int = 0,
    ) -> Concern:
        """Return a concern about some logs."""
        report, views = self.report, tuple(views)
        return Concern(
            state=state,
            kind=kind,
            owners=tuple(dict.fromkeys(map(report.owner_of, views))),
            inputs=tuple(dict.fromkeys(view.replica.input for view in views)),
            certain=counts.certain if counts else 0,
            possible=counts.possible if counts else 0,
            records=records or (counts.records if counts else 0),
            leader=report.owner_of(report.leader.view) if report.leader is not None else "",
            guess=_guess(report),
            detail=detail,
        )


def _is_replica(one: ReplicaReport) -> bool:
    return one.view.replica.is_live and one.verdict not in {Verdict.DIFFERENT_TOPIC, Verdict.NOT_ASSIGNED}


def _guess(report: PartitionReport) -> str:
    leader = report.leader
    if leader is None or leader.is_known:
        return ""
    if leader.tied_with:
        others = joined_by_and(sorted(map(str, leader.tied_with), key=lambda one: (len(one), one)))
        record, is_named, _ = leader.reason.partition("; ")
        return f"guessed: {f'{record}, and ' if is_named else ''}its log and that of {form(len(leader.tied_with), 'broker', 'brokers')} {others} speak for each as much"
    return f"guessed: {leader.reason}"


Item = tuple[TopicPartition, Concern]
Items = Sequence[Item]

MOST_NAMED = 5


class Concerns:
    """What gives reason for concern in some partitions, by state and kind.

    Args:
        among: the number of all partitions that were compared.
        not_starting: brokers that do not start as they are.
    """

    def __init__(
        self,
        judged: Sequence[JudgedPartition],
        state: State,
        *,
        among: int,
        not_starting: Collection[int] = (),
    ) -> None:
        self.judged = judged
        self.state = state
        self.not_starting = frozenset(f"broker {broker}" for broker in not_starting)
        self.among = counted(among, "partition")
        self.count = among
        self.is_metadata_alone = among == sum(one.partition.topic in METADATA_TOPICS for one in judged)
        self.by_kind: dict[tuple[State, ConcernKind], list[Item]] = {}
        for one in judged:
            for concern in one.concerns:
                self.by_kind.setdefault((concern.state, concern.kind), []).append((one.partition, concern))

    def of(self, kind: ConcernKind, *states: State) -> list[Item]:
        """Return the concerns of a kind, in some states or in that of the whole."""
        return [item for state in states or (self.state,) for item in self.by_kind.get((state, kind), ())]

    def agreeing(self) -> int:
        """Return the number of partitions whose assigned replicas are all given and agree, content compared."""
        listed = [one for one in self.judged if not one.is_deleted]
        return self.count - len(listed) + sum(one.state is State.AGREE for one in listed)

    def by_owners(self, items: Sequence[Item]) -> list[tuple[str, list[Item]]]:
        """Return the concerns by whom they are about, those with most committed records first."""
        groups: dict[str, list[Item]] = {}
        for item in items:
            groups.setdefault(joined_by_and(item[1].owners), []).append(item)
        return sorted(
            groups.items(), key=lambda group: (-sum_of(group[1], "certain"), -sum_of(group[1], "possible"), group)
        )

    def waiting(self) -> frozenset[str]:
        """Return the owners that are not to start first: what they hold, or others do, could be discarded then."""
        risky = [State.AT_RISK, State.MAYBE_AT_RISK]
        # Where another one is known to lead, to start first makes it discard what it holds.
        follows = [item for item in self.of(ConcernKind.DISCARD, *risky) if not item[1].guess]
        waiting = owners_of(follows + self.of(ConcernKind.EMPTIED, *risky) + self.of(ConcernKind.ELECTED, *risky))
        # One that may lack the end of its log makes those that hold it truncate, once it leads.
        unsure = self.of(ConcernKind.TAIL, *risky) + [
            item for item in self.of(ConcernKind.DISCARD, *risky) if item[1].guess
        ]
        waiting |= {one.leader for _, one in unsure if one.leader and one.leader not in one.owners}
        # A log directory that is not given may be empty, and what it should hold is led by its broker then.
        missing = owners_of(self.of(ConcernKind.MISSING, State.UNKNOWN))
        return waiting | {owner.removeprefix(OTHER_DISKS) for owner in missing if owner.startswith(OTHER_DISKS)}


def owners_of(items: Sequence[Item]) -> frozenset[str]:
    """Return whom concerns are about."""
    return frozenset(owner for _, one in items for owner in one.owners)


def sum_of(items: Sequence[Item], name: str) -> int:
    """Return the sum of a number of records over concerns."""
    return sum(getattr(one, name) for _, one in items)


def records_of(certain: int, possible: int) -> str:
    """Return how many records are committed, and how many may be."""
    if certain and possible:
        return f"{counted(certain, 'committed record')} and {possible:,} possibly committed"
    if certain:
        return counted(certain, "committed record")
    return counted(possible, "possibly committed record")


def partitions_of(items: Sequence[Item]) -> str:
    """Return how many partitions concerns are about."""
    return counted(len({partition for partition, _ in items}), "partition")


def names_of(items: Sequence[Item]) -> str:
    """Return the partitions that concerns are about, the first ones by name."""
    return first_ones(dict.fromkeys(str(partition) for partition, _ in items))


def topics_of(items: Sequence[Item]) -> str:
    """Return the topics that concerns are about, the first ones by name."""
    return first_ones(dict.fromkeys(partition.topic for partition, _ in items), " topics")


def first_ones(names: Iterable[str], others: str = "") -> str:
    """Return the first of some names, and how many others there are."""
    each = list(names)
    more = f" and {len(each) - MOST_NAMED} more{others}" if len(each) > MOST_NAMED else ""
    return ", ".join(each[:MOST_NAMED]) + more


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcernWords:
    """What is said of a kind of concern, and what to do."""

    short: str
    """Why a partition is in the state of the whole, where the headline is about others."""
    headline: str | Callable[[Concerns, Items], str] = ""
    """Where it decides the state of the whole; empty where it never does."""
    now: Callable[[Concerns, Sequence[str]], Iterator[str]] = lambda _found, _paths: iter(())
    """What to do, and what not to, before a broker is started; the paths are those of the inputs."""
    tell: Callable[[Concerns], Iterator[str]] = lambda _found: iter(())
    unknown: Callable[[Concerns], Iterator[str]] = lambda _found: iter(())
    """What the inputs do not show, and what would show it."""

    def in_headline(self, found: Concerns, items: Items) -> str:
        """Return the sentence of the headline."""
        if callable(self.headline):
            return self.headline(found, items)
        partition, first = items[0]
        return self.headline.format(
            partition=partition,
            partitions=partitions_of(items),
            owners=joined_by_and(owners_of(items)),
            first_owners=joined_by_and(first.owners),
            detail=first.detail,
            offsets=counted(sum_of(items, "records"), "offset"),
        )


MOST_COPIED = 20
"""Directories that one command copies by their names."""


def copies_of(paths: Sequence[str], items: Items) -> list[str]:
    """Return the commands that copy the inputs that concerns are about."""
    held = dict.fromkeys(paths[at] for _, one in items for at in one.inputs if at < len(paths))
    return [copy_of(path) for path in held]


def copies_of_places(paths: Sequence[str], places: Iterable[tuple[int, str]]) -> list[str]:
    """Return the commands that copy single directories, given by input and path below it, out of log directories, where a broker would not start with a copy among the others; of very many all that are beside them are copied, too."""
    by_input: dict[int, set[str]] = {}
    for at, path in places:
        by_input.setdefault(at, set()).add(path)
    commands = []
    for at, below in sorted(by_input.items()):
        if at >= len(paths):
            continue
        source = paths[at].rstrip("/")
        if len(below) > MOST_COPIED or "" in below:
            commands.append(copy_of(source))
            continue
        target = place_of_copy(source)
        copied = command_line(f"{source}/{path}" for path in sorted(below))
        commands.append(f"mkdir -p {target} && cp -a {copied} {target}")
    return commands
