"""What to do before nodes are started and in which order, what follows their starts, and what is not known of them."""

from collections.abc import Iterator, Mapping, Sequence

from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.findings.answers.graver import Asked, see
from kforensics.findings.answers.model import CALM_OF_DIFF, State
from kforensics.findings.answers.predict_cluster import PredictedCluster, node_words
from kforensics.findings.concern import ConcernKind, copies_of_places
from kforensics.findings.rules.quorum import absent_words, quorum_steps
from kforensics.protocol.election import ElectionKind
from kforensics.protocol.loading.node import UNREGISTERED, Fate, Refusal
from kforensics.protocol.loading.starts import StartResult
from kforensics.reconcile.logs.predicted_load import (
    IDENTITY_UNREAD,
    DueSegments,
    FurtherEnd,
    PredictedLog,
    StartOrder,
    VersionOutcome,
)
from kforensics.units import METADATA_TOPIC
from kforensics.words import Step, command_line, counted, form, joined_by_and, listed, utc_words


def discarded_by_leaders(order: StartOrder | None) -> tuple[int, int]:
    """Return how many records, certainly and possibly committed, others discard where each partition gets the leader that costs least."""
    elections = () if order is None else order.elections
    return sum(one.lost_certain for one in elections), sum(one.lost_possible for one in elections)


def order_steps(order: StartOrder, paths: Sequence[str]) -> Iterator[str]:
    """Yield which broker to start first, which to wait for, and which elections are needed."""
    if not order.brokers:
        return
    first, *others = order.brokers
    then = f", then {', '.join(map(str, others))}" if others else ""
    if order.missing:
        yield (
            f"Give the directories of {name_brokers(order.missing)} before any broker is started: {form(len(order.missing), 'it', 'one of them')} may hold "
            "committed records that a leader among these discards."
        )
    of_given = "Of the brokers given: start" if order.missing else "Start"
    yield f"{of_given} broker {first} first{then}, one at a time, each after the one before has loaded its logs."
    best = sum(discarded_by_leaders(order))
    worst = max(order.firsts, key=lambda one: one.certain + one.possible, default=None)
    if worst is not None and worst.certain + worst.possible > best:
        yield (
            f"In this order followers discard {counted(best, 'record')}. Where broker {worst.broker_id} is elected everywhere, the worst, it is "
            f"{worst.certain + worst.possible:,} ({worst.certain:,} committed)."
        )
    if order.wait_for:
        yield (
            f"Elect no leader before {name_brokers(order.wait_for)} {form(len(order.wait_for), 'is', 'are')} running: others would discard "
            "records that no other broker holds."
        )
    unclean = [one for one in order.elections if one.is_unclean is True]
    unsure = [one for one in order.elections if isinstance(one.is_unclean, Absent)]
    least = "an unclean election of the replica that discards least"
    if unclean:
        yield f"{counted(len(unclean), 'partition')} {form(len(unclean), 'needs', 'need')} {least}."
    if unsure:
        yield (
            f"{counted(len(unsure), 'partition')} may need {least}: those without a leader once its broker runs."
            " Of a partition with a leader the tool says that no election is needed."
        )
    if order.unclean:
        elect = "kafka-leader-election.sh --bootstrap-server HOST:PORT --election-type unclean --path-to-json-file"
        yield Step(
            "Elect once the broker of that replica runs, and before the others start. The first command writes the file that names its partitions",
            (
                command_line(("kforensics", "triage", "--steps", "steps.sh", *paths)),
                *(f"{elect} elections-{leader}.json" for leader in sorted({one.leader for one in order.unclean})),
            ),
        )


def unknown_of_order(order: StartOrder) -> Iterator[str]:
    """Yield what is not known of an order."""
    if order.missing:
        yield f"What {name_brokers(order.missing)} {form(len(order.missing), 'holds', 'hold')}, whose directories were not given: the order may change."
    unsure = sum(isinstance(one.is_unclean, Absent) for one in order.elections)
    if unsure:
        yield f"Which replicas of {counted(unsure, 'partition')} may be elected without an unclean election: no metadata among the inputs shows it."


def name_brokers(ids: Sequence[int]) -> str:
    """Return brokers by their ids, in words."""
    return f"{form(len(ids), 'broker')} {', '.join(map(str, ids))}"


COPY_FIRST = "Copy the log directories before anything is started: a start that fails changes them too."


def predict_steps(found: PredictedCluster, state: State, replicas: Asked | None = None) -> Iterator[str]:
    """Yield what to do before a node is started."""
    has_strays = any(
        log.fate in {Fate.STRAY, Fate.DELETED} and log.is_reached and not log.is_deletion_asked for log in found.logs
    )
    if state in {State.WILL_NOT_START, State.LOSES} or has_strays or found.aged or found.misdated:
        yield COPY_FIRST
        yield from _keep(found)
    for node, groups in found.doubled.items():
        held = [f"{found.path_of(log)} ends at {log.before.log_end_offset}" for log in groups[0]]
        yield (
            f"Take one directory of {counted(len(groups), 'partition')} out of the log directories of {node} before it is started, and keep it: {listed(held, most=4)}."
            " What was made anew while a log directory was offline is empty, or holds what was written since."
        )
    for one in found.recreated:
        yield (
            f"Mend {listed(one.offline)} before {found.node(one.start.input)} is started, or keep it from leading: it {one.words}, and others truncate theirs where it is elected."
        )
    for (number, path), topic in found.misnamed.items():
        partition = path.rpartition("-")[2]
        yield (
            f"Look whose records {path} of {found.node(number)} holds before it is started: its partition.metadata has the id of {topic}. Where directories were exchanged,"
            f" name it {topic}-{partition} again; where that file is of another directory, put its own back."
        )
    for log, copy in found.stuck_futures:
        yield (
            f"Delete {copy.path} while {found.node(copy.node)} is stopped, and ask for the move of {log.topic}-{log.partition} again (kafka-reassign-partitions.sh):"
            f" it ends below the start of the log that it is to replace."
        )
    said = () if replicas is None else replicas.answer.now
    if found.quorum:
        yield from (one for one in quorum_steps(found.quorum) if one not in said)
    elif found.order:
        yield from order_steps(found.order, [one.path for one in found.inputs])
    if replicas is not None:
        yield from said
        yield see(replicas)


def start_of_log(log: PredictedLog) -> int | Absent:
    """Return where a log begins before a start."""
    start, first = log.before.log_start_offset, log.before.segments[0][0]
    return max(start, first) if isinstance(start, int) else first


def _keep(found: PredictedCluster) -> Iterator[str]:
    """Yield how to keep what a start removes, and what to mend before it."""
    if found.misdated:
        yield (
            f"Raise retention before the start: it takes records of {listed(list(dict.fromkeys(log.path for log in found.misdated)), most=4)} that are not old, because the time indexes "
            "of their segments end with an earlier time than their records have (zeros are 1970), and a start does not rebuild them."
        )
    if found.aged:
        yield (
            f"Raise retention before the start if these records are to stay: all of {listed(list(dict.fromkeys(log.path for log in found.aged)), most=4)}. "
            "`kforensics predict --ways-out` compares it."
        )
    strangers: dict[str, dict[str, None]] = {}
    for log in found.logs:
        if log.outcome == "fails" and isinstance(log.topic, Absent):
            strangers.setdefault(found.node(log.node), {})[log.path] = None
    for node, names in strangers.items():
        yield (
            f"Move {listed(list(names), most=4)} out of the log {form(len(names), 'directory', 'directories')} of {node} before it is started, and delete nothing that you have not looked into:"
            " Kafka takes each directory there for a partition, and does not start where a name is not TOPIC-PARTITION."
        )
    for one in found.without_metadata:
        yield (
            f"Put {METADATA_TOPIC}-0 back into the log directory of {found.node(one)} before it is started, from a copy or another node: it is the only voter, "
            "begins with empty metadata without it, and serves no log that is here."
        )
    for start in found.starts:
        refusal = Refusal(str(start.exception), start.reason)
        if refusal.is_of_level:
            yield f"Start {found.node(start.input)} with a release that reads the metadata.version of the cluster: {start.reason.rstrip('.')}."
        elif refusal.is_of_quorum or (found.quorum is not None and found.quorum.is_stuck):
            continue  # what is to be mended is said of the quorum, or of its controllers
        elif start.exception in UNREGISTERED or not (start.loads_logs or isinstance(start.result, Absent)):
            yield f"{_first_step(found, start.input, refusal)} of {found.node(start.input)} first: {start.reason.rstrip('.')}."
    yield from _records_kept(found)


def _records_kept(found: PredictedCluster) -> Iterator[str]:
    """Yield how to keep the records that loading discards: a step for each broker that alone holds some, and one for who holds the others."""
    paths = [one.path for one in found.inputs]
    alone: dict[str, list[PredictedLog]] = {}
    for log in found.losing:
        if log.lost.only_here:
            alone.setdefault(found.node(log.input), []).append(log)
    for broker, logs in alone.items():
        only = sum(log.lost.only_here for log in logs)
        every = sum(log.lost.records for log in found.losing if found.node(log.input) == broker)
        records = counted(every, "record")
        yield Step(
            f"Copy {counted(len(logs), 'directory', 'directories')} of {broker} before it starts: "
            f"{f'the {records}' if only == every else f'{only:,} of {records}'} that it discards {form(only, 'is', 'are')} kept on no other replica given",
            copies_of_places(paths, ((log.input, log.path) for log in logs)),
        )
    others = [log for log in found.losing if not log.lost.only_here]
    if not others:
        return
    holders: dict[str, None] = {}
    for log in others:
        whole = [holder for holder in log.lost.held_by if holder.records == log.lost.records]
        for holder in whole or log.lost.held_by:
            holders[_holder(found.inputs[holder.input], found.inputs[log.input])] = None
    nodes = dict.fromkeys(found.node(log.input) for log in others)
    if len(nodes) > 1 and nodes.keys() == holders.keys():
        return  # each holds what others discard: that tells none of them from another
    what = others[0].path if len(others) == 1 else counted(len(others), "log")
    yield (
        f"Keep {joined_by_and(holders)}, which {form(len(holders), 'holds', 'hold')} what {what} of {joined_by_and(nodes)} "
        f"{form(len(others), 'discards', 'discard')}."
    )


def discarded_by_loading(logs: Sequence[PredictedLog], inputs: Sequence[Input]) -> Iterator[str]:
    """Yield a sentence for each log that loading discards records of, and who else holds them."""
    for log in logs:
        if log.lost.records and log.is_reached and not log.is_deletion_asked:
            held = joined_by_and(_holder(inputs[one.input], inputs[log.input]) for one in log.lost.held_by)
            alone = f"{log.lost.only_here:,} of them are kept on no other replica given" if log.lost.only_here else ""
            others = f"{'others' if alone else 'they'} are on {held}" if held else ""
            yield (
                f"{node_words(inputs[log.input])} discards {counted(log.lost.records, 'record')} of {log.path}: "
                f"{'; '.join(filter(None, (alone, others)))}."
            )


def _first_step(found: PredictedCluster, number: int, refusal: Refusal) -> str:
    if refusal.is_of_settings:
        return "Mend the settings"
    if refusal.is_of_metadata_log:
        return "Mend the metadata log"
    return "Check the mount" if number in found.blank_nodes else "Mend the identity"


def _holder(holder: Input, of: Input) -> str:
    """Return who holds records that a node discards: another node, or an earlier copy of its own disk."""
    is_same = not isinstance(of.broker_id, Absent) and holder.broker_id == of.broker_id
    return f"the copy of {node_words(holder)} at {holder.path}" if is_same else node_words(holder)


_MOST_REMOTE = 3


def after_starts(found: PredictedCluster) -> Iterator[str]:
    """Yield what retention deletes by settings that are known, and what the controller does when nodes register."""
    if found.migration:
        yield found.migration
    if count := len(found.displaced):
        yield (
            f"{listed(list(found.displaced), most=4)} may stay without a leader once the broker has registered: the metadata"
            f" {form(count, 'places it', 'place them')} in a log directory that is not here, and it is open whether an election follows when the broker has corrected that."
        )
    known = [log.due for log in found.reached if isinstance(log.due, DueSegments) and log.due.is_setting_known]
    if known:
        whole = sum(one.is_whole_log for one in known)
        everything = f", all that {whole:,} of them {form(whole, 'holds', 'hold')}" if whole else ""
        segments = counted(sum(len(one.base_offsets) for one in known), "segment")
        copied = sum(len(one.base_offsets) for one in known if one.is_copied)
        kept = f" Of {counted(copied, 'segment')} there are finished copies in remote storage." if copied else ""
        yield f"Some 30 seconds after the start retention deletes {segments} of {counted(len(known), 'log')}{everything}.{kept}"
    yield from found.remote[:_MOST_REMOTE]
    if len(found.remote) > _MOST_REMOTE:
        yield f"The same of {counted(len(found.remote) - _MOST_REMOTE, 'more tiered partition')}."
    for log in found.reached:
        if log.pinned is not None:
            yield (
                f"Retention by time deletes nothing more of {log.path} before {utc_words(log.pinned.due_ms)}. A record in its oldest segment that stays,"
                f" {log.pinned.base_offset:020d}.log, is stamped {utc_words(log.pinned.timestamp_ms)}, and every segment behind it waits."
            )
    for log, copy in found.stuck_futures:
        yield (
            f"The move of {log.topic}-{log.partition} on {found.node(log.node)} can't go on: its future log {copy.path} ends at {copy.before.log_end_offset}, below the start of"
            f' {log.path}, {start_of_log(log)}. A copy that failed so ("marked as failed") is not tried again before a restart, which need not mend it.'
        )
    for one in found.recreated:
        broker = found.node(one.start.input)
        yield (
            f"{broker[0].upper()}{broker[1:]} {one.words}, where the metadata still assign {form(len(one.partitions), 'it', 'them')} to it: before 3.7 a broker without"
            f" ZooKeeper does not know in which log directory a partition was. Where it is elected, consumers find nothing and followers truncate to 0;"
            f" once {listed(one.offline)} is back, a start finds {form(len(one.partitions), 'the partition', 'these partitions')} in two directories."
        )
    # Nodes of which the controller has one reason to take them out of every ISR and ELR are named together.
    by_reason: dict[str, list[str]] = {}
    for node, reason in found.unclean_nodes.items():
        by_reason.setdefault(reason, []).append(found.node(node))
    for reason, names in by_reason.items():
        yield (
            f"When {listed(names, most=4)} {form(len(names), 'registers', 'register')}, the controller takes {form(len(names), 'it', 'each')} "
            f"out of every ISR and ELR. The reason: {reason}."
        )
    yield from _elected(found)


def _elected(found: PredictedCluster) -> Iterator[str]:
    """Yield who is elected once brokers are back, from which list, and what that loses."""
    for one in found.returning:
        what = f"{counted(len(one.partitions), 'partition')} ({listed(list(one.partitions), most=4)})"
        match one.kind:
            case ElectionKind.ELIGIBLE:
                instead = f", or {name_brokers(one.others)} where back before it" if one.others else ""
                yield f"Once back, broker {one.broker}{instead} is elected for {what} from the ELR. That is clean, with all that the last leader had committed (KIP-966)."
            case ElectionKind.LAST_KNOWN:
                elected = f"Once back, broker {one.broker} is elected for {what} as the last known leader, as ISR and ELR are empty then (KIP-966)."
                if _holds_no_log(found, one.broker):
                    yield f"{elected} No log is in its directories given: where these are all that it has, it makes the other replicas truncate theirs to 0."
                    continue
                yield (
                    f"{elected} The metadata calls that unclean. It loses what its own disk lost when it went down: nothing, unless its machine went down too (power, kernel)."
                    f" {_of_its_disk(found, one.broker)}"
                )
            case (
                ElectionKind.NONE
                | ElectionKind.UNCLEAN
                | ElectionKind.PREFERRED
                | ElectionKind.CLEAN
                | ElectionKind.UNCHANGED
            ):
                yield f"No replica of {what} is elected by itself, as ISR and ELR are empty and no last known leader is on record: `kforensics diff` says which one loses least."


def _holds_no_log(found: PredictedCluster, broker: int | None) -> bool:
    """Whether a broker is started from directories in which no log of a partition is, where all partitions were asked for."""
    started = {start.input for start in found.starts if found.inputs[start.input].broker_id == broker}
    return bool(started) and not found.is_partial and started.isdisjoint(log.node for log in found.logs)


def _of_its_disk(found: PredictedCluster, broker: int | None) -> str:
    """Return what the disk of a broker says of how it went down: a killed process leaves in the page cache what it wrote, so that logs end where other files say."""
    early = [log.path for log in found.ended_early if found.inputs[log.node].broker_id == broker]
    if early:
        said = f"{listed(early, most=2)} {form(len(early), 'ends', 'end')} below what other files say of {form(len(early), 'it', 'them')}, which speaks for that."
    else:
        said = "None of its logs ends below what its other files say, which speaks against it."
    return f"{said} The journal of the machine settles it (`journalctl --list-boots`)."


_OLDER = "What versions before 0.10 would do, which these files allow too: their loaders are not modelled. If the version is a later one, give it with --kafka."

_AS_A_FOLLOWER = (
    "What a broker discards as a follower depends on the log of its leader: a start only loads the logs. Give the log directories of all nodes of the "
    "cluster: their replicas are compared then, and --order says which broker to start first."
)


_NOT_SEEN = "These directories do not show that: it was mended since, or lies outside of them, as settings, permissions, free space and the network do."


def predict_unknowns(found: PredictedCluster) -> Iterator[str]:
    """Yield what the inputs do not show of the starts."""
    yield from _of_first_moment(found)
    yield from _of_other_directories(found)
    if found.log_says and all(one.result is StartResult.STARTS for one in found.starts):
        yield f"Why the last start failed: {found.log_says} {_NOT_SEEN}"
    if found.disks_say and all(one.result is StartResult.STARTS for one in found.starts):
        yield f"Whether the disk is mended: {found.disks_say} {_NOT_SEEN}"
    yield from _leaving(found)
    if found.unseen or (found.replicas is not None and ConcernKind.MISSING in found.replicas.open_kinds):
        yield _AS_A_FOLLOWER
    elif found.replicas is not None and found.replicas.answer.state is State.UNKNOWN:
        yield f"What each discards as a follower. `kforensics diff` says: {found.replicas.answer.headline}"
    elif found.replicas is not None and found.replicas.answer.state in CALM_OF_DIFF and not found.replicas.is_whole:
        yield "Whether the replicas hold the same below the ends of their logs: `kforensics diff` compares their content."
    if found.absent is not None:
        yield f"{absent_words(found.absent.voters)} If they are lost, `kforensics metadata` says which copy reaches furthest, and how it is put back."
    yield from _of_identity(found)
    yield from _of_starts(found)
    yield from _of_retention(found)
    yield from _of_zookeeper(found)
    yield "Whether another process holds a log directory's lock or runs under the same id, and whether the disk has room: files do not say it."
    yield from _gone_before(found)
    yield from _of_strays(found)
    yield from _gone_directories(found)
    if found.order:
        yield from unknown_of_order(found.order)


def _of_first_moment(found: PredictedCluster) -> Iterator[str]:
    """Yield whether the nodes run as they are, and with which version they are started."""
    nodes, _ = found.without_marker()
    if nodes:
        count = len(nodes)
        yield (
            f"Whether {listed(nodes)} {form(count, 'was', 'were')} killed or {form(count, 'is', 'are')} still running: there is no clean-shutdown "
            f"marker. If {form(count, 'it', 'one')} is running, this is what a crash now would do."
        )
    if found.kafka_source == "assumed":
        yield f"Which version is started: Kafka {found.kafka} is assumed. Give it with --kafka."
    for node, version in found.assumed_nodes.items():
        yield f"Which version {found.node(node)} is started with: Kafka {version} is assumed."


def _of_other_directories(found: PredictedCluster) -> Iterator[str]:
    if found.closed:
        yield (
            f"Whether the broker may read and write {listed(found.closed, most=4)}: the user of the log directory may not, by owner and mode as they are here. "
            "What it can't open takes the log directory offline, and ends the node where the metadata log is there. Compare with its disk (`ls -ln`)."
        )
    for one in found.missing_directories:
        yield from one.words()
    for broker in found.brokers_without_logs:
        yield (
            f"Whether the disk of {node_words(broker)} is new or was emptied: no log of a partition is on it. A broker that is elected with an empty log "
            "makes the other replicas truncate theirs: give the others and a metadata log to diff before it is started."
        )


def _leaving(found: PredictedCluster) -> Iterator[str]:
    """Yield which replicas are strays where a reassignment completes before the start."""
    shown = []
    for one in found.leaving:
        path = f"{found.inputs[one.cited.input].path.rstrip('/')}/{one.cited.path}"
        shown.append(f"{one.path} of {found.node(one.node)} (metadata offset {one.offset}, in {path})")
    if not shown:
        return
    count = len(shown)
    kept = all(isinstance(one.kept_by, int) for one in found.leaving)
    but = f". {form(count, 'A replica that stays holds', 'Replicas that stay hold')} the same offsets" if kept else ""
    yield (
        f"Whether {form(count, 'a replica is', f'{count} replicas are')} still assigned when {form(count, 'its broker is', 'their brokers are')} started. "
        f"A reassignment removes {listed(shown, most=4)}. Where it completes before, the directory is a stray, which Kafka 3.0 to 3.6 deletes and 3.7 and later "
        f"renames: its records are not served there{but}."
    )


def _of_identity(found: PredictedCluster) -> Iterator[str]:
    """Yield what is not known of which nodes these are, in which state, and of which versions."""
    if found.side_by_side:
        nodes = listed([found.node(one) for one in found.side_by_side])
        yield (
            f"Whether {nodes} are nodes of their own: their log directories lie in one folder, and a start that finds them together in its "
            "log.dirs is refused for their ids. Give the server.properties of each."
        )
    if found.twice:
        named = (found.inputs[one] for one in found.twice)
        paths = listed(
            [
                node_words(one) if isinstance(one.broker_id, Absent) else f"{node_words(one)} at {one.path}"
                for one in named
            ],
            most=4,
        )
        yield f"Which of these is the state that is started: {paths}. Each is started by itself."
    if found.allows_older:
        yield _OLDER


def _of_starts(found: PredictedCluster) -> Iterator[str]:
    if {start.input for start in found.failed} & set(found.zookeeper_nodes):
        yield "What a second start does: a broker with ZooKeeper that fails to start may write its marker and recovery points again."
    for start in found.starts:
        if found.is_newer(start):
            # No release knows what controllers do that are not here, or know other voters.
            is_told_by_none = start.reason == IDENTITY_UNREAD or "voter" in start.reason
            told_by = "" if is_told_by_none else " A release of kforensics that knows it would tell."
            yield f"What the start of {found.node(start.input)} does: {start.reason}.{told_by}"
    by_message: dict[str, dict[str, None]] = {}
    for log in found.logs:
        if log.outcome == "unknown":
            by_message.setdefault(log.message, {})[log.path] = None
    for message, paths in by_message.items():
        yield f"What becomes of {listed(list(paths), most=4)}: {message}."
    for one in found.metadata_logs:
        if one.unknown:
            yield f"What becomes of the metadata log {one.path}: {one.unknown}."
    for (node, ending), alike in _by_ending(found).items():
        it = form(len(alike), "it", "each")
        yield (
            f"Kafka {listed(alike)} would do something else than {found.kafka} on the files of {found.node(node)}: {it} {ending}. "
            "Give the version with --kafka."
        )
    if found.left_out:
        yield f"Partition directories alone have neither marker nor checkpoints: {', '.join(found.left_out)}. Give their log directory."
    if found.is_partial:
        yield "What becomes of the other partitions, any of which may end the start: only those asked for were read."
    if found.unknown_strays:
        nodes = ", ".join(found.node(node) for node in found.unknown_strays)
        yield (
            f"Which directories of {nodes} are strays, which Kafka 3.0 to 3.6 deletes and 3.7 renames: no metadata log that can be read whole "
            "is among the inputs. Give a controller's."
        )


def _by_ending(found: PredictedCluster) -> Mapping[tuple[int, str], list[str]]:
    """Return the versions that end in the same words, by node and these words."""
    endings: dict[tuple[int, str], list[str]] = {}
    for one in found.versions:
        endings.setdefault((one.input, _ends(one)), []).append(one.kafka)
    return endings


def _ends(other: VersionOutcome) -> str:
    if isinstance(other.result, Absent):
        return "can't be predicted"
    if other.result is StartResult.STARTS:
        return "starts, with other files"
    return f"ends with {other.exception} ({other.result})"


def _of_retention(found: PredictedCluster) -> Iterator[str]:
    due = [log.due for log in found.reached]
    assumed = [one for one in due if isinstance(one, DueSegments) and not one.is_setting_known]
    if assumed:
        yield (
            f"What retention deletes some 30 seconds later: by the settings for all topics (Kafka's: 7 days, no size), segments of "
            f"{counted(len(assumed), 'log')} are due, all of {sum(one.is_whole_log for one in assumed):,}. Brokers have theirs in server.properties (or give --set log.retention.ms=…), "
            "topics theirs in the metadata log or in ZooKeeper; --now is the time of the start."
        )
    unread = sum(one is Absent.UNREADABLE for one in due)
    if unread:
        yield f"What retention deletes of {counted(unread, 'log')}, whose time indexes can't be read."


def _of_zookeeper(found: PredictedCluster) -> Iterator[str]:
    for node, version in found.not_migrated.items():
        yield (
            f"Whether {found.node(node)} starts at all: its meta.properties is of a broker with ZooKeeper, "
            + (
                "and its server.properties of a node without. Which of its logs are strays then, the metadata log of the cluster decides."
                if node in found.with_roles
                else f"with whose settings Kafka {version} ends with ConfigException. A cluster migrates to KRaft by Kafka 3.x. Give the server.properties that it will be started with."
            )
        )
    if found.zookeeper_nodes:
        yield "Which partitions a broker with ZooKeeper deletes when it starts, and which retention topics have of their own: only ZooKeeper knows."


def _gone_before(found: PredictedCluster) -> Iterator[str]:
    """Yield what may have been lost of logs before any start."""
    if found.ended_early:
        shown = [
            f"{log.path} ({log.further_end.file} says {log.further_end.offset}, {_end_words(log.before.log_end_offset)})"
            for log in found.ended_early
            if isinstance(log.further_end, FurtherEnd)
        ]
        yield (
            f"Whether records are lost that these logs held before any start: {listed(shown, most=4)}. "
            "diff says what other replicas hold."
        )
    if found.without_segment:
        paths = [log.path for log in found.without_segment]
        yield (
            f"Whether {listed(paths, most=4)} held records: only indexes and no .log file are there, and a start creates an empty log. "
            "Look for its segments (other copies, lost+found) before it."
        )


def _end_words(end: int | Absent) -> str:
    return "it has no segment" if isinstance(end, Absent) else f"it ends at {end}"


def _of_strays(found: PredictedCluster) -> Iterator[str]:
    if found.open_strays:
        shown = [f"{log.path} of {found.node(log.input)}" for log in found.open_strays]
        yield (
            f"Whether another replica holds what is not served any more: {listed(shown, most=4)}. A stray stays on the disk, and may be the last full copy. "
            "diff says what other replicas hold."
        )


def _gone_directories(found: PredictedCluster) -> Iterator[str]:
    """Yield what may have been lost of directories and metadata logs before any start."""
    if found.lost:
        shown = [
            f"{one.topic_partition} ({one.value.citation.path}:{one.value.citation.line} says {one.value.value})"
            for one in found.lost
        ]
        yield (
            f"What became of the directories of {listed(shown, most=4)}. A start creates an empty log of a partition that is assigned, and the other replicas "
            "truncate theirs where it is elected. Look for them (lost+found, other copies) before it."
        )
    for node, names in found.emptied:
        it, them = form(len(names), "it was", "they were"), form(len(names), "it", "them")
        yield (
            f"Whether {listed(names, most=4)} held records: the metadata count {node} among those that hold all of {them}, and no directory of {them} is here. Once {node}"
            f" leads, others truncate to what it has. Unless {it} created after these directories were copied, look for {them} (lost+found, other copies) before it starts."
        )
    for one in found.metadata_logs:
        if one.lost_before:
            yield (
                f"Whether records of the metadata log of {found.node(one.input)} are lost: {one.path}: {one.lost_before}. Compare the metadata logs of "
                "all voters with `kforensics metadata` before a controller starts: voters that lack committed records can elect one that lacks them too."
            )
