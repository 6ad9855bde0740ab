"""The headline of predicted starts: whether they succeed, and what is lost by them."""

from collections.abc import Iterator

from kforensics.evidence.discovery.partition_dirs import LOGS_LEFT_OUT
from kforensics.findings.answers.model import State
from kforensics.findings.answers.predict_cluster import ComparedReplicas, PredictedCluster, node_words
from kforensics.findings.answers.start_order import discarded_by_leaders, name_brokers
from kforensics.protocol.loading.node import UNREGISTERED, Fate
from kforensics.protocol.loading.starts import StartResult
from kforensics.reconcile.logs.predicted_load import DueSegments
from kforensics.words import counted, form, listed

_INCOMPLETE_METADATA = "records of the metadata log are missing"


def predict_headline(found: PredictedCluster, outcome: State, replicas: ComparedReplicas | None = None) -> str:
    """Return the answer in a line; what it leaves out is in the parts of the answer that follow.

    Args:
        outcome: the state that they come to by themselves, whatever their order.
        replicas: how the replicas compare, where that is graver than the starts of the nodes.
    """
    is_open = found.quorum is not None and outcome in {State.STARTS_UNCHANGED, State.STARTS_AND_REPAIRS}
    parts = [*_before(found), "" if is_open else _starts(found, outcome), *_beside(found)]
    if replicas is not None and outcome is State.WILL_NOT_START:
        parts.append(f" {replicas.answer.headline}")
    elif replicas is not None:
        parts.insert(len(parts) if found.order else 0, f"{replicas.answer.headline} ")
    return "".join(parts).lstrip()


def _before(found: PredictedCluster) -> Iterator[str]:
    certain, possible = discarded_by_leaders(found.order)
    if certain or possible:
        records = counted(certain + possible, "record")
        yield f"In any order of starts, followers discard at least {records} ({certain:,} certainly committed). "
    if found.without:
        yield f"As if {', '.join(found.without)} were not there: "


def _beside(found: PredictedCluster) -> Iterator[str]:
    """Yield what keeps more from being known than how these logs load."""
    if found.quorum:
        yield f" {found.quorum.words}"
    if found.brokers_without_logs:
        nodes = listed([node_words(one) for one in found.brokers_without_logs])
        yield f" No log is on the disk of {nodes}: it is new or was emptied."
    for one in found.missing_directories:
        if one.blank:
            yield f" {', '.join(one.blank)} {form(len(one.blank), 'is', 'are')} empty: new, emptied, or not mounted."
    if found.lost:
        yield f" {counted(len(found.lost), 'partition')} that checkpoints name {form(len(found.lost), 'has', 'have')} no directory here."
    if found.elsewhere:
        yield f" Not every log directory of node {found.elsewhere[0].node_id} is here."
    if found.order and found.order.missing:
        missing = found.order.missing
        yield f" What {name_brokers(missing)} {form(len(missing), 'holds', 'hold')} is not known."


def _starts(found: PredictedCluster, state: State) -> str:
    loading = {log.node for log in found.logs}
    kafka = list(dict.fromkeys(start.kafka for start in found.starts if start.input in loading)) or [found.kafka]
    version = f"Kafka {listed(kafka)}"
    if state is State.WILL_NOT_START:
        return _not_starting(found, version) + (f" {_lost(found, version)}" if found.losing else "")
    if found.starts and all(start.reason == LOGS_LEFT_OUT for start in found.starts):
        return f"What {version} does to these logs is not known: no .log file of any partition is here."
    nodes, are_all = found.without_marker()
    loads = f"As after a crash{'' if are_all else f' of {listed(nodes)}'}, " if nodes else ""
    if found.losing:
        return loads + _lost(found, version)
    newer = next((start for start in found.starts if found.is_newer(start)), None)
    if state is State.UNKNOWN and newer is not None:
        return f"What {found.node(newer.input)} does with Kafka {newer.kafka} is not known: {newer.reason}."
    is_unknown = state is State.UNKNOWN and bool(found.logs or found.metadata_logs)
    if is_unknown and (not found.logs or found.has_unknown_log):
        return f"{loads}{'what' if loads else 'What'} {version} does to some of these logs is not known."
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
    if found.is_partial:
        yield "Only the partitions that were asked for were read"


def _but(found: PredictedCluster) -> Iterator[str]:
    """Yield what keeps a start from being as calm as its logs loading, the gravest first."""
    truncated = next((one for one in found.metadata_logs if one.lost.records), None)
    if truncated is not None:
        yield f", but discards {counted(truncated.lost.records, 'record')} of the metadata log"
    if any(one.lost_before for one in found.metadata_logs):
        yield f"; {_INCOMPLETE_METADATA}"
    due = [log.due for log in found.reached if isinstance(log.due, DueSegments)]
    misdated = sum(len(one.misdated) for one in due if one.is_setting_known)
    if misdated:
        yield f"; retention then deletes {_misdated(misdated)}"
    whole = [one for one in due if one.is_whole_log]
    known = [one for one in whole if one.is_setting_known]
    if known:
        yield f"; retention then deletes all of {len(known):,}"
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
        unserved = {(log.topic, log.partition) for log in strays if found.is_unserved(log)}
        none_kept = f", and no replica of {counted(len(unserved), 'partition')} is kept" if unserved else ""
        yield f"; {len(strays):,} {form(len(strays), 'is a stray', 'are strays')}, renamed and not served{none_kept}"
    if found.leaving:
        yield f"; {len(found.leaving):,} may be {form(len(found.leaving), 'a stray', 'strays')} by then"
    misdated = sum(len(one.misdated) for one in due)
    if misdated:
        yield f"; default retention would delete {_misdated(misdated)}"
    if whole:
        yield f"; default retention would delete all of {len(whole):,}"
    deleted = sum(len(one.base_offsets) for one in due if one.is_setting_known)
    if deleted:
        yield f"; retention then deletes {counted(deleted, 'segment')}"


def _misdated(segments: int) -> str:
    indexes = form(segments, "its time index", "their time indexes")
    return f"{counted(segments, 'segment')} of records that are not old, by wrong times in {indexes}"


def _not_starting(found: PredictedCluster, version: str) -> str:
    first = found.failed[0]
    node = found.node(first.input)
    others = len({start.input for start in found.failed}) - 1
    node = f"{node[0].upper()}{node[1:]}" + (f" (and {others} more)" if others else "")
    if first.result is StartResult.DIRECTORY_OFFLINE:
        return f"{node} takes a log directory offline with {version}: {first.exception}."
    if not first.loads_logs:
        return f"{node} does not start with {version}, and loads no log: {first.exception}."
    strays = [log for log in found.logs if log.node == first.input and log.fate is Fate.STRAY]
    if first.exception == UNREGISTERED and strays:
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
    return (
        f"{version} discards {counted(records, 'record')} of {counted(partitions, 'log')}: {certain:,} certainly committed, "
        f"{only:,} in no other log given."
    )


def _all(found: PredictedCluster) -> str:
    count = len({(log.input, log.path) for log in found.logs})
    return "its only log" if count == 1 else f"all {count:,} logs"
