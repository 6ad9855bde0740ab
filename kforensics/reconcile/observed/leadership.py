"""The account of leadership of a partition: who led from when to when, how each leader came to lead, and where the account has gaps.

An election is safe where the elected replica held all that was committed. The record of a clean election alone does not show that: a replica stays in the ISR,
or eligible, while it is down, and what it holds when it comes back may be less than what it held before (an unclean stop, another disk), or it may have
truncated its log to its high watermark (before KIP-101).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.formats.checkpoint.properties import RESERVED_DIRECTORY_IDS
from kforensics.reconcile.observed.facts import ClusterFacts, Leadership, LogLoad, Restart
from kforensics.units import TopicPartition
from kforensics.words import form, listed

START_MS = 10_000
"""The lines of one start begin within this time before the line that dates it."""


class Risk(StrEnum):
    """The reason why an election may have lost committed records."""

    UNCLEAN = "unclean"
    UNCLEAN_RESTART = "unclean-restart"
    OTHER_DISK = "other-disk"
    HIGH_WATERMARK = "high-watermark"
    OLDER_DISK = "older-disk"
    """Its disk was put back to an earlier state: its log ended below where the clean stop had left it."""
    RESTART = "restart"
    """It led again after a clean stop, alone in sync, and nothing shows that its disk was not an older copy."""


class Election(NamedTuple):
    """A replica began to lead."""

    before: Leadership | None
    """The state that it followed, none where the account begins with it."""
    state: Leadership
    risk: Risk | None
    """The risk of the election; none where the elected replica held all that was committed, as far as the account shows."""
    previous: int | Absent
    """Who led before."""
    restart: Restart | None = None
    """The restart that the risk comes from."""
    loaded_end: int | Absent = Absent.NOT_APPLICABLE
    """The log end offset with which it loaded a log that had been put back to an earlier state."""


class GapKind(StrEnum):
    """The kind of fact that an account does not show."""

    NO_SOURCE = "no-source"
    BEGINNING = "beginning"
    """Of a compacted metadata log: what its first snapshot does not show."""
    EPOCHS = "epochs"
    END = "end"
    METADATA = "metadata"
    BROKER = "broker"


class Gap(NamedTuple):
    """A part of the account that no input shows."""

    kind: GapKind
    words: str
    """What is unknown, as a part of a sentence."""
    settled_by: str
    """The input that would show it."""
    leader_epoch: int | None = None
    """The leader epoch up to which elections are unknown; none where the gap is not one between leader epochs."""


class LeadershipAccount(NamedTuple):
    """The states of one partition, its elections and what is unknown of them."""

    partition: TopicPartition
    states: tuple[Leadership, ...]
    elections: tuple[Election, ...]
    gaps: tuple[Gap, ...]
    source: str
    """`metadata-log`, `log-lines` or `none`."""
    assigned: frozenset[int] | Absent
    """Replicas by the newest assignment."""
    restarts: Mapping[int, tuple[Restart, ...]] = MappingProxyType({})
    enters_elected_epochs: bool = True
    """As the facts have it."""

    @property
    def is_whole(self) -> bool:
        """Whether every leader since the first state is on record, and each held all that was committed when it was elected."""
        return bool(self.states) and not self.gaps and not self.risky

    @property
    def last_leader(self) -> int | Absent:
        """The newest leader on record; a cluster that was stopped ends without one."""
        return next((s.leader for s in reversed(self.states) if isinstance(s.leader, int)), Absent.UNKNOWN)

    @property
    def replicas(self) -> frozenset[int]:
        """Every broker that may hold a replica: those assigned, else all that led or were in sync."""
        by_metadata = self.source == "metadata-log" and isinstance(self.assigned, frozenset)
        return self.assigned if by_metadata and isinstance(self.assigned, frozenset) else _named(self.states)

    @property
    def risky(self) -> tuple[Election, ...]:
        """Elections that may have lost committed records."""
        return tuple(one for one in self.elections if one.risk is not None)

    def gaps_since(self, leader_epoch: int) -> tuple[Gap, ...]:
        """Return the gaps that may hide how a leader after a leader epoch was elected; -1 asks for all."""
        return tuple(
            gap
            for gap in self.gaps
            if gap.kind in {GapKind.NO_SOURCE, GapKind.METADATA}
            or (gap.leader_epoch is not None and gap.leader_epoch > leader_epoch)
        )

    @property
    def reaches_now(self) -> bool:
        """Whether no input is missing that could show a later leader."""
        return bool(self.states) and not any(gap.kind in {GapKind.END, GapKind.NO_SOURCE} for gap in self.gaps)


def account_of(
    partition: TopicPartition,
    topic_id: str | Absent,
    facts: ClusterFacts,
    *,
    states: tuple[Leadership, ...] | None = None,
    newest_epoch: int | Absent = Absent.UNKNOWN,
    given: frozenset[int] = frozenset(),
    by_high_watermark: bool = False,
    keeps_epoch: Callable[[int], bool] = lambda _broker: False,
) -> LeadershipAccount:
    """Put the account of one partition together.

    Args:
        states: where more than the facts shows them; None for those of the facts.
        by_high_watermark: followers truncate to their high watermark when the leader changes (before KIP-101, or magic 0 and 1).
        keeps_epoch: whether a broker's directory shows that it was elected, though it wrote nothing.
    """
    states = facts.leaderships(partition, topic_id) if states is None else states
    restarts = {
        broker: tuple(_of_its_disk(one, broker, states) for one in facts.restarts(broker)) for broker in _named(states)
    }
    loads = {broker: facts.loads(broker, partition) for broker in restarts}
    return LeadershipAccount(
        partition=partition,
        states=states,
        elections=tuple(
            _elections(
                states,
                restarts,
                loads,
                by_high_watermark=by_high_watermark,
                are_stops_verified=facts.verifies_clean_stops(),
            )
        ),
        gaps=tuple(_gaps(states, facts, _highest(newest_epoch, facts.later_epoch(partition)), given, keeps_epoch)),
        source="none" if not states else "metadata-log" if isinstance(states[-1].recorded_at, int) else "log-lines",
        assigned=_assigned(states),
        restarts=restarts,
        enters_elected_epochs=facts.enters_elected_epochs(),
    )


def _of_its_disk(restart: Restart, broker: int, states: Sequence[Leadership]) -> Restart:
    """Return the restart as it was for this partition: of several disks of a broker another one may have been exchanged."""
    known = [
        state
        for state in states
        if isinstance(state.recorded_at, int)
        and isinstance(restart.recorded_at, int)
        and state.recorded_at <= restart.recorded_at
    ]
    directory = dict(known[-1].directories).get(broker) if restart.missing_directories and known else None
    if directory is None or directory in RESERVED_DIRECTORY_IDS or directory in restart.missing_directories:
        return restart
    return restart._replace(other_disk=False)


def _named(states: Iterable[Leadership]) -> frozenset[int]:
    named: set[int] = set()
    for state in states:
        named |= {state.leader} if isinstance(state.leader, int) else set()
        named |= state.isr if isinstance(state.isr, frozenset) else set()
        named |= state.eligible | (frozenset() if isinstance(state.replicas, Absent) else frozenset(state.replicas))
    return frozenset(named)


def _assigned(states: Sequence[Leadership]) -> frozenset[int] | Absent:
    if not states:
        return Absent.UNKNOWN
    if isinstance(states[-1].replicas, tuple):
        return frozenset(states[-1].replicas)
    # Lines of brokers name the ISR only.
    return next((s.isr for s in reversed(states) if isinstance(s.isr, frozenset) and s.isr), Absent.UNKNOWN)


def _elections(
    states: Sequence[Leadership],
    restarts: Mapping[int, Sequence[Restart]],
    loads: Mapping[int, Sequence[LogLoad]],
    *,
    by_high_watermark: bool,
    are_stops_verified: bool,
) -> Iterable[Election]:
    previous: int | Absent = Absent.UNKNOWN
    for at, state in enumerate(states):
        before = states[at - 1] if at else None
        is_new = before is None or state.leader_epoch != before.leader_epoch or state.leader != before.leader
        if not isinstance(state.leader, int) or not is_new:
            continue
        risk: Risk | None = None
        restart: Restart | None = None
        end: int | Absent = Absent.NOT_APPLICABLE
        if before is not None:
            risk, restart, end = _risk(
                states[: at + 1],
                restarts.get(state.leader, ()),
                loads.get(state.leader, ()),
                previous,
                by_hw=by_high_watermark,
                are_stops_verified=are_stops_verified,
            )
        yield Election(before, state, risk, previous, restart, end)
        previous = state.leader
    yield from led_on(states, restarts, loads)


def led_on(
    states: Sequence[Leadership],
    restarts: Mapping[int, Sequence[Restart]],
    loads: Mapping[int, Sequence[LogLoad]],
) -> Iterable[Election]:
    """Yield leaders that came back without a new election, where their log may have been shorter: a lone broker leads on in its leader epoch (ZooKeeper), and none is elected while the only one that can be has another disk (KRaft)."""
    last_led = next((state for state in reversed(states) if isinstance(state.leader, int)), None)
    newest = states[-1] if states else None
    if last_led is not None and newest is not None and not isinstance(newest.leader, int):
        broker = int(str(last_led.leader))
        electable = newest.eligible | (frozenset() if isinstance(newest.isr, Absent) else newest.isr)
        exchanged = (one for one in restarts.get(broker, ()) if one.other_disk and not is_before(one, last_led))
        if electable <= {broker} and (found := next(exchanged, None)) is not None:
            yield Election(last_led, last_led, Risk.OTHER_DISK, broker, found)
    terms = [
        state
        for before, state in zip((None, *states), states, strict=False)
        if isinstance(state.leader, int) and (before is None or _term(before) != _term(state))
    ]
    for state in terms:
        assert isinstance(state.leader, int)
        last = next(one for one in reversed(states) if _term(one) == _term(state))
        after = next(iter(states[states.index(last) + 1 :]), None)
        # Lines that begin after the partition was created do not show when its first leader epoch began.
        is_begun = state is states[0] and not (
            state.leader_epoch or state.is_creation or isinstance(state.recorded_at, int)
        )
        during = [
            one
            for one in restarts.get(state.leader, ())
            if isinstance(one.time_ms, int)
            and isinstance(state.time_ms, int)
            and (is_begun or not is_before(one, _since(one, state, last, after), unknown=False))
            and (after is None or (isinstance(one.recorded_at, Absent) and is_before(one, after, unknown=False)))
        ]
        # A start that another election overtook ends behind it: then this leader did not lead on.
        if after is not None and not (during and during[-1].is_clean and not during[-1].other_disk):
            continue
        found = next((one for one in during if one.other_disk), None)
        found = found or next((one for one in during if not one.is_clean), None)
        risk = None if found is None else Risk.UNCLEAN_RESTART
        end: int | Absent = Absent.NOT_APPLICABLE
        if found is not None and found.other_disk:
            risk = Risk.OTHER_DISK
        elif found is None and during and isinstance(during[0].recorded_at, Absent):
            found = during[0]
            until = Absent.UNKNOWN if after is None else after.time_ms
            risk, end = _clean_return(during, loads.get(state.leader, ()), until)
        if found is not None and risk is not None:
            own = [one for one in states if _term(one) == _term(state) and not is_before(found, one, unknown=False)]
            yield Election(state, own[-1] if own else state, risk, state.leader, found, end)


def _since(restart: Restart, first: Leadership, last: Leadership, after: Leadership | None) -> Leadership:
    """Return the state of a term behind which a restart of its leader is one in the term: a broker says that it has started after it leads, but recovers its logs before."""
    is_start = restart.is_clean and not restart.other_disk
    return last if is_start and after is None else first


def _clean_return(
    restarts: Sequence[Restart], loads: Sequence[LogLoad], until_ms: int | Absent
) -> tuple[Risk | None, int | Absent]:
    """Return what clean restarts leave open: nothing where each time the log was loaded as long as the stop had left it, by the broker's lines."""
    since = min((one.time_ms for one in restarts if isinstance(one.time_ms, int)), default=None)
    if since is None:
        return Risk.RESTART, Absent.NOT_APPLICABLE
    own = [
        one
        for one in loads
        if one.time_ms >= since - START_MS and (isinstance(until_ms, Absent) or one.time_ms <= until_ms)
    ]
    for one in own:
        if isinstance(one.end_at_stop, int) and one.log_end_offset < one.end_at_stop:
            return Risk.OLDER_DISK, one.log_end_offset
    is_whole = bool(own) and all(isinstance(one.end_at_stop, int) for one in own)
    return None if is_whole else Risk.RESTART, Absent.NOT_APPLICABLE


def _term(state: Leadership) -> tuple[int | Absent, int]:
    return state.leader, state.leader_epoch


def _risk(
    states: Sequence[Leadership],
    restarts: Sequence[Restart],
    loads: Sequence[LogLoad],
    previous: int | Absent,
    *,
    by_hw: bool,
    are_stops_verified: bool,
) -> tuple[Risk | None, Restart | None, int | Absent]:
    """Return the risk of the election that the last of the states records, the restart behind it, and where a log ended that had been put back."""
    state = states[-1]
    came_back = [one for one in restarts if unproven_after(one, states, int(str(state.leader)))]
    exchanged = next((one for one in came_back if one.other_disk), None)
    none = Absent.NOT_APPLICABLE
    if exchanged is not None:
        return Risk.OTHER_DISK, exchanged, none
    unclean = next((one for one in came_back if not one.is_clean), None)
    if state.unclean:
        return Risk.UNCLEAN, unclean, none
    if unclean is not None:
        return Risk.UNCLEAN_RESTART, unclean, none
    if by_hw and previous != state.leader:
        return Risk.HIGH_WATERMARK, None, none
    if came_back and not are_stops_verified and len(_named(states)) > 1:
        risk, end = _clean_return(came_back, loads, state.time_ms)
        return risk, None if risk is None else came_back[-1], end
    return None, None, none


def unproven_after(restart: Restart, states: Sequence[Leadership], broker: int) -> bool:
    """Whether a broker led after a restart without having joined the ISR again: nothing shows that its log was still whole.

    Returns:
        False where the restart is older than the first state or younger than the election, or where the broker joined the ISR in between.
    """
    if not is_before(restart, states[-1]) or is_before(restart, states[0], unknown=False):
        return False
    if not restart.other_disk and len(states) > 1 and broker in states[-2].eligible:
        # A controller removes a broker that comes back from an unclean stop from the eligible replicas (KIP-966).
        return False
    for before, state in pairwise(states[:-1]):
        if not is_before(restart, state, unknown=False):
            continue
        joined = isinstance(state.isr, frozenset) and broker in state.isr
        was_in = isinstance(before.isr, frozenset) and broker in before.isr
        if joined and not was_in and state.leader != broker:
            return False
    return True


def is_before(restart: Restart, state: Leadership, *, unknown: bool = True) -> bool:
    """Whether a restart came before a state, by metadata offsets where both have one, else by time; `unknown` where nothing shows their order."""
    if isinstance(restart.recorded_at, int) and isinstance(state.recorded_at, int):
        return restart.recorded_at <= state.recorded_at
    if isinstance(restart.time_ms, int) and isinstance(state.time_ms, int):
        return restart.time_ms <= state.time_ms
    return unknown


def _highest(*epochs: int | Absent) -> int | Absent:
    return max((epoch for epoch in epochs if isinstance(epoch, int)), default=Absent.UNKNOWN)


def _gaps(
    states: Sequence[Leadership],
    facts: ClusterFacts,
    newest_epoch: int | Absent,
    given: frozenset[int],
    keeps_epoch: Callable[[int], bool],
) -> Iterator[Gap]:
    if not states:
        yield Gap(
            GapKind.NO_SOURCE,
            "who led and who was in sync",
            "the metadata log of a controller, or state-change.log and controller.log of every broker",
        )
        return
    by_metadata = isinstance(states[-1].recorded_at, int)
    yield from _before_the_first(states[0], by_metadata=by_metadata)
    yield from _missing_epochs(states, facts, by_metadata=by_metadata)
    yield from _after_the_last(states, facts, newest_epoch, given, by_metadata=by_metadata)
    if by_metadata:
        yield from (Gap(GapKind.METADATA, words, "the whole metadata log") for words in facts.metadata_gaps())
        return
    yield from _unshown_members(states)
    begins = facts.first_line_times()
    silent = sorted(facts.named_brokers() - begins.keys())
    if silent:
        names = ", ".join(map(str, silent))
        yield Gap(GapKind.END, f"what broker {names} logged", f"server.log of broker {names}")
    # The directories of all show that none was elected since.
    is_seen = isinstance(newest_epoch, int) and _named(states) <= given and all(map(keeps_epoch, _named(states)))
    for broker, logs in facts.logs_without_newest().items():
        names = listed(logs)
        yield Gap(
            GapKind.BROKER if is_seen else GapKind.END,
            f"what broker {broker} logged after the rolled files of its {names}",
            f"the newest {names} of broker {broker}",
        )
    yield from _unlogged_restarts(states, begins)


def _before_the_first(state: Leadership, *, by_metadata: bool) -> Iterator[Gap]:
    first = state.leader_epoch
    if first and not by_metadata:
        # Lines begin anywhere.
        yield Gap(GapKind.EPOCHS, f"who led before leader epoch {first}", "the log files of every broker", first)
    elif first and isinstance(state.isr, frozenset):
        # A metadata log begins with the partition, or with a snapshot, which names the leader of that time and none before.
        yield Gap(
            GapKind.BEGINNING,
            f"who led before leader epoch {first}, with which the metadata log begins",
            "older segments of the metadata log",
            first,
        )


def _missing_epochs(states: Sequence[Leadership], facts: ClusterFacts, *, by_metadata: bool) -> Iterator[Gap]:
    for before, state in pairwise(states):
        is_reported = isinstance(before.time_ms, int) and facts.reports_every_leader(before.time_ms)
        if state.leader_epoch > before.leader_epoch + 1 and (by_metadata or not is_reported):
            first, last = before.leader_epoch + 1, state.leader_epoch - 1
            epochs = f"leader epoch {first}" if first == last else f"leader epochs {first} to {last}"
            where = "older segments of the metadata log" if by_metadata else "the log files of every broker"
            yield Gap(GapKind.EPOCHS, f"who led in {epochs}", where, state.leader_epoch)


def _unshown_members(states: Sequence[Leadership]) -> Iterator[Gap]:
    """Yield a gap for each new leader of which no line shows whether it was in sync: brokers do not log what a controller takes out of the ISR.

    With ZooKeeper that raises the leader epoch; a KRaft controller counts it as a partition epoch.
    """
    led: int | Absent = Absent.UNKNOWN
    for at, state in enumerate(states):
        previous, led = led, state.leader if isinstance(state.leader, int) else led
        if not at or state.unclean or state.leader in {previous, Absent.NOT_APPLICABLE, Absent.UNKNOWN}:
            continue
        named = next((i for i in reversed(range(at)) if isinstance(states[i].isr, frozenset)), 0)
        known = states[named]
        # A partition begins with all of its replicas in sync.
        was_in = (
            state.leader in known.isr | known.eligible if isinstance(known.isr, frozenset) else not known.leader_epoch
        )
        is_shown = all(later.is_next(earlier) for earlier, later in pairwise(states[named : at + 1]))
        if not was_in or not is_shown or state.leader_epoch > known.leader_epoch + 1:
            yield Gap(
                GapKind.EPOCHS,
                f"whether broker {state.leader} was in sync when it became leader in leader epoch {state.leader_epoch}",
                "state-change.log and controller.log of every broker, at level TRACE"
                if state.shows_isr_before
                else "the metadata log of a controller",
                state.leader_epoch,
            )


def _after_the_last(
    states: Sequence[Leadership],
    facts: ClusterFacts,
    newest_epoch: int | Absent,
    given: frozenset[int],
    *,
    by_metadata: bool,
) -> Iterator[Gap]:
    if isinstance(newest_epoch, int) and newest_epoch > states[-1].leader_epoch:
        yield Gap(
            GapKind.END,
            f"who led after leader epoch {states[-1].leader_epoch}, though a log is in epoch {newest_epoch}",
            "a newer metadata log" if by_metadata else "later log files",
            newest_epoch,
        )
    elif by_metadata and not facts.is_newest_metadata():
        missing = sorted(_named(states[-1:]) - given)
        if missing:
            names = listed([str(one) for one in missing])
            yield Gap(
                GapKind.END,
                "whether a later leader was elected",
                f"a controller's metadata log, or the directories of {form(len(missing), 'broker')} {names}",
            )


def _unlogged_restarts(states: Sequence[Leadership], begins: Mapping[int, int | Absent]) -> Iterator[Gap]:
    """Yield a gap for each broker that may have restarted since it was named first, though no line of it says so."""
    for broker in sorted(_named(states) & begins.keys()):
        begin = begins[broker]
        named = next(one for one in states if broker in _named([one]))
        if isinstance(begin, Absent):
            yield Gap(
                GapKind.BROKER,
                f"when broker {broker} restarted, whose clock went back while it logged",
                f"an earlier copy of the disks of broker {broker}",
            )
        elif isinstance(named.time_ms, int) and begin > named.time_ms:
            yield Gap(
                GapKind.BROKER,
                f"whether broker {broker} restarted before its log lines begin",
                f"older log files of broker {broker}",
            )
