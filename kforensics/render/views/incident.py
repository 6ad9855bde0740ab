"""An incident on a page: what it is about, what was lost, what its evidence leaves open, and the logs of its partitions as lanes, by snapshot and over time."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from kforensics.commands.explanation import Explanation
from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.model import Citation, Input
from kforensics.findings.rules.causes import CAUSES, root_cause, root_cause_sentence
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.log_copies import LogOutline
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.incident.model import LeaderBasis, PartitionIncident
from kforensics.reconcile.observed import leadership
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.render.blocks import (
    Block,
    Cell,
    Column,
    Course,
    Election,
    Facts,
    FactsForm,
    Lane,
    Lanes,
    Look,
    Moment,
    OverTime,
    Prose,
    Section,
    Stretch,
    Table,
    Term,
    Tone,
)
from kforensics.render.escape import shorten
from kforensics.render.events import GRAVE, sentence
from kforensics.render.frame import References, node_name
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import Count, counted, form, listed, time_of_day, utc_text

MOST_LANES = 120
MOST_TERMS = 60
"""Leader epochs that are listed below a picture."""
MOST_LABEL = 60
"""The most characters of a snapshot's name in a picture."""


def figure_of(incident: PartitionIncident, inputs: Sequence[Input], references: References) -> Iterator[Block]:
    """Yield every log of a partition, snapshot by snapshot, and what is left out."""
    kept = sorted(incident.logs, key=lambda log: (log.is_final, log.rank), reverse=True)[:MOST_LANES]
    logs = [log for log in incident.logs if any(log is one for one in kept)]
    elections = _elections(incident)
    moments = []
    for rank in sorted({log.rank for log in logs}):
        there = [log for log in logs if log.rank == rank]
        moments.append((_snapshot_name(there, inputs), [_lane(log, incident, elections, inputs) for log in there]))
    terms = _terms(elections, logs, references)
    yield Lanes(name=str(incident.partition), moments=moments, terms=terms[:MOST_TERMS])
    if len(incident.logs) > len(logs):
        yield Prose(f"{len(incident.logs) - len(logs)} older copies are not drawn.", Tone.QUIET)
    if len(terms) > MOST_TERMS:
        yield Prose(f"{len(terms) - MOST_TERMS} later leader epochs are not listed.", Tone.QUIET)


def _elections(incident: PartitionIncident) -> dict[int, leadership.Election]:
    """Return the election of each leader epoch; a leader that only came back keeps its epoch."""
    account = incident.account
    found: dict[int, leadership.Election] = {}
    for one in account.elections if account is not None else ():
        if one.before is not one.state:
            found.setdefault(one.state.leader_epoch, one)
    return found


def _terms(
    elections: Mapping[int, leadership.Election], logs: Sequence[LogOutline], references: References
) -> list[Term]:
    epochs = {entry.leader_epoch for log in logs for entry in log.epochs if entry.leader_epoch >= 0}
    terms = []
    for epoch in sorted(epochs | elections.keys()):
        election = elections.get(epoch)
        time_ms = election.state.time_ms if election is not None else Absent.UNKNOWN
        terms.append(
            Term(
                epoch=epoch,
                time=utc_text(time_ms) if isinstance(time_ms, int) else "",
                words=_election_words(election, is_on_disk=epoch in epochs),
                is_unclean=election is not None and election.state.unclean,
                references=() if election is None else references.of((election.state.citation,)),
            )
        )
    return terms


def _election_words(election: leadership.Election | None, *, is_on_disk: bool) -> str:
    if election is None:
        return "no input shows who led"
    state, before = election.state, election.before
    how = " by unclean election" if state.unclean else ""
    words = f"broker {state.leader} becomes leader{how}"
    if state.unclean and before is not None and isinstance(before.isr, frozenset):
        words += f", the ISR was {sorted(before.isr)}" if before.isr else ", the ISR was empty"
    return words if is_on_disk else f"{words}; no log given has records of this epoch"


def _snapshot_name(logs: Sequence[LogOutline], inputs: Sequence[Input]) -> str:
    if logs[0].is_final:
        return "Now"
    paths = sorted({inputs[log.input].path.rstrip("/") for log in logs if log.input < len(inputs)})
    parents = {path.rpartition("/")[0] for path in paths}
    is_one_snapshot = len(paths) > 1 and len(parents) == 1
    names = (
        [parents.pop().rpartition("/")[2]] if is_one_snapshot else ["/".join(path.split("/")[-2:]) for path in paths]
    )
    return f"Before: {shorten(', '.join(names), MOST_LABEL)}"


def _leader_mark(incident: PartitionIncident) -> str:
    if incident.is_leader_known:
        return "leader"
    return "leader, guessed" if incident.leader_basis is LeaderBasis.LOG else "leader?"


def _lane(
    log: LogOutline, incident: PartitionIncident, elections: Mapping[int, leadership.Election], inputs: Sequence[Input]
) -> Lane:
    owner = node_name(log.broker_id, inputs) if isinstance(log.broker_id, int) else "unknown broker"
    extra = "" if log.state == "live" else log.state
    if log.is_remnant:
        extra = "before its start" if log.is_unstarted else "deleted files"
    if log.is_final and log.is_live and log.broker_id == incident.leader:
        extra = _leader_mark(incident)
    lost = [loss for loss in incident.losses if _holds(log, loss)]
    count = sum(loss.records for loss in lost)
    watermark = log.high_watermark if isinstance(log.high_watermark, int) else None
    checkpointed = f"HW {watermark}" if watermark is not None else ""
    parts = (f"end {log.log_end_offset}", checkpointed, f"leader lacks {count:,}" if count else "")
    return Lane(
        name=f"{owner} ({extra})" if extra else owner,
        start=log.log_start_offset,
        end=log.log_end_offset,
        epochs=log.epochs,
        note=", ".join(part for part in parts if part),
        lost=tuple((loss.offsets, loss.was_committed) for loss in lost),
        watermark=watermark,
        elections=tuple(
            Election(
                offset=entry.start_offset,
                is_unclean=elections[entry.leader_epoch].state.unclean,
                time=_time_of(elections[entry.leader_epoch], log),
            )
            for entry in log.epochs
            if entry.leader_epoch in elections
        ),
    )


def _time_of(election: leadership.Election, log: LogOutline) -> str:
    time_ms = election.state.time_ms
    if election.state.leader != log.broker_id or not isinstance(time_ms, int):
        return ""
    return time_of_day(time_ms).partition(".")[0]


def _holds(log: LogOutline, loss: Loss) -> bool:
    return (
        any(holder.input == log.input and holder.path == log.path for holder in loss.held_by)
        and loss.offsets.first < log.log_end_offset
        and loss.offsets.last >= log.log_start_offset
    )


_LEGEND = (
    (Look.LEADS, "leads, by the record"),
    (Look.FOLLOWS, "in sync, by the record"),
    (Look.BEHIND, "not in sync"),
    (Look.AWAY, "stopped or fenced"),
)
_ENDS = {
    EventKind.BROKER_FENCED: "fenced",
    EventKind.BROKER_STOP: "stopped",
    EventKind.BROKER_HALTED: "halted",
    EventKind.FATAL_FAULT: "ended",
    EventKind.START_FAILED: "did not start",
}
"""What a broker is from an event on, until it is back."""
_BACK = frozenset({EventKind.BROKER_UNFENCED, EventKind.BROKER_START})
_MARKED = {*_ENDS, EventKind.RECOVERY, EventKind.LOG_DIR_FAILED, EventKind.BROKER_LOG_DIRS}
_LEAST_MS = 2_000
"""What is drawn at least before the first and after the last event."""
_MOST_BEFORE = 6
"""Events before the first grave one that are drawn."""


def over_time(
    incident: PartitionIncident, timeline: Sequence[TimelineEntry], references: References
) -> Iterator[Block]:
    """Yield the lanes over time of a partition, a lane for each broker: who led, was in sync and was there, and what happened; none where no time is known.

    They begin before the first event after the partition was created, and end after the last.

    Args:
        timeline: of the cluster, in the order of time.
    """
    states = [one for one in incident.leaderships if isinstance(one.time_ms, int)]
    brokers = sorted(incident.account.replicas if incident.account is not None else _named(states))
    ends = [
        (entry.time_ms, entry.broker_id, _ENDS.get(entry.kind, ""))
        for entry in timeline
        if isinstance(entry.time_ms, int)
        and entry.broker_id in brokers
        and (entry.kind in _ENDS or entry.kind in _BACK)
    ]
    every = {broker: _moments(broker, incident, timeline, references) for broker in brokers}
    told = sorted((one.time_ms, one.is_grave) for some in every.values() for one in some)
    if not told or not states:
        return
    first, last = _zoomed(told, [_time(one) for one in states[1:]])
    courses = []
    for broker in brokers:
        away = [(time, words) for time, of, words in ends if of == broker]
        moments = [one for one in every[broker] if first <= one.time_ms <= last]
        stretches = _stretches(broker, states, away, first, last)
        courses.append(Course(name=f"broker {broker}", stretches=stretches, moments=moments))
    yield OverTime(name=str(incident.partition), courses=courses, legend=_LEGEND)
    hidden = sum(not first <= time <= last for time, _ in told)
    if hidden:
        yield Prose(
            f"{counted(hidden, 'event')} before or after {form(hidden, 'is', 'are')} not drawn: the timeline lists them.",
            Tone.QUIET,
        )


def _zoomed(told: Sequence[tuple[int, bool]], changes: Sequence[int]) -> tuple[int, int]:
    """Return the span of time around what was grave, with the last events and the last change of leader or ISR before it."""
    grave = [time for time, is_grave in told if is_grave] or [time for time, _ in told]
    before = [time for time, _ in told if time < grave[0]][-_MOST_BEFORE:]
    begin = (before or grave)[0]
    begin = max([one for one in changes if one <= begin], default=begin)
    room = max((grave[-1] - begin) // 10, _LEAST_MS)
    return begin - room, grave[-1] + room


def _time(state: Leadership) -> int:
    return state.time_ms if isinstance(state.time_ms, int) else 0


def _named(states: Iterable[Leadership]) -> set[int]:
    found = {one.leader for one in states if isinstance(one.leader, int)}
    return found.union(*(one.isr for one in states if isinstance(one.isr, frozenset)))


def _moments(
    broker: int, incident: PartitionIncident, timeline: Sequence[TimelineEntry], references: References
) -> list[Moment]:
    """Return what happened to a broker's replica after its partition was created: elections that may have lost, stops, other disks, truncations."""
    begin = _time(incident.leaderships[0]) if incident.leaderships else 0
    found: list[tuple[int | Absent, str, bool, tuple[Citation, ...]]] = [
        (one.state.time_ms, _election_words(one, is_on_disk=True), one.risk is not None, (one.state.citation,))
        for one in _elections(incident).values()
        if one.state.leader == broker and one.before is not None
    ]
    found += [
        (time, "registers with another disk than before", True, cited(broker, time, timeline))
        for time, of in other_disks([incident])
        if of == broker
    ]
    found += [
        (one.time_ms, f"truncates {one.from_offset} → {one.to_offset}", True, one.citations)
        for one in incident.truncations
        if one.broker_id == broker
    ]
    found += [
        (one.time_ms, sentence(one, ""), one.kind in GRAVE, one.citations)
        for one in timeline
        if one.kind in _MARKED and one.broker_id == broker
    ]
    moments = [
        Moment(time_ms=time, words=words, is_grave=grave, references=references.of(sources, most=2))
        for time, words, grave, sources in found
        if isinstance(time, int) and time > begin
    ]
    return sorted(moments, key=lambda one: one.time_ms)


def other_disks(incidents: Iterable[PartitionIncident]) -> list[tuple[int, int]]:
    """Return when which brokers of partitions came back with another disk."""
    accounts = [one.account for one in incidents if one.account is not None]
    return sorted(
        {
            (one.time_ms, broker)
            for account in accounts
            for broker, restarts in account.restarts.items()
            for one in restarts
            if one.other_disk and isinstance(one.time_ms, int)
        }
    )


def cited(broker: int, time_ms: int, timeline: Sequence[TimelineEntry]) -> tuple[Citation, ...]:
    """Return what shows the registration of a broker at about a moment."""
    near = (
        one.citations
        for one in timeline
        if one.kind == EventKind.BROKER_REGISTERED
        and one.broker_id == broker
        and isinstance(one.time_ms, int)
        and abs(one.time_ms - time_ms) <= _LEAST_MS
    )
    return next(near, ())


def _stretches(
    broker: int, states: Sequence[Leadership], away: Sequence[tuple[int, str]], first: int, last: int
) -> list[Stretch]:
    """Return what a broker was to a partition from moment to moment, within a span of time; nothing before the first state on record."""
    times = sorted({*(_time(one) for one in states), *(time for time, _ in away)} | {first})
    found: list[Stretch] = []
    for time, until in pairwise([*times, last]):
        state = next((one for one in reversed(states) if _time(one) <= time), None)
        if state is None or until <= first or time >= last:
            continue
        at, gone = next((one for one in reversed(away) if one[0] <= time), (0, ""))
        if state.leader == broker and _time(state) > at:
            gone = ""  # only a broker that is there is elected
        one = _stretch(broker, state, gone, max(time, first), min(until, last))
        if found and (found[-1].words, found[-1].end_ms) == (one.words, one.begin_ms):
            one = replace(one, begin_ms=found.pop().begin_ms)
        found.append(one)
    return found


def _stretch(broker: int, state: Leadership, gone: str, begin_ms: int, end_ms: int) -> Stretch:
    in_sync = isinstance(state.isr, frozenset) and broker in state.isr
    if broker == state.leader and not gone:
        look, words, label = Look.LEADS, f"leads in epoch {state.leader_epoch}", f"e{state.leader_epoch}"
    elif gone:
        look, label = Look.AWAY, gone
        words = f"{gone}, still in the ISR" if in_sync else gone
    elif isinstance(state.isr, Absent):
        look, words, label = Look.BEHIND, "the ISR is unknown", ""
    else:
        look, words, label = (Look.FOLLOWS, "in sync", "") if in_sync else (Look.BEHIND, "not in sync", "")
    return Stretch(begin_ms=begin_ms, end_ms=end_ms, words=words, look=look, label=label)


MOST_NAMED = 12
_WITH_DIRECTORY = frozenset({"broker", "combined", "snapshot-before"})


def identified(result: Explanation) -> Facts:
    """Return what a page is about; what no input shows is said to be unknown."""
    rows = (
        ("Cluster", _clusters(result)),
        ("Kafka", _versions(result)),
        ("Brokers", _brokers(result)),
        ("Events", _window(result)),
    )
    return Facts(
        name="What this page is about",
        form=FactsForm.IDENTITY,
        rows=[(term, words, Tone.PLAIN) for term, words in rows],
    )


def _clusters(result: Explanation) -> str:
    ids = sorted({one.cluster_id for one in result.inputs if not isinstance(one.cluster_id, Absent)})
    return listed(ids) if ids else "unknown: no input names its id"


def _versions(result: Explanation) -> str:
    nodes: dict[str, list[int]] = defaultdict(list)
    for node, version in result.versions:
        nodes[version].append(node)
    words = [f"{version} ({_nodes(of)})" for version, of in sorted(nodes.items())]
    if words:
        return "; ".join(words)
    if not isinstance(result.least_version, Absent):
        return f"{result.least_version} or later (metadata.version)"
    hints = sorted({one.kafka_version_hint for one in result.inputs if not isinstance(one.kafka_version_hint, Absent)})
    return "; ".join(hints) if hints else "unknown: no input names a version"


def _brokers(result: Explanation) -> str:
    controllers = {one.broker_id for one in result.inputs if one.kind == "controller"}
    given = {
        one.broker_id
        for one in result.inputs
        if one.kind in _WITH_DIRECTORY and isinstance(one.broker_id, int) and one.broker_id not in controllers
    }
    missing = {broker for incident in result.incidents for broker in incident.missing_replicas} - given
    words = _ids(given) if given else "no directory of a broker is given"
    return f"{words}; not given: {_ids(missing)}" if missing else words


def _window(result: Explanation) -> str:
    times = [entry.time_ms for entry in result.timeline if isinstance(entry.time_ms, int)]
    if not times:
        return "no input names a time"
    return f"{utc_text(min(times))} to {utc_text(max(times))}"


def _nodes(ids: Iterable[int | Absent]) -> str:
    chosen = sorted(one for one in ids if isinstance(one, int))
    return f"{form(len(chosen), 'node')} {_ids(chosen)}" if chosen else counted(0, "node")


def _ids(ids: Iterable[int]) -> str:
    return listed([str(one) for one in sorted(ids)], most=MOST_NAMED)


def unknowns(result: Explanation) -> list[str]:
    """Return a sentence for each question that the inputs do not answer."""
    incidents = [incident for incident in result.incidents if incident.partition.topic not in METADATA_TOPICS]
    losses = [loss for incident in incidents for loss in incident.losses]
    truncations = [truncation for incident in incidents for truncation in incident.truncations]
    open_losses = [loss for loss in losses if loss.was_committed == "possible"]
    sentences = []
    if open_losses:
        records = counted(sum(loss.records for loss in open_losses), "record")
        sentences.append(f"Whether {records} that the final leaders do not hold had been committed.")
    logged_only = [loss for loss in losses if not loss.held_by]
    if logged_only:
        sentences.append(
            f"The content of {counted(sum(loss.records for loss in logged_only), 'record')} that only log lines show: no copy is among the inputs."
        )
    causeless = [truncation for truncation in truncations if truncation.cause.name is CauseName.UNKNOWN]
    if causeless:
        names = ", ".join(sorted({str(truncation.topic_partition) for truncation in causeless})[:4])
        sentences.append(f"Why {counted(len(causeless), 'truncation')} happened ({names}).")
    unsure = [loss for loss in losses if loss.cause is CauseName.UNKNOWN]
    if unsure:
        names = ", ".join(sorted({str(loss.topic_partition) for loss in unsure})[:4])
        sentences.append(f"What took the records of {counted(len(unsure), 'run')} in the ledger ({names}).")
    return sentences


MOST_SOURCES = 8
"""Citations of one cause."""
MOST_OVER_TIME = 12
"""Partitions that are drawn over time where they are not drawn otherwise."""

_GRADES = ("certain", "possible", "no")
_COUNTS = tuple(Column(title, is_number=True) for title in ("Committed", "Possibly committed", "Not committed"))


def by_topic(incidents: Sequence[PartitionIncident]) -> Iterator[Block]:
    """Yield the records of each topic that the leaders do not hold, those at risk counted alike, as bars of one scale."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for loss in _losses(incidents):
        counts[loss.topic_partition.topic][loss.was_committed] += loss.records
    rows = [(topic, of) for topic, of in counts.items() if of.total()]
    if not rows:
        return
    least = {one.partition.topic for one in incidents if one.counts_at_least}
    widest = max(of.total() for _, of in rows)
    yield Section(
        title="Losses by topic",
        anchor="by-topic",
        lead="Records that the leaders do not hold; a replica in use may still hold some of them, then they are at risk.",
    )
    yield Table(
        name="Losses by topic",
        columns=(Column("Topic"), *_COUNTS, Column("In proportion")),
        is_ledger=True,
        rows=[
            (
                Cell(text=topic, below="at least: more may be lost" if topic in least else ""),
                *(of[grade] for grade in _GRADES),
                Cell(shares=tuple((of[grade] / widest, grade) for grade in _GRADES if of[grade])),
            )
            for topic, of in sorted(rows, key=lambda row: [-row[1][grade] for grade in _GRADES])
        ],
    )


def by_cause(
    incidents: Sequence[PartitionIncident], references: References, anchors: Mapping[TopicPartition, str]
) -> Iterator[Block]:
    """Yield a card for each cause of losses, that of most records first: how it came to pass, and the partitions that it took records of, linked to their sections."""
    causes: dict[CauseName, list[Loss]] = defaultdict(list)
    for loss in _losses(incidents):
        causes[_cause_of(loss)].append(loss)
    if not causes:
        return
    yield Section(title="Causes", anchor="causes", lead="What took the records, as far as it is proven or likely.")
    for name, losses in sorted(causes.items(), key=lambda one: -sum(loss.records for loss in one[1])):
        title, of = CAUSES[name].name, {loss.topic_partition for loss in losses}
        some = [
            replace(one, losses=tuple(loss for loss in one.losses if _cause_of(loss) is name))
            for one in incidents
            if one.partition in of
        ]
        records = sum(loss.records for loss in losses)
        yield Section(
            title=f"{title[:1].upper()}{title[1:]}",
            aside=f"{Count(records, any(one.counts_at_least for one in some))} {form(records, 'record')}",
            level=3,
            anchor=f"cause-{name.value}",
        )
        cause = root_cause(some)
        if cause is not None:
            yield Prose(root_cause_sentence(cause), references=references.of(cause.citations, most=MOST_SOURCES))
        yield Table(
            name=f"Partitions: {title}",
            columns=(Column("Partition"), Column("Offsets"), *_COUNTS),
            is_ledger=True,
            rows=[_partition(one, anchors) for one in sorted(some, key=lambda one: one.partition)],
        )


def _cause_of(loss: Loss) -> CauseName:
    return CauseName.UNKNOWN if loss.confidence == "possible" else loss.cause


def _partition(incident: PartitionIncident, anchors: Mapping[TopicPartition, str]) -> tuple[Cell | str | int, ...]:
    losses = incident.losses
    first, last = min(loss.offsets.first for loss in losses), max(loss.offsets.last for loss in losses)
    counts = (sum(loss.records for loss in losses if loss.was_committed == grade) for grade in _GRADES)
    name = Cell(text=str(incident.partition), link=anchors.get(incident.partition, ""))
    return (name, f"{first}..{last}", *counts)


def _losses(incidents: Sequence[PartitionIncident]) -> list[Loss]:
    return [one for each in incidents if each.partition.topic not in METADATA_TOPICS for one in each.losses]


def worst_over_time(body: Explanation, references: References) -> Iterator[Block]:
    """Yield the lanes over time of the partitions that lost most, or of which logs were truncated."""
    eventful = [
        one for one in body.incidents if (one.losses or one.truncations) and one.partition.topic not in METADATA_TOPICS
    ]
    eventful.sort(key=lambda one: -sum(loss.records for loss in one.losses if loss.was_committed != "no"))
    drawn = [(one, [*over_time(one, body.timeline, references)]) for one in eventful[:MOST_OVER_TIME]]
    if any(lanes for _, lanes in drawn):
        yield Section(title="Partitions over time", anchor="over-time")
    for one, lanes in drawn:
        if lanes:
            yield Section(title=str(one.partition), level=3)
            yield from lanes
    if len(eventful) > len(drawn):
        more = counted(len(eventful) - len(drawn), "more partition")
        yield Prose(f"{more}: the page of `kforensics explain` draws each.", Tone.QUIET)
