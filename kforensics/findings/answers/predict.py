"""The answer of `predict`: whether each node starts, and what it loses by it."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent
from kforensics.evidence.discovery.partition_dirs import LOGS_LEFT_OUT
from kforensics.findings.answers.graver import Asked, beyond
from kforensics.findings.answers.model import Answer, State, worst_state
from kforensics.findings.answers.predict_cluster import PredictedCluster, node_words
from kforensics.findings.answers.predict_steps import (
    after_starts,
    discarded_by_leaders,
    name_brokers,
    predict_steps,
    predict_unknowns,
)
from kforensics.findings.concern import ConcernKind
from kforensics.findings.rules.quorum import quorum_words
from kforensics.protocol.loading.node import UNREGISTERED, Fate, Refusal
from kforensics.protocol.loading.starts import StartResult
from kforensics.reconcile.logs.predicted_load import DueSegments, PredictedLog, committed_words
from kforensics.words import counted, form, joined_by_and, listed, utc_words, with_place

_INCOMPLETE_METADATA = "records of the metadata log are missing"


def predict_headline(found: PredictedCluster, outcome: State, replicas: Asked | None = None) -> str:
    """Return the answer in a line; what it leaves out is in the parts of the answer that follow."""
    # What becomes of logs is said of the quorum.
    is_unknown = outcome is State.UNKNOWN and bool(found.unknown_strays) and not found.has_unknown_log
    is_open = found.quorum is not None and (is_unknown or outcome in {State.STARTS_UNCHANGED, State.STARTS_AND_REPAIRS})
    parts = [*_before(found), "" if is_open else _starts(found, outcome), *_beside(found)]
    if replicas is not None and outcome is State.WILL_NOT_START:
        own = "".join(parts).strip()
        return f"{own} {beyond(replicas.answer.headline, own)}".rstrip()
    if replicas is not None:
        said = replicas.answer.headline
        rest = beyond("".join(parts).strip(), said)
        return f"{rest} {said}" if found.order else f"{said} {rest}".rstrip()
    return "".join(parts).lstrip()


def _before(found: PredictedCluster) -> Iterator[str]:
    certain, possible = discarded_by_leaders(found.order)
    if certain or possible:
        records = counted(certain + possible, "record")
        yield f"In any order of starts, followers discard at least {records} ({certain:,} committed). "
    if found.without:
        yield f"As if {', '.join(found.without)} were not there: "


def _beside(found: PredictedCluster) -> Iterator[str]:
    """Yield what keeps more from being known than how these logs load."""
    if found.quorum:
        yield f" {quorum_words(found.quorum)}"
    if found.brokers_without_logs:
        nodes = listed([node_words(one) for one in found.brokers_without_logs])
        yield f" No log is on the disk of {nodes}: it is new or was emptied."
    for one in found.missing_directories:
        if one.left_out:
            yield f" {listed(list(one.left_out), most=4)} {form(len(one.left_out), 'is', 'are')} not loaded: server.properties does not name {form(len(one.left_out), 'it', 'them')}."
        if one.blank:
            yield f" {', '.join(one.blank)} {form(len(one.blank), 'is', 'are')} empty: new, emptied, or not mounted."
    if found.lost:
        yield f" {counted(len(found.lost), 'partition')} that checkpoints name {form(len(found.lost), 'has', 'have')} no directory here."
    if found.misnamed:
        paths = [path.rpartition("/")[2] for _, path in found.misnamed]
        yield (
            f" {listed(paths, most=3)} {form(len(paths), 'is', 'are')} not served: {form(len(paths), 'it has', 'they have')} the topic id of another topic"
            " (InconsistentTopicIdException)."
        )
    for node, names in found.emptied:
        yield f" {node[0].upper()}{node[1:]} makes {listed(names, most=3)} anew, empty: no log directory here holds {form(len(names), 'it', 'them')}."
    if found.disks_say and not found.failed:
        yield " By the last lines of its broker a log directory failed; whether its disk is mended is not known."
    if found.closed:
        what = f"{counted(len(found.closed), 'file')} or {form(len(found.closed), 'directory', 'directories')}"
        yield f" {what} may be closed to the broker by owner or mode."
    if found.elsewhere:
        yield f" Not every log directory of node {found.elsewhere[0].node_id} is here."
    if found.unseen and found.unseen.logs:
        yield f" {found.unseen.words}"
    if found.order and found.order.missing:
        missing = found.order.missing
        yield f" What {name_brokers(missing)} {form(len(missing), 'holds', 'hold')} is not known."


def _not_predicted(found: PredictedCluster, version: str, *, is_first: bool) -> str:
    """Return the sentence on logs and nodes of which it can't be said what becomes of them, with the first reason."""
    logs = [log for log in found.logs if log.outcome == "unknown" and log.is_reached]
    starts = [start for start in found.starts if isinstance(start.result, Absent)]
    numbers = [*(log.node for log in logs), *(start.input for start in starts)]
    names = joined_by_and(found.node(number) for number in numbers)
    reason = next((words for words in (*(one.message for one in logs), *(one.reason for one in starts)) if words), "")
    why = f": {reason.rstrip('.')}" if reason else ""
    can = "C" if is_first else "c"
    what = f"what becomes of {counted(len(logs), 'log')}" if logs else "the start"
    return (
        f"{can}an't predict {what} of {names} with {version}{why}."
        if names
        else f"{can}an't predict what {version} does to some of these logs."
    )


def _starts(found: PredictedCluster, state: State) -> str:
    loading = {log.node for log in found.logs}
    kafka = sorted({start.kafka for start in found.starts if start.input in loading}) or [found.kafka]
    version = f"Kafka {listed(kafka)}"
    if state is State.WILL_NOT_START:
        return _not_starting(found, version) + (f" {_lost(found, version)}" if found.losing else "")
    if found.starts and all(start.reason == LOGS_LEFT_OUT for start in found.starts):
        return f"What {version} does to these logs is not known: no .log file of any partition is here."
    nodes, are_all = found.without_marker()
    loads = f"As after a crash{'' if are_all else f' of {listed(nodes)}'}, " if nodes else ""
    if found.losing:
        misdated = sum(len(one.misdated) for one in _due(found) if one.is_setting_known)
        more = f" Retention then deletes {_misdated(misdated)}." if misdated else ""
        return loads + _lost(found, version) + more
    newer = next((start for start in found.starts if found.is_newer(start)), None)
    if state is State.UNKNOWN and newer is not None:
        return f"What {found.node(newer.input)} does with Kafka {newer.kafka} is not known: {newer.reason}."
    is_unknown = state is State.UNKNOWN and bool(found.logs or found.metadata_logs)
    if is_unknown and (not found.logs or found.has_unknown_log):
        return f"{loads}{_not_predicted(found, version, is_first=not loads)}"
    if not found.logs:
        lacks = any(one.lost_before for one in found.metadata_logs)
        return f"Nothing here keeps {version} from starting; {_INCOMPLETE_METADATA if lacks else 'no log of a partition is here'}."
    but = next(_but(found), "")
    rest = " as they are" if state is State.STARTS_UNCHANGED else ", and loading discards no record"
    if is_unknown:
        rest = "" if but else ", as far as is known"
        return f"{loads}{version} loads {_all(found)}{but or rest}. {next(_why_unknown(found), 'Not all that decides it is here')}."
    return f"{loads}{version} loads {_all(found)}{but or rest}."


def _why_unknown(found: PredictedCluster) -> Iterator[str]:
    """Yield what leaves the starts unknown although each log here is known to load."""
    for start in found.starts:
        if isinstance(start.result, Absent) and start.reason:
            yield f"The start is not known: {start.reason.rstrip('.')}"
    if found.has_problems:
        yield "Not all could be read"
    if found.versions:
        yield f"Kafka {listed(list(dict.fromkeys(one.kafka for one in found.versions)), most=4)}, which these files allow too, would do something else"
    if found.allows_older:
        yield "These files allow versions before 0.10, too, whose loaders are not modelled"
    if found.left_out:
        yield "Partition directories that are given alone can't be played"
    if found.not_migrated:
        yield "Whether a broker with ZooKeeper starts without it is not known"
    if found.side_by_side:
        yield "Whether these are nodes of their own, or disks of one, is not known"
    if found.unknown_strays:
        yield "Which of them are strays is not known"
    if found.displaced:
        yield f"Whether {listed(list(found.displaced), most=4)} {form(len(found.displaced), 'gets', 'get')} a leader is not known"
    if found.is_partial:
        yield "Only the partitions that were asked for were read"


def _but(found: PredictedCluster) -> Iterator[str]:
    """Yield what keeps a start from being as calm as its logs loading, the gravest first."""
    truncated = next((one for one in found.metadata_logs if one.lost.records), None)
    if truncated is not None:
        yield f", but discards {counted(truncated.lost.records, 'record')} of the metadata log"
    if any(one.lost_before for one in found.metadata_logs):
        yield f"; {_INCOMPLETE_METADATA}"
    due = _due(found)
    misdated = sum(len(one.misdated) for one in due if one.is_setting_known)
    if misdated:
        yield f"; retention then deletes {_misdated(misdated)}"
    ended = found.ended_early
    if ended:
        yield f"; {counted(len(ended), 'log')} may have lost {form(len(ended), 'its', 'their')} end before"
    bare = found.without_segment
    if bare:
        yield f"; of {counted(len(bare), 'log')} no segment is here, and {form(len(bare), 'an empty one is', 'empty ones are')} created"
    torn = [log for log in found.reached if any(after < before for _, before, after in log.scanned)]
    if torn:
        yield f"; what it truncates of {counted(len(torn), 'log')} is no whole batch"
    strays = [log for log in found.reached if log.fate is Fate.STRAY]
    if strays:
        yield f"; {len(strays):,} {form(len(strays), 'is a stray', 'are strays')}, renamed and not served"
    if found.going:
        yield f"; {_going(found.going)}"
    if found.leaving:
        yield f"; {len(found.leaving):,} may be {form(len(found.leaving), 'a stray', 'strays')} by then"
    if found.stuck_futures:
        yield f"; {counted(len(found.stuck_futures), 'move')} between log directories can't go on"
    misdated = sum(len(one.misdated) for one in due)
    if misdated:
        yield f"; default retention would delete {_misdated(misdated)}"
    whole = [one for one in due if one.is_whole_log]
    if known := sum(one.is_setting_known for one in whole):
        yield f"; retention then deletes all that {counted(known, 'log')} {form(known, 'holds', 'hold')}"
    if whole:
        yield f"; default retention would delete all of {len(whole):,}"
    deleted = sum(len(one.base_offsets) for one in due if one.is_setting_known)
    if deleted:
        yield f"; retention then deletes {counted(deleted, 'segment')}"


def _going(logs: Sequence[PredictedLog]) -> str:
    """Return what goes with the directories of deleted topics, and when their deletion asked for it."""
    topics = sorted({str(log.topic) for log in logs})
    times = sorted(log.topic_deleted_ms for log in logs if isinstance(log.topic_deleted_ms, int))
    when = f"on {utc_words(times[0])}" if len(topics) == 1 else f"on {utc_words(times[0])} and later"
    records = counted(sum(log.lost.records for log in logs), "record")
    return (
        f"{records} of deleted {form(len(topics), 'topic')} {listed(topics, most=4)} {form(sum(log.lost.records for log in logs), 'goes', 'go')} with "
        f"{form(len(logs), 'its directory', 'their directories' if len(topics) > 1 else 'its directories')}, as {form(len(topics), 'its deletion', 'their deletions')} {when} asked"
    )


def _due(found: PredictedCluster) -> list[DueSegments]:
    return [log.due for log in found.reached if isinstance(log.due, DueSegments)]


def _misdated(segments: int) -> str:
    indexes = form(segments, "its time index", "their time indexes")
    return f"{counted(segments, 'segment')} of records that are not old, by wrong times in {indexes}"


def _not_starting(found: PredictedCluster, version: str) -> str:
    causes = (one for one in found.failed if not Refusal(str(one.exception), one.reason).is_of_quorum)
    first = next(causes, found.failed[0])
    node = found.node(first.input)
    others = len({start.input for start in found.failed}) - 1
    node = f"{node[0].upper()}{node[1:]}" + (f" (and {others} more)" if others else "")
    if first.result is StartResult.DIRECTORY_OFFLINE:
        anew = next((f" It {one.words}." for one in found.recreated if one.start.input == first.input), "")
        return f"{node} takes a log directory offline with {version}: {first.exception}.{anew}"
    if not first.loads_logs:
        return f"{node} does not start with {version}, and loads no log: {first.exception}."
    strays = [log for log in found.logs if log.node == first.input and log.fate is Fate.STRAY]
    if first.exception in UNREGISTERED and strays:
        return f"{node} does not start with {version}, and renames {counted(len(strays), 'log')} to -stray: {first.exception}."
    later = [start for start in found.starts if start.input == first.input and start.number > first.number]
    again = ""
    if later:
        again = (
            f" Start {later[-1].number} succeeds." if later[-1].result is StartResult.STARTS else " Nor does it later."
        )
    return f"{node} does not start with {version}: {first.exception}.{again}"


def _lost(found: PredictedCluster, version: str) -> str:
    records = sum(log.lost.records for log in found.losing)
    certain = sum(log.lost.certain for log in found.losing)
    only = sum(log.lost.only_here for log in found.losing)
    partitions = len({(log.input, log.path) for log in found.losing})
    committed = committed_words(certain, records)
    kept = f"{only:,} kept in no other log given" if only else "all kept in other logs given"
    return f"{version} discards {counted(records, 'record')} of {counted(partitions, 'log')}: {committed}, {kept}."


def _all(found: PredictedCluster) -> str:
    count = len({(log.input, log.path) for log in found.logs})
    return "its only log" if count == 1 else f"all {count:,} logs"


_BY_COMPARISON = {
    State.AT_RISK: State.LOSES,
    State.UNCOMMITTED_ONLY: State.LOSES,
    State.MAYBE_AT_RISK: State.MAYBE_AT_RISK,
    State.DIVERGED: State.DIVERGED,
}
"""What a state of `diff` leaves of a start that would else be calm: its followers truncate, or may, or serve other content."""

_OF_ENDS = frozenset(
    {
        ConcernKind.GONE,
        ConcernKind.MISSING,
        ConcernKind.RECOVERY,
        ConcernKind.PROTOCOL,
        ConcernKind.TAIL,
        ConcernKind.LEADER,
        ConcernKind.OUTDATED,
        ConcernKind.LOGGED_END,
    }
)
"""What `diff` does not know of logs that are given; replicas that are not given are asked for in the answer."""


def predict_answer(found: PredictedCluster) -> Answer:
    """Return the answer over all starts."""
    outcome, compared = _outcome(found), _of_replicas(found)
    state = _state(found, outcome, compared)
    replicas = None if found.replicas is None or compared is None else found.replicas
    return Answer(
        state=state,
        headline=predict_headline(found, outcome, replicas),
        now=with_place(predict_steps(found, state, replicas)),
        tell=() if replicas is None else replicas.answer.tell,
        later=tuple(after_starts(found)),
        unknown=tuple(predict_unknowns(found)),
    )


def _outcome(found: PredictedCluster) -> State:
    """Return the state that the starts come to by themselves, whatever their order."""
    states = set(_states(found))
    if (
        found.versions
        or found.left_out
        or found.has_problems
        or found.allows_older
        or found.side_by_side
        or found.not_migrated
        or found.displaced
        or any(one.is_grave for one in found.missing_directories)
    ):
        states.add(State.UNKNOWN)
    state = worst_state(states) or State.UNKNOWN
    if state is State.STARTS_UNCHANGED and (found.is_partial or found.elsewhere):
        return State.UNKNOWN
    if state in {State.STARTS_UNCHANGED, State.STARTS_AND_REPAIRS} and found.unknown_strays:
        return State.UNKNOWN
    return state


def _states(found: PredictedCluster) -> Iterator[State]:
    for start in found.starts:
        if isinstance(start.result, Absent):
            yield State.UNKNOWN
        elif start.result is not StartResult.STARTS:
            yield State.WILL_NOT_START
    for log in found.logs:
        if not log.is_reached:
            continue
        due = log.due if isinstance(log.due, DueSegments) and log.due.is_setting_known else None
        if log.outcome == "unknown":
            yield State.UNKNOWN
        elif log.lost.records and log.is_deletion_asked:
            yield State.STARTS_AND_REPAIRS
        elif log.lost.records or (due is not None and due.misdated) or log in found.unserved:
            yield State.LOSES  # what is as old as its retention would have gone without the start, too
        else:
            yield State.STARTS_AND_REPAIRS if log.is_changed or due is not None else State.STARTS_UNCHANGED
    for one in found.metadata_logs:
        if one.unknown:
            yield State.UNKNOWN
        elif one.lost.records:
            yield State.LOSES if one.lost.only_here else State.STARTS_AND_REPAIRS
    if found.starts:
        yield State.STARTS_UNCHANGED


def _state(found: PredictedCluster, outcome: State, compared: State | None) -> State:
    """Return the state of the whole: with what followers discard, and unknown where more than the starts may be lost."""
    state = outcome
    if compared is not None:
        state = worst_state({state, compared}) or state
    if any(discarded_by_leaders(found.order)):
        state = worst_state({state, State.LOSES}) or state
    if state in {State.STARTS_UNCHANGED, State.STARTS_AND_REPAIRS} and _is_in_doubt(found):
        return State.UNKNOWN
    return state


def _of_replicas(found: PredictedCluster) -> State | None:
    if found.replicas is None:
        return None
    state = found.replicas.answer.state
    if state is State.UNKNOWN:
        return State.UNKNOWN if found.replicas.open_kinds & _OF_ENDS else None
    return _BY_COMPARISON.get(state)


def _is_in_doubt(found: PredictedCluster) -> bool:
    return bool(
        any(one.configured or one.blank for one in found.missing_directories)
        or found.ended_early
        or found.lost
        or found.emptied
        or found.misnamed
        or any(one.lost_before for one in found.metadata_logs)
        or found.misdated
        or found.brokers_without_logs
        or any(log.due is Absent.UNREADABLE for log in found.reached)
        or (found.order is not None and found.order.missing)
        or found.twice
        or any(isinstance(one.kept_by, Absent) for one in found.leaving)
        or found.without_segment
        or found.open_strays
        or found.quorum
        or found.closed
        or found.disks_say
        or (found.unseen and found.unseen.logs)
    )
