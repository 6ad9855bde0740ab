"""Open and torn transactions of every replica, joined with what their coordinators know (KIP-664 without a cluster)."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kforensics.ask.model import Ask
from kforensics.case.leaders import Leaders, leaders_of
from kforensics.case.model import Case
from kforensics.case.offsets_log import positions_now
from kforensics.case.opening import open_case
from kforensics.case.wanted import check_wanted, is_wanted, not_there
from kforensics.commands.graver import no_calmer_in_cluster
from kforensics.commands.loading import DirectoryOnDisk
from kforensics.commands.redaction.coordinators import GROUP, TRANSACTIONAL_ID, CoordinatorRedaction, renaming
from kforensics.commands.redaction.pseudonyms import pseudonyms_of
from kforensics.commands.result import Conclusion, Result
from kforensics.commands.transaction_state_log import (
    INTERNAL_TOPICS,
    StateLogs,
    judged_replicas,
    last_known_time,
    scan_replicas,
)
from kforensics.damage import Absent
from kforensics.evidence.coordinators.group_log import CommitKey, Name
from kforensics.evidence.coordinators.open_transactions import (
    Marker,
    ReplicaTransactions,
    read_producers,
)
from kforensics.evidence.coordinators.replica_log import list_log
from kforensics.evidence.coordinators.transaction_log import TransactionState
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.replica.loader_reader import FoundLogs, find_logs
from kforensics.findings.answers.transactions import JudgedTransactions
from kforensics.findings.rules.coordinators import transaction_findings
from kforensics.formats.log.loader_values import LoadFailure
from kforensics.formats.messages.control import ControlType
from kforensics.protocol.coordinators import TransactionStatus
from kforensics.protocol.loading.disk import LoadOutcome, LoadSettings
from kforensics.protocol.loading.versions import NEWEST_MODELLED, LoadingRules, loading_rules
from kforensics.reconcile.groups.replay import Position
from kforensics.reconcile.transactions.partition import JudgedTransaction, PartitionTransactions, split_transactions
from kforensics.reconcile.transactions.verdicts import Coordinators, what_ends
from kforensics.units import TRANSACTIONS_TOPIC, TopicPartition

UNCOMMITTED = frozenset(
    {TransactionStatus.ONGOING, TransactionStatus.PREPARE_ABORT, TransactionStatus.PREPARE_EPOCH_FENCE}
)
"""Of unfinished transactions: no commit was decided."""

LARGEST_PLAYED = 4 << 20
"""Bytes of a log whose start is played where the start reads it: it takes as long as with `predict`, and memory for every producer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedBy:
    """The offsets that an open transaction holds back, and what ends it."""

    to_end_it: str
    blocked_records: int
    """Offsets from its first one to the log end, which read_committed consumers don't get."""
    blocked_groups: tuple[Name, ...]
    """Groups with a position in the partition that is not behind its first offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactions:
    """The transactions of the inputs."""

    now_ms: int
    coordinators: Coordinators
    partitions: tuple[PartitionTransactions, ...]
    """The replicas to show."""
    endings: Mapping[tuple[int, str, int], EndedBy]
    """By input, directory and producer id."""
    history: tuple[TransactionState, ...] = ()
    """Every state on disk of the transactional ids that were asked for."""
    skipped_records: int = 0
    """Records of `__transaction_state` of unknown type or version."""
    after_start: Mapping[tuple[int, str], int | Absent] = field(default_factory=dict)
    """By input and directory of replicas with open transactions: the last stable offset that a start of the broker as it lies there makes of the log."""
    waiting: tuple[TransactionState, ...] = field(default=())
    """Unfinished transactions of the coordinators with a partition that is not here."""

    def ending(self, partition: PartitionTransactions, one: JudgedTransaction) -> EndedBy:
        """Return what an open transaction of a replica holds back, and what ends it."""
        place = partition.replica.place
        return self.endings[place.state.input, place.path, one.open.producer_id]


def run(request: Ask, *, case: Case | None = None) -> Result[Transactions]:
    """Find and judge the transactions that have no end, and the ends that have no transaction."""
    case = open_case(request, again="transactions") if case is None else case.asked(request)
    jobs = case.jobs
    given = leaders_of(case)
    live = given.live()
    check_wanted(request, live)
    wanted = {tp: places for tp, places in live.items() if is_wanted(tp, request)}
    problems = [*given.places.problems, *given.cluster.problems]
    scans = scan_replicas(request, wanted, jobs)
    problems += [problem for scan in scans for problem in scan.problems]
    states = StateLogs(given, until_ms=request.at_ms)
    problems = list(dict.fromkeys([*problems, *states.problems]))
    open_producers = {one.producer_id for scan in scans for one in scan.open}
    coordinators = states.joined(states.ids_of(open_producers) | request.transactional_ids)
    # Whether they hold a partition back that is not here is not known.
    waiting = tuple(
        state
        for state in coordinators.by_id.values()
        if not state.is_removed and state.partitions and any(one not in live for one in state.partitions)
    )
    coordinators = replace(
        coordinators,
        commits=_commits_elsewhere(live, scans, coordinators, request.at_ms),
        partly=frozenset(one.producer_id for one in waiting),
    )
    absent = tuple(one for one in given.without_log() if one.topic != TRANSACTIONS_TOPIC and is_wanted(one, request))
    _check_ids(request.transactional_ids, coordinators)
    if coordinators.topic.is_complete and not absent:
        _check_producers(request.producer_ids, scans, coordinators)
    pseudonyms = pseudonyms_of(request)
    redaction = None if pseudonyms is None else CoordinatorRedaction(pseudonyms, given)
    if redaction is not None:
        coordinators = redaction.coordinators(coordinators, request.transactional_ids)
        named = renaming(redaction, TRANSACTIONAL_ID)
        waiting = tuple(one._replace(transactional_id=named(one.transactional_id)) for one in waiting)
        request = replace(request, transactional_ids=frozenset(str(named(one)) for one in request.transactional_ids))
    now_ms = last_known_time(given, scans, coordinators) if request.at_ms is None else request.at_ms
    judged = _with_split(judged_replicas(request, given, scans, coordinators, now_ms), states, live, redaction)
    asked = _of_producers(request, judged)
    positions = positions_now(given) if any(one.open for one in asked) else {}
    endings = _endings(given, asked, coordinators, positions, renaming(redaction, GROUP))
    after_start = _after_start(given, asked, now_ms)
    if redaction is not None:
        asked = list(map(redaction.partition, asked))
        endings, after_start = redaction.by_path(endings), redaction.by_path(after_start)
    body = Transactions(
        now_ms=now_ms,
        coordinators=coordinators,
        partitions=_shown(request, asked),
        endings=endings,
        after_start=after_start,
        history=tuple(
            state for name in sorted(request.transactional_ids) for state in coordinators.history.get(name, ())
        ),
        skipped_records=states.skipped,
        waiting=waiting,
    )
    answer = JudgedTransactions(
        judged=asked,
        coordinators=coordinators,
        endings={key: one.to_end_it for key, one in endings.items()},
        waiting=body.waiting,
        has_transactions=any(scan.has_transactions for scan in scans),
        unread=len(problems),
        skipped=states.skipped,
        why_skipped=states.why_skipped,
        absent=absent,
        cut_short=_cut_short(given, request, scans, states),
        asked=(*sorted(request.transactional_ids), *(f"producer {one}" for one in sorted(request.producer_ids))),
    ).answer()
    concluded = Conclusion(
        answer=answer, findings=transaction_findings(asked), problems=(*problems, *given.cluster.left_out)
    )
    about = {TRANSACTIONS_TOPIC, *(one.topic_partition.topic for one in asked if one.open or one.torn)}
    result = Result(
        command="transactions",
        inputs=given.inputs.described,
        body=body,
        concluded=no_calmer_in_cluster("transactions", concluded, case, about),
    )
    return result if redaction is None else redaction.result(result)


def _cut_short(
    given: Leaders,
    request: Ask,
    scans: Sequence[ReplicaTransactions],
    states: StateLogs,
) -> tuple[TopicPartition, ...]:
    """Return the partitions of which each log here ends below what was written of it."""
    ends: dict[TopicPartition, int] = {}
    for one in scans if request.at_ms is None else ():
        ends[one.place.topic_partition] = max(one.log_end_offset, ends.get(one.place.topic_partition, 0))
    ends |= states.ends()
    unread = {one.place.topic_partition for one in scans if one.problems}
    # Of what could not be read the problems tell.
    return tuple(sorted(one for one, end in ends.items() if end < given.promised_end(one) and one not in unread))


def _check_ids(wanted: frozenset[str], coordinators: Coordinators) -> None:
    """Refuse a transactional id that no state names, unless its partition may not be here."""
    for name in sorted(wanted):
        if (
            name not in coordinators.by_id
            and name not in coordinators.history
            and not coordinators.topic.may_lack(name)
        ):
            known = [one for one in coordinators.by_id if isinstance(one, str)]
            raise not_there(f"no coordinator knows transactional id {name} (--transactional-id)", name, known)


def _check_producers(wanted: frozenset[int], scans: Sequence[ReplicaTransactions], coordinators: Coordinators) -> None:
    """Refuse a producer id that no coordinator and no transactional batch names."""
    known = set(coordinators.by_producer)
    known |= {one.producer_id for scan in scans for one in scan.open}
    known |= {one.producer_id for scan in scans for one in scan.lone}
    missing = wanted - known
    for scan in scans if missing else ():
        rows = read_producers(scan.place, np.array(sorted(missing), dtype=np.int64)).rows
        missing -= set(rows["producer_id"].tolist())
    for one in sorted(missing):
        words = f"no transaction of producer {one} is in the wanted logs (--producer-id)"
        raise not_there(words, str(one), map(str, known))


def _commits_elsewhere(
    live: Mapping[TopicPartition, tuple[PartitionPlace, ...]],
    scans: Sequence[ReplicaTransactions],
    coordinators: Coordinators,
    until_ms: int | None,
) -> dict[int, tuple[TopicPartition, Marker]]:
    """Commit markers of open transactions that no coordinator holds for committed, in another partition of theirs."""
    opened = {(one.producer_id, scan.place.topic_partition) for scan in scans for one in scan.open}
    wanted: dict[TopicPartition, set[int]] = defaultdict(set)
    for producer in {one for one, _ in opened}:
        state = coordinators.by_producer.get(producer)
        if state is None or state.status not in UNCOMMITTED or state.started_ms < 0:
            continue
        for partition in state.partitions:
            if (producer, partition) not in opened and partition in live:
                wanted[partition].add(producer)
    found: dict[int, tuple[TopicPartition, Marker]] = {}
    for partition, producers in wanted.items():
        for place in live[partition]:
            read = read_producers(place, np.array(sorted(producers), dtype=np.int64), until_ms=until_ms)
            for marker in read.markers.values():
                started_ms = coordinators.by_producer[marker.producer_id].started_ms
                if marker.kind is ControlType.COMMIT and marker.time_ms >= started_ms:
                    found.setdefault(marker.producer_id, (partition, marker))
    return found


def _with_split(
    judged: Sequence[PartitionTransactions],
    states: StateLogs,
    live: Mapping[TopicPartition, tuple[PartitionPlace, ...]],
    redaction: CoordinatorRedaction | None,
) -> list[PartitionTransactions]:
    """Return the replicas with the transactions that were committed in another partition and aborted in theirs."""
    late = states.aborted_late()
    if not late:
        return list(judged)
    wanted = np.array(sorted({producer for one in late for producer in one.producer_ids}), dtype=np.int64)
    contents = {
        partition: [read_producers(place, wanted, until_ms=states.until_ms) for place in places]
        for partition, places in live.items()
        if partition.topic not in INTERNAL_TOPICS
    }
    if redaction is not None:
        late = [redaction.aborted(one) for one in late]
    split = split_transactions(late, contents)
    places = [(one, one.replica.place) for one in judged]
    return [replace(one, torn=(*one.torn, *split.get((place.state.input, place.path), ()))) for one, place in places]


def _of_producers(request: Ask, judged: Sequence[PartitionTransactions]) -> list[PartitionTransactions]:
    """Return the replicas with the transactions of the producers that were asked for; a last stable offset stays that of all."""
    if not request.producer_ids and not request.transactional_ids:
        return list(judged)

    def is_asked_for(producer_id: int, transactional_id: object) -> bool:
        return producer_id in request.producer_ids or transactional_id in request.transactional_ids

    return [one.only(is_asked_for) for one in judged]


def _shown(request: Ask, judged: Sequence[PartitionTransactions]) -> tuple[PartitionTransactions, ...]:
    match "open" if request.open else "all" if request.all else "":
        case "all":
            return tuple(judged)
        case "open":
            return tuple(one for one in judged if one.open)
    return tuple(one for one in judged if one.open or one.torn)


def _endings(
    given: Leaders,
    judged: Sequence[PartitionTransactions],
    coordinators: Coordinators,
    positions: Mapping[CommitKey, Position],
    group_name: Callable[[Name], Name],
) -> dict[tuple[int, str, int], EndedBy]:
    readers: dict[tuple[Name, int], list[tuple[Name, int]]] = defaultdict(list)
    for key, position in positions.items():
        readers[key.topic, key.partition].append((group_name(key.group), position.offset))
    found: dict[tuple[int, str, int], EndedBy] = {}
    for one in judged:
        place = one.replica.place
        for each in one.open:
            words = what_ends(
                each.open,
                one.topic_partition,
                each.judgement,
                coordinators,
                last_marker=each.last_marker,
                version=given.version,
            )
            found[place.state.input, place.path, each.open.producer_id] = EndedBy(
                to_end_it=words,
                blocked_records=max(one.replica.log_end_offset - each.open.first_offset, 0),
                blocked_groups=tuple(
                    sorted(
                        {group for group, offset in readers[one.topic_partition] if offset <= each.open.first_offset},
                        key=str,
                    )
                ),
            )
    return found


def _after_start(
    given: Leaders, judged: Sequence[PartitionTransactions], now_ms: int
) -> dict[tuple[int, str], int | Absent]:
    """Return what a start leaves of open transactions: without any producer snapshot a clean one forgets them (`rebuildProducerState`)."""
    try:
        rules = loading_rules(given.version or NEWEST_MODELLED)
    except ValueError:
        return {}
    logs: dict[int, tuple[FoundLogs, ...]] = {}
    found: dict[tuple[int, str], int | Absent] = {}
    for one in judged:
        place = one.replica.place
        number = place.state.input
        if not one.open or not given.inputs.found[number].log_dirs:
            continue
        # A start reads all of a log that it does not trust.
        reads_log = not place.state.clean_shutdown or bool(list_log(place).snapshots)
        if reads_log and place.length > LARGEST_PLAYED:
            found[number, place.path] = Absent.UNKNOWN
            continue
        if number not in logs:
            logs[number] = find_logs(number, given.inputs.found[number], [])
        found[number, place.path] = _stable_after_load(place, logs[number], rules, now_ms)
    return found


def _stable_after_load(
    place: PartitionPlace, logs: Sequence[FoundLogs], rules: LoadingRules, now_ms: int
) -> int | Absent:
    log_dir = next(one for one in logs if one.path == place.state.log_dir)
    name = place.path.rpartition("/")[2]
    directory = next((one for one in log_dir.directories if one.name == name), None)
    if directory is None:
        return Absent.UNKNOWN
    points, starts = log_dir.recovery_points, log_dir.log_starts
    outcome = DirectoryOnDisk(place.state.root / place.path, directory.content().files).load(
        clean_shutdown=log_dir.has_marker,
        recovery_point=0 if isinstance(points, LoadFailure) else points.get(place.topic_partition, 0),
        log_start_offset=0 if isinstance(starts, LoadFailure) else starts.get(place.topic_partition, 0),
        settings=LoadSettings(now_ms=max(now_ms, 0)),
        rules=rules,
    )
    if not isinstance(outcome, LoadOutcome) or isinstance(outcome.state, Absent):
        return Absent.UNKNOWN
    return outcome.state.last_stable_offset
