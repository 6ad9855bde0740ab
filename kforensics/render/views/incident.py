"""An incident on a page: what it is about, what its evidence leaves open, and the logs of its partitions as lanes, snapshot by snapshot."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kforensics.commands.explanation import Explanation
from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.log_copies import LogOutline
from kforensics.reconcile.incident.model import LeaderBasis, LossEntry, PartitionIncident
from kforensics.reconcile.observed import leadership
from kforensics.render.blocks import Block, Election, Lane, Lanes, Prose, Term, Tone
from kforensics.render.escape import shorten
from kforensics.render.frame import References
from kforensics.units import METADATA_TOPICS
from kforensics.words import counted, form, listed, time_of_day, utc_text

MOST_LANES = 120
MOST_TERMS = 60
"""Leader epochs that are listed below a picture."""
MOST_LABEL = 60
"""The most characters of a snapshot's name in a picture."""


def figure_of(incident: PartitionIncident, inputs: Sequence[Input], references: References) -> Iterator[Block]:
    """Yield every log of a partition, snapshot by snapshot, and what is left out."""
    logs = _within(incident.logs)
    elections = _elections(incident)
    moments = []
    for rank in sorted({log.rank for log in logs}):
        there = [log for log in logs if log.rank == rank]
        moments.append((_snapshot_name(there, inputs), [_lane(log, incident, elections) for log in there]))
    terms = _terms(elections, logs, references)
    yield Lanes(name=str(incident.partition), moments=moments, terms=terms[:MOST_TERMS])
    if len(incident.logs) > len(logs):
        yield Prose(f"{len(incident.logs) - len(logs)} older copies are not drawn.", Tone.QUIET)
    if len(terms) > MOST_TERMS:
        yield Prose(f"{len(terms) - MOST_TERMS} later leader epochs are not listed.", Tone.QUIET)


def _within(logs: Sequence[LogOutline]) -> list[LogOutline]:
    """Return the logs that are drawn: those of now first, then the newest snapshots."""
    kept = sorted(logs, key=lambda log: (log.is_final, log.rank), reverse=True)[:MOST_LANES]
    chosen = set(map(id, kept))
    return [log for log in logs if id(log) in chosen]


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


def _lane(log: LogOutline, incident: PartitionIncident, elections: Mapping[int, leadership.Election]) -> Lane:
    owner = f"broker {log.broker_id}" if isinstance(log.broker_id, int) else "unknown broker"
    extra = "deleted files" if log.is_remnant else "" if log.state == "live" else log.state
    if log.is_final and not log.is_remnant and log.state == "live" and log.broker_id == incident.leader:
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
    """Return the time of day of an election, on the log of whom it elected."""
    time_ms = election.state.time_ms
    if election.state.leader != log.broker_id or not isinstance(time_ms, int):
        return ""
    return time_of_day(time_ms).partition(".")[0]


def _holds(log: LogOutline, loss: LossEntry) -> bool:
    return (
        any(holder.input == log.input and holder.path == log.path for holder in loss.held_by)
        and loss.offsets.first < log.log_end_offset
        and loss.offsets.last >= log.log_start_offset
    )


MOST_NAMED = 12
_WITH_DIRECTORY = frozenset({"broker", "combined", "snapshot-before"})


def identity_of(result: Explanation) -> list[tuple[str, str]]:
    """Return the terms and what they are of this incident; what no input shows is said to be unknown."""
    return [
        ("Cluster", _clusters(result)),
        ("Kafka", _versions(result)),
        ("Brokers", _brokers(result)),
        ("Events", _window(result)),
    ]


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
