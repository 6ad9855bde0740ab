"""What `predict` shows: each start, then the logs that change, then the ways out of a node."""

from collections.abc import Iterator

from kforensics.commands.predict import Prediction
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.discovery.partition_dirs import LOGS_LEFT_OUT
from kforensics.evidence.model import Input
from kforensics.findings.answers.predict_cluster import node_words
from kforensics.protocol.loading.node import Fate
from kforensics.reconcile.logs.predicted_load import (
    ChangeKind,
    DueSegments,
    LogAtStart,
    PredictedLog,
    PredictedStart,
    StartOrder,
    VirtualChange,
    WayOut,
    committed_words,
)
from kforensics.render.blocks import GAP, Block, Chain, Prose, Section, Tone, item
from kforensics.render.frame import problem_items, who
from kforensics.render.view import View
from kforensics.words import byte_count, counted, form, joined_by_and, listed, utc_words

MOST_LOGS = 20
"""Changed logs of a start that are shown without -v."""
MOST_WAYS = 12
"""Ways out of a node that are shown without -v."""
WITHOUT_PATHS = {
    ChangeKind.MARKER_THERE: "a clean-shutdown marker in every log directory",
    ChangeKind.SPACE_FREED: "space freed first",
    ChangeKind.RETENTION_OFF: "retention set to none first",
}
FATES = {
    Fate.STRAY: "renamed to -stray",
    Fate.DELETED: "deleted 60 s later",
    Fate.PROMOTED: "becomes the partition's log",
    Fate.EXITS: "ends the start",
}
SOURCES = {
    "given": "as given",
    "server-log": "which the server log names",
    "metadata-log": "as the node registered last",
    "assumed": "which is assumed",
}
"""How a version is known."""
RESULTS = {"starts": "starts", "exits": "does not start", "dir-offline": "starts, a log directory goes offline"}


def blocks(result: Result[Prediction], view: View) -> Iterator[Block]:
    """Yield each start, and the logs that change; -v lists the others too, and every file."""
    yield GAP
    yield Prose(f"Kafka {result.body.kafka}, {SOURCES[result.body.kafka_source]}")
    if view.page and result.body.order is not None:
        yield from _order(result.body.order)
    for start in result.body.starts:
        yield GAP
        yield from _start(result, start, view)
    yield from _ways_out(result, view)
    yield from problem_items(result.problems, result.inputs, view)


def _order(order: StartOrder) -> Iterator[Block]:
    """Yield the order in which the brokers start, and what is discarded where each leads all that it holds."""
    links: list[tuple[str, str, Tone]] = []
    for one in order.firsts:
        lost = (
            f"{one.certain:,} committed and {one.possible:,} possibly committed"
            if one.possible
            else f"{one.certain:,} committed"
        )
        words = f"leading all that it holds, it makes others discard {lost} records"
        if not one.certain and not one.possible:
            words = "leading all that it holds, it makes others discard nothing"
        if one.broker_id in order.wait_for:
            words += "; be sure that it is there before anything is elected"
        links.append(
            (
                f"broker {one.broker_id}",
                words,
                Tone.BAD if one.certain else Tone.WARNING if one.possible else Tone.PLAIN,
            )
        )
    yield Section(title="Order of starts", anchor="order", lead="Controllers first, where they are nodes of their own.")
    yield Chain("Order of starts", links)
    if order.missing:
        yield Prose(f"Not among the inputs: {joined_by_and(f'broker {one}' for one in order.missing)}.", Tone.WARNING)


def _start(result: Result[Prediction], start: PredictedStart, view: View) -> Iterator[Block]:
    yield Section(title=_start_line(start, result.inputs[start.input]), level=3)
    if start.reason:
        yield Prose(start.reason, depth=1)
    logs = [log for log in result.body.logs if (log.node, log.start) == (start.input, start.number)]
    yield from _metadata(result.body, start, result.inputs)
    if not start.loads_logs:
        yield Prose(f"{counted(len(logs), 'log')} not loaded, and not changed", tone=Tone.QUIET, depth=1)
        return
    if start.reason == LOGS_LEFT_OUT:
        return
    shown = [log for log in logs if view.verbose or log.is_changed or log.outcome != "loads"]
    shown.sort(key=_gravity)
    most = view.most(MOST_LOGS)
    for log in shown[:most]:
        yield from _log(log, result.inputs, with_files=view.verbose or view.page)
    if len(shown) > most:
        yield Prose(f"and {len(shown) - most} more (-v lists them)", depth=1)
    quiet = len(logs) - len(shown)
    if quiet:
        yield Prose(f"{counted(quiet, 'log')} loaded as they are", tone=Tone.QUIET, depth=1)


def _ways_out(result: Result[Prediction], view: View) -> Iterator[Block]:
    """Yield the ways out of each node, the best first; each says what it assumes."""
    for node in dict.fromkeys(way.node for way in result.body.ways_out):
        ways = [way for way in result.body.ways_out if way.node == node]
        if not view.verbose:
            as_it_is = next((_comes_to(way) for way in ways if not way.changes), "")
            ways = [way for way in ways if not way.changes or _comes_to(way) != as_it_is]
        yield GAP
        yield Section(title=f"ways out of {node_words(result.inputs[node])}", level=3)
        for rank, way in enumerate(ways[: view.most(MOST_WAYS)], 1):
            words = " and ".join(_change(change) for change in way.changes) or "as it is"
            yield item(f"{rank} {words}", hang=2)
            yield Prose(_comes_to(way), depth=3)
            yield Prose(f"assumes {'; '.join(way.assumed)}", tone=Tone.QUIET, depth=3)
        if not view.verbose and not view.page:
            yield Prose("-v lists all, those too that change nothing", tone=Tone.QUIET, depth=1)


def _change(change: VirtualChange) -> str:
    if change.kind is ChangeKind.OTHER_VERSION:
        return f"Kafka {change.value}"
    if change.kind in WITHOUT_PATHS:
        return WITHOUT_PATHS[change.kind]
    return f"{', '.join(path for path in change.paths)} moved away"


def _comes_to(way: WayOut) -> str:
    if isinstance(way.result, Absent):
        return f"unknown: {way.reason}"
    parts = [RESULTS[way.result.value] + ("" if isinstance(way.exception, Absent) else f" ({way.exception})")]
    if way.start_count > 1:
        parts.append(f"after {way.start_count} starts")
    lost = f"{counted(way.records, 'record')} lost"
    parts.append(
        f"{lost} ({committed_words(way.certain, way.records)}, {way.only_here} on no other replica given)"
        if way.records
        else "loading discards no record"
    )
    parts += [
        words
        for count, words in (
            (way.holes, counted(way.holes, "hole")),
            (way.epochs_wrong, f"epochs of {counted(way.epochs_wrong, 'log')} wrong"),
            (
                way.transactions_forgotten,
                f"open transactions of {counted(way.transactions_forgotten, 'log')} forgotten",
            ),
            (way.bytes_due, f"retention deletes {byte_count(way.bytes_due)}"),
        )
        if count
    ]
    parts.append(f"{byte_count(way.bytes_scanned)} scanned")
    return ", ".join(parts)


def _gravity(log: PredictedLog) -> tuple[bool, bool, int, str]:
    return (log.outcome == "loads", log.outcome == "unknown", -log.lost.records, log.path)


def _start_line(start: PredictedStart, one: Input) -> str:
    result = "unknown" if isinstance(start.result, Absent) else RESULTS[start.result.value]
    if not isinstance(start.exception, Absent):
        result += f" ({start.exception})"
    how = "clean-shutdown marker there" if start.clean else "no clean-shutdown marker"
    scanned = f"{byte_count(start.bytes_scanned)} scanned in {counted(start.logs_scanned, 'log')}"
    return f"{node_words(one)}, start {start.number}: {result} · {how}, {scanned}"


def _log(log: PredictedLog, inputs: tuple[Input, ...], *, with_files: bool) -> Iterator[Block]:
    words = f"{log.path}: {_outcome_words(log)}"
    yield item(words)
    if log.lost.records and isinstance(log.topic_deleted_ms, int):
        asked = f"as the deletion of its topic on {utc_words(log.topic_deleted_ms)} asked"
        yield Prose(
            f"{counted(log.lost.records, 'record')} {form(log.lost.records, 'goes', 'go')} with it, {asked}", depth=2
        )
    elif log.lost.records:
        held = [f"{holder.records} on {who(inputs[holder.input])}" for holder in log.lost.held_by]
        where = f"; {', '.join(held)}" if held else "; kept on no other replica given"
        lost = f"{counted(log.lost.records, 'record')} discarded ({log.lost.committed}){where}"
        yield Prose(lost, depth=2, tone=Tone.BAD)
    for base, before, after in log.scanned:
        if after < before:
            words = f"segment {base} is truncated at byte {after} of {before}"
            yield Prose(words, depth=2)
    for change in log.files if with_files else ():
        target = "" if isinstance(change.to_name, Absent) else f" to {change.to_name}"
        size = "" if isinstance(change.to_length, Absent) else f", {change.to_length} bytes"
        line = f"{change.action} {change.name}{target}{size} ({change.rule})"
        yield item(line, Tone.QUIET, depth=2)


def _outcome_words(log: PredictedLog) -> str:
    if log.outcome == "fails":
        return f"{log.exception}: {log.message}"
    if log.outcome == "unknown" or not isinstance(log.after, LogAtStart):
        return f"unknown: {log.message}"
    before, after = log.before, log.after
    parts = [f"log end {after.log_end_offset}"]
    if before.log_end_offset != after.log_end_offset and not isinstance(before.log_end_offset, Absent):
        parts = [f"log end {before.log_end_offset} becomes {after.log_end_offset}"]
    if before.epochs != after.epochs and (after.epochs or not isinstance(before.epochs, Absent)):
        parts.append(_epochs(after))
    scanned = sum(length for _, length, _ in log.scanned)
    if log.scanned:
        parts.append(f"{byte_count(scanned)} scanned")
    parts.append(f"{counted(len(log.files), 'file')} changed")
    if isinstance(log.due, DueSegments):
        due = counted(len(log.due.base_offsets), "segment")
        parts.append(f"retention deletes {due}{'' if log.due.is_setting_known else ' by the defaults'}")
    if log.fate in FATES:
        parts.insert(0, FATES[log.fate])
    return ", ".join(parts)


def _metadata(body: Prediction, start: PredictedStart, inputs: tuple[Input, ...]) -> Iterator[Block]:
    for one in body.metadata_logs:
        if one.node != start.input or start.number > 1:
            continue
        words = ""
        if one.unknown:
            words = f"unknown: {one.unknown}"
        elif not isinstance(one.snapshot_end, Absent):
            words = f"dropped for the snapshot that ends at offset {one.snapshot_end}"
        elif one.lost.records:
            held = [f"{holder.records} on {who(inputs[holder.input])}" for holder in one.lost.held_by]
            where = ", ".join(held) or "in no other copy given"
            words = (
                f"truncated at offset {one.log_end_offset}, {counted(one.lost.records, 'record')} discarded; {where}"
            )
        if words:
            yield item(f"{one.path}: {words}")


def _epochs(state: LogAtStart) -> str:
    if isinstance(state.epochs, Absent) or not state.epochs:
        return "no leader epoch is left"
    last, earlier = state.epochs[-3:], len(state.epochs) - 3
    names, places = (listed([str(one[at]) for one in last]) for at in (0, 1))
    words = f"leader {form(len(last), 'epoch')} {names} {form(len(last), 'begins', 'begin')} at {form(len(last), 'offset')} {places}"
    return words + (f" after {earlier} earlier ones" if earlier > 1 else " after an earlier one" if earlier > 0 else "")
