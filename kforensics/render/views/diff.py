"""What `diff` shows: the lanes and the truncations of each partition that needs attention."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kforensics.case.comparison import QUIET_VERDICTS
from kforensics.commands.comparing import DiffResult
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Input
from kforensics.findings.answers.model import State
from kforensics.findings.concern import records_of
from kforensics.findings.model import Finding
from kforensics.formats.log.records import Record
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.replicas.leader import ExpectedTruncation, LeaderChoice
from kforensics.reconcile.replicas.report import PartitionReport, ReplicaReport, Verdict, WhatIf
from kforensics.render.blocks import (
    GAP,
    Block,
    Column,
    Fact,
    Lane,
    Lanes,
    Lines,
    Prose,
    Section,
    Table,
    Tone,
    item,
)
from kforensics.render.escape import escape_text
from kforensics.render.frame import problem_items
from kforensics.render.view import View
from kforensics.units import Depth, TopicPartition
from kforensics.words import MOST_WORDS, counted, in_short_sentences, joined_by_and, listed

_STATE_WORDS = {
    State.AT_RISK: "AT RISK",
    State.MAYBE_AT_RISK: "maybe at risk",
    State.UNKNOWN: "unknown",
}
"""Words for the states of partitions, where no verdict of a replica says it."""

_WORDS = {
    Verdict.SILENT_DIVERGENCE: "SILENT DIVERGENCE",
    Verdict.WILL_TRUNCATE: "WILL TRUNCATE",
    Verdict.LOST: "LOST",
    Verdict.DIFFERENT_TOPIC: "DIFFERENT TOPIC",
    Verdict.NOT_ASSIGNED: "NOT ASSIGNED",
    Verdict.UNREADABLE: "not compared",
    Verdict.BEHIND: "behind",
    Verdict.CONSISTENT: "consistent",
    Verdict.LEADER: "one replica",
}


_PARTITIONS = [Column(title) for title in ("Partition", "State", "Gravest verdict of a replica")]


def blocks(result: Result[DiffResult], view: View) -> Iterator[Block]:
    """Yield a block for each partition that needs attention, records where they are asked for, and what was not read."""
    compared = replace(result.body, findings=result.findings, problems=result.problems)
    if view.only_findings:
        yield from (item(f"{one.code} {one.severity}: {one.statement}") for one in compared.findings)
    else:
        for one in compared.partitions:
            if one.report is not None:
                yield GAP
                yield from _partition(one.report, one.state, one.findings, steps=view.steps)
                yield from _legend(one.report, compared.inputs)
        if not view.page:
            yield from _loose_findings(compared.findings)
        yield from _closing(compared, view)
    problems = compared.problems
    if view.show_records:
        problems = (*problems, *compared.not_captured)
        yield from _records(compared.dropped(), show_payload=view.show_payload)
    if problems:
        yield GAP
    yield from problem_items(problems, compared.inputs, view)


def _records(
    discarded: Iterable[tuple[TopicPartition, str, Iterable[Record]]], *, show_payload: bool
) -> Iterator[Block]:
    """Yield the records that would be discarded, one a line: offset and key, and the value where payloads were asked for."""
    for partition, owner, records in discarded:
        name = f"{partition}: records that {owner} would discard"
        yield Section(title=name)
        yield Lines(name, (_record(one, show_payload=show_payload) for one in records))


def _record(record: Record, *, show_payload: bool) -> str:
    key = "null" if record.key is None else escape_text(record.key)
    value = ""
    if show_payload:
        value = "  null" if record.value is None else f"  {escape_text(record.value)}"
    return f"  {record.offset}  {key}{value}".rstrip() + "\n"


def _partition(report: PartitionReport, state: State, findings: Sequence[Finding], *, steps: bool) -> Iterator[Block]:
    name = str(report.partition)
    leader = report.leader
    led = "leader not known" if any(one.view.replica.is_live for one in report.replicas) else "no live replica"
    if leader is not None:
        epoch = "" if isinstance(leader.leader_epoch, Absent) else f", epoch {leader.leader_epoch}"
        led = f"leader {_short(leader.view)}{epoch}" if leader.is_known else f"leader {_short(leader.view)}?"
    words = {**_WORDS, Verdict.CONSISTENT: "same ends"} if report.depth is Depth.TAILS else _WORDS
    verdict = (
        words[report.verdict]
        if report.verdict not in QUIET_VERDICTS
        else _STATE_WORDS.get(state, words[report.verdict])
    )
    # It truncates nothing if the directory of the leader was copied first.
    if report.verdict is Verdict.WILL_TRUNCATE and all(
        _needs_no_truncation(one) for one in report.replicas if one.verdict is Verdict.WILL_TRUNCATE
    ):
        verdict = "may truncate"
    if report.is_deleted:
        led, verdict = "no live replica", "TOPIC DELETED"
    yield Section(title=name, aside=led, mark=verdict, level=3)
    if leader is not None and not report.is_deleted:
        yield item(_leader_line(leader))
    below = "leader epochs are the same" if report.not_compared_below else "all hold the same"
    lanes = [_lane(replica, report) for replica in report.replicas]
    yield Lanes(name=name, moments=[("", lanes)], below=below)
    for replica in report.replicas:
        yield from _explained(replica, steps=steps)
    yield from _past_end(report)
    yield from _holders(report)
    yield from _other_leaders(report)
    for one in findings:
        if one.code not in {"KF201", "KF202", "KF203", "KF204", "KF207"}:
            yield item(f"{one.severity}: {one.statement}")


def _leader_line(leader: LeaderChoice) -> str:
    """Why that replica is taken as leader; what depends on a guess is only true if that replica leads."""
    who = leader.view.replica.owner
    if leader.tied_with:
        others = listed([f"broker {broker}" for broker in leader.tied_with])
        first, follows = (
            f"leader not known: {others} could lead as well as {who}",
            f"What follows is true if {who} leads.",
        )
        if len(f"{first} {leader.reason}".split()) < MOST_WORDS - 1:
            return f"{first} ({leader.reason} are equal). {follows}"
        return f"{first}. {leader.reason[:1].upper()}{leader.reason[1:]} are equal. {follows}"
    if leader.source == "inferred":
        words = f"leader not known, what follows is true if {who} leads (guessed: {leader.reason})"
        if len(words.split()) <= MOST_WORDS:
            return words
        return in_short_sentences(f"leader not known, what follows is true if {who} leads. Guessed: {leader.reason}.")
    if leader.source == "option":
        return "leader as given"
    if not leader.is_known:
        words = f"what follows is true if {who} leads ({leader.reason})"
        if len(words.split()) <= MOST_WORDS:
            return words
        return in_short_sentences(f"what follows is true if {who} leads. Shown by {leader.reason}.")
    return f"leader from the {leader.reason}"


def _legend(report: PartitionReport, inputs: Sequence[Input]) -> Iterator[Block]:
    """Yield the paths of inputs whose replicas no broker id names."""
    for replica in report.replicas:
        directory = replica.view.replica
        if isinstance(directory.broker_id, Absent):
            yield Fact(directory.owner, inputs[directory.input].path)


def _lane(replica: ReplicaReport, report: PartitionReport) -> Lane:
    view = replica.view
    directory = view.replica
    name = directory.owner + (f" ({directory.state})" if not directory.is_live else "")
    is_led = report.leader is not None and view is report.leader.view
    if not directory.is_log_known:
        return Lane(name=name, instead=f"not compared{', the leader' if is_led else ''}: its log {directory.lack}")
    if replica.verdict is Verdict.DIFFERENT_TOPIC:
        return Lane(name=name, instead=f"another topic of this name: id {directory.topic_id}")
    recorded = directory.high_watermark
    words = str(recorded.value) if isinstance(recorded, CheckpointValue) else "none"
    words = "unreadable" if recorded is Absent.UNREADABLE else words
    return Lane(
        name=name,
        start=view.content_start_offset,
        end=view.log_end_offset,
        epochs=view.batch_epochs,
        truncated_from=replica.truncation.offset if replica.truncation else None,
        differs_from=replica.divergence.offset
        if replica.divergence and replica.verdict is Verdict.SILENT_DIVERGENCE
        else None,
        watermark=recorded.value if isinstance(recorded, CheckpointValue) else None,
        note=f"HW {words}{'  leader' if is_led and not report.is_deleted else ''}",
        tone=Tone.WARNING if replica.verdict not in QUIET_VERDICTS else Tone.PLAIN,
    )


def _needs_no_truncation(replica: ReplicaReport) -> bool:
    """Whether what a replica would truncate is what its leader may have appended after it was copied, and nothing else."""
    if replica.truncation is None or replica.compared_with is None:
        return False
    return replica.is_tail_of_a_copy and replica.truncation.offset >= replica.compared_with.log_end_offset


def _explained(replica: ReplicaReport, *, steps: bool) -> Iterator[Block]:
    who = replica.view.replica.owner
    if replica.view.replica.state == "future":
        who += "'s future replica"
    expected = replica.truncation
    if expected is not None:
        records = counted(expected.counts.records, "record")
        if expected.counts.markers:
            records += f" and {counted(expected.counts.markers, 'transaction marker')}"
        yield Fact(
            "truncation", f"{who} to {expected.offset}: {records} ({expected.dropped.first}..{expected.dropped.last})"
        )
        if _needs_no_truncation(replica):
            yield Fact("", "unless the leader's directory was copied earlier while it ran")
        for run in expected.runs:
            if run.records or run.markers:
                certainty = {"certain": "committed", "possible": "possibly committed", "no": "not committed"}[
                    run.certainty
                ]
                yield Fact(
                    "",
                    f"{run.records} {certainty} ({run.offsets.first}..{run.offsets.last}): {run.reason}",
                )
        if expected.lost.records < expected.counts.records:
            yield Fact(
                "", f"the leader holds {expected.counts.records - expected.lost.records} of them: they are copied again"
            )
        yield Fact("rule", f"{expected.protocol.name} ({expected.protocol.reason}), {expected.outcome.rule}")
        if not steps and expected.outcome.steps:
            deciding = [s for s in expected.outcome.steps if not isinstance(s.truncate_to, Absent)]
            for step in deciding[-1:]:
                yield Fact("", step.sentence())
    if replica.without_file is not None:
        offset = replica.without_file.offset
        words = (
            "truncates nothing"
            if isinstance(offset, Absent)
            else f"truncates to {offset} ({replica.without_file.rule})"
        )
        yield Fact(
            "no file",
            f"{who} has no usable leader-epoch-checkpoint: epochs are from its batches here; a broker that starts without the file {words}",
        )
    if steps and replica.outcome is not None:
        for number, step in enumerate(replica.outcome.steps, 1):
            yield Fact("steps" if number == 1 else "", f"{number}. {who}: {step.sentence()}")
    if replica.divergence is not None and replica.verdict is Verdict.SILENT_DIVERGENCE:
        yield Fact(
            "differs",
            f"{who} from offset {replica.divergence.offset} on ({replica.divergence.kind}): {replica.divergence.detail}",
        )


def _past_end(report: PartitionReport) -> Iterator[Block]:
    """Yield what brokers recorded as committed past the end of every log, those of one number together."""
    by_value: dict[tuple[int, bool], list[str]] = {}
    for one in report.replicas:
        if one.past_end is not None:
            is_sure = report.is_stopped or one.view.replica.clean_shutdown
            by_value.setdefault((one.past_end.value, is_sure), []).append(one.view.replica.owner)
    for (value, is_sure), owners in by_value.items():
        why = "" if is_sure else ": copied while it ran, or after a power loss"
        who = joined_by_and(owners)
        yield Fact("missing", f"{who} recorded high watermark {value}, past the end of every log{why}")


def _holders(report: PartitionReport) -> Iterator[Block]:
    """Yield the replicas that alone hold records, those that have no log, and those that are not given."""
    for holder in report.unassigned_holders:
        if holder.counts.certain or holder.counts.possible:
            directory = holder.view.replica
            kind = "" if directory.is_live else f"{directory.state} "
            words = f"a {kind}directory of {directory.owner} that is no replica has {counted(holder.counts.records, 'record')} ({holder.offsets.first}..{holder.offsets.last}) found nowhere else, {holder.counts.certain} of them committed"
            yield Fact("leftover", words)
    for holder in report.sole_holders:
        counts = holder.counts
        if not counts.certain and not counts.possible:
            continue
        words = f"{holder.view.replica.owner} alone holds {counted(counts.records, 'record')} ({holder.offsets.first}..{holder.offsets.last}), {counts.certain} committed"
        if holder.is_tail_of_a_copy:
            words += "; others may hold them too, and were copied earlier while they ran, or lost power"
        yield Fact("alone", words)
    for odd in report.odd_ones:
        yield Fact("odd one", f"{odd.view.replica.owner}: {odd.reason}")
    for one in report.emptied:
        should = "should hold it" if one.is_assigned else "may be assigned to it"
        yield Fact("no log", f"broker {one.broker_id} {should}: {one.reason}")
    if report.missing_replicas:
        missing = listed([f"broker {broker}" for broker in report.missing_replicas])
        is_unnamed = any(one.view.replica.is_unnamed for one in report.replicas)
        unless = ", unless it is the one without meta.properties" if is_unnamed else ""
        yield Fact("not given", f"{missing}: assigned to it, and no directory of it is among the inputs{unless}")


def _other_leaders(report: PartitionReport) -> Iterator[Block]:
    interesting = [w for w in report.what_if if w.truncations or w.kept_divergent or any(w.rank)]
    # Where a log is not known, what another leader would lose is not known either.
    if not interesting or report.leader is None or not all(one.view.replica.is_log_known for one in report.replicas):
        return
    ranked = sorted(report.what_if, key=lambda choice: (choice.rank, str(choice.leader.replica.broker_id)))
    for choice in ranked:
        if choice.leader is report.leader.view:
            continue
        parts = [_truncation_words(view, expected) for view, expected in choice.truncations]
        if choice.kept_divergent:
            parts.append(f"{counted(choice.kept_divergent, 'replica')} would keep other content")
        yield Fact(
            "if led by",
            f"{_short(choice.leader)}{' (empty)' if choice.is_emptied else ''}: {'; '.join(parts) or 'nothing is truncated'}",
        )
    best, worst = ranked[0], ranked[-1]
    if worst.rank[:2] == (0, 0):
        return
    words = ", then ".join(_choice(one, is_first=one is best) for one in ranked)
    if best.rank == worst.rank:
        words = f"every leader loses the same: {records_of(best.lost_certain, best.lost_possible)}"
    yield Fact("best leader", words)


def _choice(one: WhatIf, *, is_first: bool) -> str:
    lost = f"{one.lost_certain:,}{' committed' if is_first else ''}"
    if one.lost_possible:
        lost += f" and {one.lost_possible:,} possibly committed"
    if not one.lost_certain and not one.lost_possible:
        lost = "nothing"
    return f"{_short(one.leader)} ({'loses ' if is_first else ''}{lost})"


def _truncation_words(view: LoadedLog, expected: ExpectedTruncation) -> str:
    counts = expected.lost if expected.lost.records else expected.counts
    certain = f" ({counts.certain} committed)" if counts.certain else ""
    is_markers = expected.counts.markers and not expected.counts.records
    what = (
        counted(expected.counts.markers, "transaction marker")
        if is_markers
        else counted(expected.counts.records, "record")
    )
    return f"{view.replica.owner} would truncate to {expected.offset}: {what}{certain}"


def _loose_findings(findings: Sequence[Finding]) -> Iterator[Block]:
    loose = [f for f in findings if isinstance(f.topic, Absent)]
    if loose:
        yield GAP
    for one in loose:
        yield Prose(f"{one.severity}: {one.statement}. {one.advice}", depth=1)


def _closing(result: DiffResult, view: View) -> Iterator[Block]:
    quiet = [one for one in result.partitions if one.report is None]
    if view.page:
        yield Section(title="All partitions")
        rows = [(str(one.partition), one.state.value, one.verdict.value) for one in result.partitions]
        yield Table(name="Every partition, with its state", columns=_PARTITIONS, rows=rows)
    if not quiet or view.verbose:
        return
    count = Counter(one.state for one in quiet)
    parts = [
        f"{count[state]} {words}"
        for state, words in (
            (State.AGREE, "agree"),
            (State.SAME_ENDS, "with the same ends"),
            (State.BEHIND, "with a replica that is behind"),
            (State.UNKNOWN, "unknown"),
        )
        if count[state]
    ]
    yield GAP
    yield Prose(
        f"No block for {counted(len(quiet), 'partition')}: {', '.join(parts)} (-v lists them).", tone=Tone.QUIET
    )


def _short(view: LoadedLog) -> str:
    """Return the broker's id, or the input where no broker is known."""
    broker_id = view.replica.broker_id
    return view.replica.owner if isinstance(broker_id, Absent) else str(broker_id)
