"""What a metadata quorum goes on with: who can lead by the logs that are here, with which of them, and what that forgets (KIP-595, KIP-853)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.discovery.inputs import ServerSettings
from kforensics.evidence.metadata.compare import began_later, common_end, former_end, mixed_from
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.state import MetadataState, majority, newest_log
from kforensics.formats.checkpoint.lines import parse_leader_epoch_checkpoint
from kforensics.formats.checkpoint.properties import configured_voters
from kforensics.source.naming import FileKind, parse_partition_directory
from kforensics.source.walk import join
from kforensics.units import METADATA_TOPIC, TopicPartition

if TYPE_CHECKING:
    from kforensics.evidence.discovery.inputs import Inputs
    from kforensics.evidence.metadata.history import MetadataHistory
    from kforensics.evidence.metadata.state import PartitionState

Position = tuple[int, int]
"""Last leader epoch and end of a log: a voter votes for any that is no lower than its own."""
_EMPTY: Position = (-1, 0)
_DIRECTORY = f"{METADATA_TOPIC}-0"
FIRST_EPOCH = 1
"""The leader epoch of the first election of a quorum."""


class Voter(NamedTuple):
    """A controller among the inputs, by what decides an election."""

    node: int
    position: Position
    directory: str | Absent
    """The id of its metadata log's directory."""
    known_as: str
    """The directory id by which the voters know it, where it has another now and is none of them any more; else empty."""
    can_lead: bool
    """The voters that are here elect it, as far as their logs decide."""
    knows_voters: bool
    """Its log names voters, or its settings do."""


class LowerEpoch(NamedTuple):
    """A partition whose leader epoch goes back."""

    topic_partition: TopicPartition
    before: int
    then: int


class LowerLevel(NamedTuple):
    """A feature whose level goes back."""

    name: str
    before: int
    then: int


class Forgotten(NamedTuple):
    """What metadata holds that the log does not with which the quorum goes on."""

    topics: tuple[str, ...]
    partitions: int
    configs: int
    acls: int
    producer_ids: tuple[int, int] | None
    """The id that is handed out next, now and before: those between are handed out again."""
    brokers: tuple[int, ...]
    """Brokers whose registration is not in it."""
    epochs: tuple[LowerEpoch, ...]
    features: tuple[LowerLevel, ...]
    elections: tuple[TopicPartition, ...]
    """Partitions whose last leader, in-sync replicas or assignment are not in it."""
    deletions: tuple[str, ...]
    """Topics that were deleted, and are there again."""

    def is_of(self, topic: str) -> bool:
        """Whether it is of a topic or one of its partitions."""
        return topic in {*self.topics, *self.deletions} or any(topic == one.topic for one in self.elections)


class AffectedBroker(NamedTuple):
    """What a broker does once it follows the quorum."""

    node: int
    truncates_to: int | None
    """The end of its metadata log then; None where nothing of it is truncated."""
    directories: tuple[str, ...]
    """Its partition directories that the metadata does not assign to it any more."""
    newest_level: int | Absent
    """The newest metadata.version that its binary supports."""
    epochs: tuple[int, int] | None
    """Its broker epoch by its clean-shutdown marker, and by the metadata that the quorum goes on with (-1 for none), where they differ."""


class AbsentControllers(NamedTuple):
    """The controllers of a cluster of which none is among the inputs, and the longest copy of their metadata."""

    voters: tuple[int, ...]
    directories: Mapping[int, str]
    """The directory ids by which dynamic voters are known; empty where they are static."""
    path: str
    end: int
    cluster_id: str | Absent


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSetBack:
    """Voters that can go on without metadata that was committed, or none that can be elected at all."""

    voters: tuple[int, ...]
    """Those that lack it; where none can be elected, those that are no voters any more, or know none."""
    voter_count: int
    end: int
    """The end of the longest log with which one of them can win."""
    shown_by: str
    """What shows what was committed, as a part of a sentence."""
    holders: tuple[int, ...]
    """Nodes whose logs hold all of it."""
    standings: tuple[Voter, ...]
    is_certain: bool
    """None that holds it can win."""
    is_shown: bool
    """What they lack is shown to have been committed; else it is known only that copies have it which reach beyond the logs of all voters."""
    is_emptied: bool
    """They lack all that is known to have been committed: no copy of a running controller, made a moment earlier, does."""
    is_open: bool = False
    """They are too few to elect one of them, and whether others that are not here lack it, too, is not known."""
    is_stuck: bool = False
    """No controller can be elected."""
    is_anew: bool = False
    """It began anew, and has not come to the leader epoch yet in which the former one ended: until then no node of that follows it."""
    can_mix: bool = False
    """The quorum begins anew, with the leader epoch in which the former one wrote its first records: brokers keep what lies below the end that the new log has when they first fetch."""
    by_settings: tuple[int, ...] = ()
    """Those that can lead only where `controller.quorum.voters` is still in their settings, which are not known; without it none can be elected."""
    mixed: tuple[int, ...] = ()
    """Nodes that took what the new log holds behind the end of the former one, in the same leader epoch: `voters` are those that began anew."""
    forgotten: Forgotten | None
    """None where no log of the inputs holds it."""
    since: tuple[str, ...] = ()
    """Topics that the new log of a mixed quorum alone names."""
    source: tuple[str, int] | None
    """The path of the log that holds it, and the end of what it holds of it."""
    is_source_whole: bool = True
    """The log holds nothing else."""
    former_ids: Mapping[int, str] = field(default_factory=dict)
    """The directory ids by which the former metadata of a mixed quorum knows its voters; empty where they are static."""
    copies: tuple[str, ...] = ()
    """The paths of the metadata logs of all nodes, the source first, where two quorums wrote them."""
    state: MetadataState
    """The metadata that the quorum goes on with."""
    brokers: tuple[AffectedBroker, ...] = ()


def quorum_set_back(
    histories: "Sequence[MetadataHistory]", inputs: "Inputs", earlier: Collection[int] = ()
) -> QuorumSetBack | None:
    """Return what a start of the controllers that are here forgets; none where the inputs do not show it.

    Voters that are not given, or whose logs can't be read whole, are taken to hold everything, and to vote for nobody else.

    Args:
        earlier: inputs that are not as they are now.
    """
    now = [one for one in histories if one.input not in earlier]
    newest = newest_log(now)
    if newest is None or not newest.current_voters:
        return None
    named: Mapping[int, str] = newest.voter_directories or dict.fromkeys(newest.current_voters, "")
    nodes = _Nodes(now, inputs, earlier, named)
    # A quorum that began anew may not have come to the leader epoch yet in which the former one ended: no node of that follows it.
    anew = [one for one in now if began_later(one, newest)]
    began = newest_log(anew) or newest
    places = {one.node_id: mixed_from(one, began) for one in now if one.last_epoch <= began.last_epoch}
    mixed = {node: at for node, at in places.items() if isinstance(node, int) and at is not None}
    if mixed:
        return _mixed_logs(now, inputs, began, nodes, mixed)
    for one in anew:
        if isinstance(one.node_id, int) and one.node_id in nodes.positions:
            nodes.positions[one.node_id] = (one.last_epoch, common_end(one, newest))
    if not nodes.positions.keys() & named.keys():
        return None
    standings = tuple(nodes.standing(node) for node in sorted(named) if node in nodes.positions)
    winners = sorted(one for one in standings if one.can_lead)
    unable = tuple(one.node for one in standings if one.known_as or not one.knows_voters)
    is_stuck = not winners and bool(unable) and named.keys() <= nodes.positions.keys()
    absent = len(named.keys() - nodes.positions.keys())
    lowest = min((one.position for one in winners), default=(newest.last_epoch, newest.end_offset))
    longest = max(one.end_offset for one in now)
    may_be_open = bool(absent) and any(one.position[1] < longest for one in standings)
    if not is_stuck and not may_be_open and (not winners or lowest[1] >= longest):
        return None
    former = [one for one in now if one not in anew]
    marks = sorted(mark for mark in _committed(former, inputs, earlier) if mark[0] > 0)
    # Only where voters were copied before, or lost the ends of their logs, a copy has more than all of them.
    is_beyond = not absent and not newest.is_of_voter
    if is_beyond and (not marks or lowest[1] >= marks[-1][0]):
        marks += sorted(_elected(newest, inputs, earlier, lowest[1]))
    lacking = tuple(one for one in standings if marks and one.position[1] < marks[-1][0])
    is_open = bool(lacking) and not is_stuck and lowest[1] >= marks[-1][0]
    if is_open and len(lacking) + absent < majority(len(named)):
        return None
    if is_open:
        lowest = max(one.position for one in lacking)
    is_shown = bool(marks) and (is_stuck or lowest[1] < marks[-1][0])
    if not is_shown and not (is_beyond and marks):
        return None
    committed, shown_by = marks[-1] if is_shown else (newest.end_offset, "")
    winner = next((one.node for one in (lacking if is_open else winners) if one.position == lowest), None)
    by_settings = tuple(one.node for one in winners if one.position == lowest and one.node in nodes.by_settings)
    known = _Known(now, inputs, newest, winner, committed)
    is_emptied = is_stuck or bool(anew) or lowest[1] < marks[0][0]
    forgotten = None if is_stuck else known.forgotten()
    if not is_emptied and not (forgotten and (any(forgotten) if is_beyond else forgotten.topics or forgotten.brokers)):
        return None  # a controller that was copied a moment before the others lacks what came last
    return QuorumSetBack(
        voters=unable if is_stuck else tuple(one.node for one in standings if one.position <= lowest),
        voter_count=len(named),
        end=lowest[1],
        shown_by=shown_by,
        holders=tuple(
            sorted(
                node
                for node, position in nodes.every.items()
                if position[1] >= committed and (known.full is None or position[0] == known.full.last_epoch)
            )
        ),
        standings=standings,
        by_settings=by_settings,
        is_certain=is_stuck
        or (
            is_shown
            and not by_settings
            and named.keys() <= nodes.positions.keys()
            and all(one.position[1] < committed for one in winners)
        ),
        is_shown=is_shown,
        is_emptied=is_emptied,
        is_open=is_open,
        is_stuck=is_stuck,
        is_anew=bool(anew),
        can_mix=lowest[1] == 0 and any(one.epochs and one.epochs[0].leader_epoch == FIRST_EPOCH for one in now),
        forgotten=forgotten,
        source=None if known.full is None else (_path_of(known.full, inputs), known.full.end_offset),
        state=known.state,
        brokers=() if is_stuck else tuple(known.brokers(named)),
    )


def absent_controllers(histories: "Sequence[MetadataHistory]", inputs: "Inputs") -> AbsentControllers | None:
    """Return the controllers, where no directory of any of them is among the inputs, and brokers hold copies of their metadata."""
    newest = newest_log(histories)
    given = {found.described.broker_id for _, found in inputs.numbered}
    if newest is None or not newest.current_voters or given & set(newest.current_voters):
        return None
    return AbsentControllers(
        voters=tuple(sorted(newest.current_voters)),
        directories=newest.voter_directories,
        path=_path_of(newest, inputs),
        end=newest.end_offset,
        cluster_id=inputs.described[newest.input].cluster_id,
    )


def _mixed_logs(
    histories: "Sequence[MetadataHistory]",
    inputs: "Inputs",
    newest: "MetadataHistory",
    nodes: "_Nodes",
    mixed: Mapping[int, int],
) -> QuorumSetBack:
    """Return what is known of a quorum that was begun anew, or put back, and that nodes of the former one have followed since."""
    ends = {
        one.input: former_end(one, newest, mixed[one.node_id])
        for one in histories
        if isinstance(one.node_id, int) and one.node_id in mixed
    }
    others = sorted((one for one in histories if one.input in ends), key=lambda one: (ends[one.input], -one.input))
    source, end = others[-1], ends[others[-1].input]
    known = _Known([*others, newest], inputs, newest, newest.node_id, 0, [source], end)
    voters = tuple(node for node in sorted(newest.current_voters) if node in nodes.positions and node not in mixed)
    return QuorumSetBack(
        voters=voters or tuple(node for node in (newest.node_id,) if isinstance(node, int)),
        voter_count=len(newest.current_voters),
        end=min(mixed.values()),
        shown_by="",
        holders=tuple(
            sorted(one.node_id for one in others if ends[one.input] == one.end_offset and isinstance(one.node_id, int))
        ),
        standings=tuple(nodes.standing(node) for node in sorted(newest.current_voters) if node in nodes.positions),
        is_certain=True,
        is_shown=True,
        is_emptied=True,
        mixed=tuple(sorted(mixed)),
        forgotten=known.forgotten(),
        since=known.named_since(),
        source=(_path_of(source, inputs), end),
        is_source_whole=end == source.end_offset,
        former_ids=source.voter_directories,
        copies=tuple(dict.fromkeys(_path_of(one, inputs) for one in (source, *reversed(others), *histories))),
        state=known.state,
    )


class _Nodes:
    """The nodes that are here, by what decides an election."""

    def __init__(
        self,
        histories: "Sequence[MetadataHistory]",
        inputs: "Inputs",
        earlier: Collection[int],
        named: Mapping[int, str],
    ) -> None:
        self._named = named
        self._inputs = inputs
        self._own = {one.node_id: one.voter_directories for one in histories if one.voter_directories}
        self._directories: dict[int, set[str]] = {}
        self._by_state = {
            found.described.broker_id: log_dir.quorum.current_voters
            for at, found in inputs.numbered
            for log_dir in found.log_dirs
            if at not in earlier and not isinstance(log_dir.quorum, Absent) and log_dir.quorum.data_version == 0
        }
        self.by_settings: set[int] = set()
        """Nodes whose voters their settings name, which are not known."""
        self.every: dict[int, Position] = {}
        """Last epoch and end of each node's log, as far as it could be read whole."""
        for one in histories:
            if isinstance(one.node_id, int) and not one.problems and not one.damage and not one.gaps:
                # A log that ends below a snapshot beside it begins anew there when it is loaded.
                own = (
                    (one.last_epoch, one.end_offset),
                    *((s.raft_epoch, s.end_offset) for s in one.snapshots if s.is_complete),
                )
                self.every[one.node_id] = max(*own, self.every.get(one.node_id, _EMPTY))
        self.positions = {node: position for node, position in self.every.items() if node in named}
        for at, found in inputs.numbered:
            node = found.described.broker_id
            if at in earlier or not isinstance(node, int) or node not in named:
                continue
            ids = {one.meta.directory_id for one in found.log_dirs if not isinstance(one.meta, Absent)}
            self._directories.setdefault(node, set()).update(one for one in ids if isinstance(one, str))
            # Nothing beside what formatting writes; a link in place of the metadata log is not followed.
            if (
                node not in self.positions
                and found.log_dirs
                and not any(d.partitions or d.has_broker_files or d.is_metadata_dir for d in found.log_dirs)
                and not any(one.name == _DIRECTORY for d in found.log_dirs for one in found.listings.of(d.path).entries)
            ):
                self.positions[node] = _EMPTY

    def standing(self, node: int) -> Voter:
        """Return a voter, and whether the others that are here elect it."""
        here = self._directories.get(node, set())
        wanted = self._named[node]
        is_other = bool(wanted and here) and wanted not in here
        electorate = self._electorate(node)
        granted = 0
        for other, directory in electorate.items():
            its = self._directories.get(other, set())
            # A request that names another directory id is refused: INVALID_VOTER_KEY.
            is_it = not directory or not its or directory in its
            granted += other in self.positions and is_it and self.positions[other] <= self.positions[node]
        mine = electorate.get(node)
        is_voter = mine is not None and (not mine or not here or mine in here)
        return Voter(
            node=node,
            position=self.positions[node],
            directory=next(iter(sorted(here)), Absent.UNKNOWN),
            known_as=wanted if is_other else "",
            can_lead=is_voter and granted >= majority(len(electorate)),
            knows_voters=bool(electorate),
        )

    @cached_property
    def _settings(self) -> ServerSettings:
        return ServerSettings(self._inputs)

    def _electorate(self, node: int) -> Mapping[int, str]:
        """Return the voters by a node's own log, else by its settings: a node that was formatted anew knows those alone."""
        if node in self._own:
            return self._own[node]
        if not any(self._named.values()):
            return self._named
        # Voters in settings count only where no record or snapshot of the node's own names them.
        started = self._by_state.get(node)
        if isinstance(started, tuple):
            return dict.fromkeys(started, "")
        settings = self._settings.of_node(node)
        if not settings:
            self.by_settings.add(node)
            return dict.fromkeys(self._named, "")
        ids = configured_voters(settings)
        return dict.fromkeys((int(one) for one in ids if one.isdecimal() and len(one) < 11), "")


class _Known:
    """The metadata that the winner of an election holds, and that which it lacks."""

    def __init__(
        self,
        histories: "Sequence[MetadataHistory]",
        inputs: "Inputs",
        newest: "MetadataHistory",
        winner: int | Absent | None,
        committed: int,
        among: "Sequence[MetadataHistory] | None" = None,
        end: int | None = None,
    ) -> None:
        self._histories, self._inputs, self._end = histories, inputs, end
        own = newest_log([one for one in histories if one.node_id == winner])
        full = max(
            (one for one in among or histories if one.is_log_known and one.end_offset >= committed),
            key=lambda one: (one.last_epoch, one.end_offset, one is newest),
            default=None,
        )
        self.full = None if full is None else _with_partitions(full, inputs)
        self.fork = 0 if own is None or self.full is None else common_end(own, self.full)
        if own is None:
            self.state = _NOTHING
        elif self.full is not None and self.fork == own.end_offset and self.full.start_offset <= self.fork:
            self.state = self.full.at(self.fork - 1)
        else:
            self.state = _with_partitions(own, inputs).latest()

    @cached_property
    def _before(self) -> MetadataState:
        """What the log that holds most says, as far as it is of the former quorum."""
        full = self.full
        if full is None:
            return _NOTHING
        return full.latest() if self._end in {None, full.end_offset} else full.at(self._end - 1)

    def named_since(self) -> tuple[str, ...]:
        """Return the topics that only the log names with which the quorum goes on."""
        return tuple(sorted(one.name for key, one in self.state.topics.items() if key not in self._before.topics))

    def forgotten(self) -> Forgotten | None:
        """Return what the longer log holds beyond."""
        if self.full is None:
            return None
        after, before = self.state, self._before
        gone = {key: one for key, one in before.topics.items() if key not in after.topics}
        back = (
            LowerEpoch(one.topic_partition, one.leader_epoch, later.leader_epoch)
            for key, one in before.partitions.items()
            if (later := after.partitions.get(key)) is not None and later.leader_epoch < one.leader_epoch
        )
        levels = (LowerLevel(name, level, after.features.get(name, 0)) for name, level in before.features.items())
        values = {key: one.value for key, one in after.configs.items()}
        ids = (after.next_producer_id, before.next_producer_id)
        return Forgotten(
            topics=tuple(sorted(one.name for one in gone.values())),
            partitions=sum(key not in after.partitions for key in before.partitions),
            configs=sum(values.get(key) != one.value for key, one in before.configs.items()),
            acls=len(before.acls - after.acls),
            producer_ids=ids if ids[0] < ids[1] else None,
            brokers=tuple(
                sorted(
                    node
                    for node, one in before.brokers.items()
                    if node not in after.brokers or after.brokers[node].broker_epoch < one.broker_epoch
                )
            ),
            epochs=tuple(sorted(back)),
            # Controllers that begin anew have those that they were formatted with.
            features=tuple(sorted(one for one in levels if after.features and one.then < one.before)),
            elections=tuple(
                sorted(
                    one.topic_partition
                    for key, one in before.partitions.items()
                    if (later := after.partitions.get(key)) is not None and _led_by(one) != _led_by(later)
                )
            ),
            deletions=tuple(
                sorted(
                    one.name
                    for key, one in after.topics.items()
                    if key not in before.topics and key in self.full.topics
                )
            ),
        )

    def brokers(self, voters: Collection[int]) -> Iterator[AffectedBroker]:
        """Yield what each broker among the inputs does once it follows the quorum."""
        ends = {one.node_id: one for one in self._histories}
        most = self.state if self.full is None else self.full.latest()
        by_name = {topic.name: key for known in (most, self.state) for key, topic in known.topics.items()}
        for node, names, epochs in self._directories():
            copy = ends.get(node)
            fork = None if copy is None or self.full is None else min(copy.end_offset, self.fork)
            lost = tuple(name for name in names if not self._is_assigned(name, node, by_name))
            registered = self.state.brokers[node].broker_epoch if node in self.state.brokers else -1
            marker = max(epochs, default=-1)
            last = [] if self.full is None else list(self.full.brokers.get(node, ()))
            if lost or (fork is not None and node not in voters):
                yield AffectedBroker(
                    node=node,
                    truncates_to=fork if copy is not None and fork is not None and fork < copy.end_offset else None,
                    directories=lost,
                    newest_level=last[-1].newest_metadata_version if last else Absent.UNKNOWN,
                    epochs=(marker, registered) if marker > registered else None,
                )

    def _directories(self) -> Iterator[tuple[int, list[str], list[int]]]:
        found: dict[int, tuple[list[str], list[int]]] = {}
        for one in self._inputs.found:
            if isinstance(node := one.described.broker_id, int):
                names, epochs = found.setdefault(node, ([], []))
                names += [name for log_dir in one.log_dirs for name in log_dir.partitions]
                epochs += [epoch for log_dir in one.log_dirs if isinstance(epoch := log_dir.broker_epoch, int)]
        yield from ((node, *both) for node, both in sorted(found.items()))

    def _is_assigned(self, directory: str, node: int, topic_ids: Mapping[str, str]) -> bool:
        parsed = parse_partition_directory(directory)
        if parsed is None or parsed.is_metadata:
            return True
        state = self.state.partitions.get((topic_ids.get(parsed.topic, ""), parsed.partition))
        return state is not None and node in state.replicas


def metadata_naming(
    topics: Collection[str], histories: "Sequence[MetadataHistory]", inputs: "Inputs"
) -> tuple[str, int] | None:
    """Return the path and the end of the metadata log that names most of some topics, earlier copies among them, the longest of several; None where none does."""
    named = {
        at: sum(any(isinstance(each.removed, Absent) for each in one.topics_named(topic)) for topic in topics)
        for at, one in enumerate(histories)
    }
    best = max(named, key=lambda at: (named[at], histories[at].end_offset), default=None)
    if best is None or not named[best]:
        return None
    chosen = histories[best]
    return _path_of(chosen, inputs), chosen.end_offset


def _path_of(history: "MetadataHistory", inputs: "Inputs") -> str:
    """Return the path of a metadata log where a command can copy it: of what was captured, that on its node."""
    one = inputs.found[history.input]
    return join((one.store.origin or one.described.path).rstrip("/"), history.directory)


_NOTHING = MetadataState(offset=-1, topics={}, partitions={}, brokers={}, configs={}, features={})


def _led_by(state: "PartitionState") -> tuple[object, ...]:
    """Return what an election and the next ones depend on."""
    return (state.leader, state.leader_epoch, state.isr, state.replicas, state.eligible_leader_replicas)


def log_to_go_by(
    histories: "Sequence[MetadataHistory]", inputs: "Inputs", quorum: QuorumSetBack | None
) -> "MetadataHistory | None":
    """Return the log that nodes go by: the newest of the voters where each one's is here, once and whole, whatever others hold beyond it; else the newest."""
    newest = newest_log(histories)
    is_set_back = quorum is not None and quorum.is_shown
    voters = newest.current_voters if newest is not None and not is_set_back else ()
    mine = [one for one in histories if one.node_id in voters]
    is_known = len(mine) == len(voters) and not any(one.damage or one.gaps or one.problems for one in mine)
    own = newest_log(mine) if is_known and {one.node_id for one in mine} == {*voters} else None
    return newest if own is None else _with_partitions(own, inputs)


def _with_partitions(history: "MetadataHistory", inputs: "Inputs") -> "MetadataHistory":
    """Return a history with its partitions, read again where they were left out."""
    if len(history.partitions) or not history.topics:
        return history
    from kforensics.evidence.metadata.log import read_metadata_log  # noqa: PLC0415 - it has the comparison of logs itself

    files = find_metadata_logs(inputs)
    mine = (one for one in files if (one.input, one.directory) == (history.input, history.directory))
    return next((read_metadata_log(one) for one in mine), history)


def _committed(
    histories: "Sequence[MetadataHistory]", inputs: "Inputs", earlier: Collection[int]
) -> Iterator[tuple[int, str]]:
    """Yield offsets below which all was committed, with what shows it: nodes take snapshots, answer brokers, make directories and are stopped on what is committed alone."""
    for one in histories:
        for snapshot in one.snapshots:
            yield snapshot.end_offset, f"node {one.node_id} has a snapshot of all below {snapshot.end_offset}"
        for node, states in one.brokers.items():
            for before, after in pairwise(states):
                # It sends heartbeats with the epoch that the answer to its registration named.
                if before.broker_epoch == after.broker_epoch and before.is_fenced and not after.is_fenced:
                    yield before.broker_epoch + 1, f"broker {node} registered at offset {before.broker_epoch}"
    names = {
        (parsed.topic, found.described.broker_id)
        for at, found in inputs.numbered
        if at not in earlier
        for log_dir in found.log_dirs
        for name in log_dir.partitions
        if (parsed := parse_partition_directory(name)) is not None
    }
    holders = dict(sorted(names, key=str, reverse=True))
    for one in histories:
        for name, ids in one.topic_ids.items():
            # Of a name that was given twice the directory may be of the other topic.
            if name in holders and len(ids) == 1 and one.topics[ids[0]].created.from_snapshot is False:
                offset = one.topics[ids[0]].created.offset
                yield offset + 1, f"broker {holders[name]} has a directory of topic {name}, created at offset {offset}"
    for at, found in inputs.numbered:
        for log_dir in found.log_dirs:
            if at not in earlier and isinstance(epoch := log_dir.broker_epoch, int) and epoch >= 0:
                yield epoch + 1, f"broker {found.described.broker_id} registered at offset {epoch}"


def _elected(
    newest: "MetadataHistory", inputs: "Inputs", earlier: Collection[int], end: int
) -> Iterator[tuple[int, str]]:
    """Yield offsets of elections at or above another one whose leader epochs logs have, with what shows it: brokers lead by what is committed alone."""
    elected: dict[str, dict[int, int]] = {}
    for key in newest.partitions:
        then = newest.partitions.at(key, end - 1)
        for state in newest.partitions[key] if then is not None else ():
            is_later = then is not None and state.leader_epoch > then.leader_epoch
            if is_later and state.when.offset >= end and len(newest.topic_ids[state.topic]) == 1:
                epochs = elected.setdefault(f"{state.topic}-{state.partition}", {})
                epochs.setdefault(state.leader_epoch, state.when.offset)
    for at, found in inputs.numbered:
        for log_dir in found.log_dirs if at not in earlier else ():
            for name in elected.keys() & {*log_dir.partitions}:
                try:
                    data = found.read_small(join(join(log_dir.path, name), FileKind.LEADER_EPOCH_CHECKPOINT.value))
                    known = {one.leader_epoch for one in parse_leader_epoch_checkpoint(data).entries}
                except (EvidenceError, FormatError):
                    continue
                for epoch in elected[name].keys() & known:
                    words = f"the log of {name} on broker {found.described.broker_id} has leader epoch {epoch}, of offset {elected[name][epoch]}"
                    yield elected[name][epoch] + 1, words
