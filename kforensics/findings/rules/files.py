"""Findings of `verify`: damaged files, what a crash left behind, and what the broker repairs by itself."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kforensics.damage import Absent, Damage, DamageKind, Gravity
from kforensics.evidence.checks.consistency import Verification
from kforensics.evidence.checks.context import (
    CheckedPartition,
    FileKind,
    FileReport,
    PartitionContext,
    Remark,
    base_offset_of,
)
from kforensics.evidence.discovery.partition_dirs import left_by_cleaning
from kforensics.evidence.file_kinds import FILE_KINDS
from kforensics.evidence.model import CheckpointValue, Citation, Input
from kforensics.findings.model import Confidence, Finding, Weight, by_gravity
from kforensics.findings.rule import Rule, ToldApartBy, rule_of
from kforensics.findings.rules.directories import (
    COMPARE_VOTERS,
    FUTURE_BELOW_START,
    MISSING_SEGMENT,
    OF_METADATA,
    future_finding,
)
from kforensics.findings.rules.replicas import EPOCH_LACKED, lacked_epoch_finding
from kforensics.findings.rules.sequences import OF_SEQUENCES, again_findings, remembered_words, sequence_findings
from kforensics.findings.rules.tiers import OF_TIERS, tier_findings
from kforensics.findings.rules.upkeep import (
    OF_UPKEEP,
    cleaner_finding,
    empty_coordinator_finding,
    stamped_finding,
    unfinished_findings,
)
from kforensics.formats.log.batch_table import HEADER_UP_TO_MAGIC
from kforensics.reconcile.observed.own_evidence import HeldEpochs, lacked_epoch
from kforensics.reconcile.replicas.report import IntactReplica, IntactReplicas
from kforensics.units import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, OffsetRange, TopicPartition
from kforensics.words import listed

if TYPE_CHECKING:
    from kforensics.reconcile.logs.tiers import Tiers
    from kforensics.reconcile.observed.leadership import LeadershipAccount

UNREADABLE_BYTES = Rule(
    "KF101",
    Weight.DAMAGE,
    title="bytes of a log that can't be read",
    meaning="Brokers do not look at segments that a start need not scan: a fetch that reaches this place fails or, without check.crcs, hands out wrong bytes.",
    advice="Copy this directory before anything else: a start that scans this segment truncates it here, any other repairs nothing. Replace the replica only from one that holds all of it intact.",
    told_apart_by=ToldApartBy.PLACE,
)

BATCHES_OUT_OF_ORDER = Rule(
    "KF102",
    Weight.DAMAGE,
    title="batches that do not follow each other",
    meaning="Each batch is sound by its checksum, which does not cover base offset and leader epoch; lookups and truncation go wrong here.",
    advice="Compare with another replica before this one leads; do not rename or edit segments in place.",
    told_apart_by=ToldApartBy.PLACE,
)

WRONG_INDEX = Rule(
    "KF103",
    Weight.DECIDE,
    title="an index that contradicts its log",
    meaning="Lookups by offset or time start at a wrong place; brokers since 2.3 do not notice it when they load the log.",
    advice="An index may be set aside, with the broker stopped, only where every batch of its segment is sound. At any start, after a clean stop too, the broker scans a segment without an offset index, truncates it at the first batch that fails and keeps the segments behind it, which leaves a hole and hardly a word in the log. A time index that is set aside stays empty until its segment is recovered.",
    references=("KAFKA-7283",),
    told_apart_by=ToldApartBy.FILE,
)

OF_ZERO_TIMES = (
    "Retention by time takes the segment for one of 1970, however new its records are: where cleanup.policy has delete, its next check deletes it,"
    " some 30 seconds after a start (KAFKA-10207). No start rebuilds the index."
)
RAISE_RETENTION = "Set retention.ms=-1 for the topic before its broker runs, and copy the segment."

WRONG_TRANSACTION_INDEX = Rule(
    "KF104",
    Weight.DECIDE,
    title="a transaction index that contradicts its log",
    meaning="Consumers with read_committed see records of aborted transactions, or miss committed ones.",
    advice="Do not set it aside alone: a missing transaction index counts as one without aborted transactions. It is rebuilt where its segment is recovered, which is safe only where every batch of the segment is sound; a replica that copies the log again is safer.",
    references=("KIP-98",),
    told_apart_by=ToldApartBy.FILE,
)

WRONG_PRODUCER_SNAPSHOT = Rule(
    "KF105",
    Weight.DECIDE,
    title="a producer snapshot that contradicts its log",
    meaning="The broker judges duplicates and open transactions by it after a start.",
    advice="It may be set aside, with the broker stopped, only where another snapshot is there or the stop was unclean. After a clean stop a broker without any snapshot does not read the log for it, and forgets open transactions and the sequences of idempotent producers.",
    references=("KIP-98", "KAFKA-9892"),
    told_apart_by=ToldApartBy.FILE,
)

WRONG_EPOCH_CHECKPOINT = Rule(
    "KF106",
    Weight.DAMAGE,
    title="a leader epoch checkpoint that is wrong",
    meaning="The broker truncates by this file: a wrong line can make it discard committed records, a malformed one takes the log directory offline.",
    advice="Do not start the broker on it before the directory is copied; compare it with the epochs of the batches.",
    references=("KIP-101", "KAFKA-16541"),
    told_apart_by=ToldApartBy.FILE,
)

WRONG_OFFSET_CHECKPOINT = Rule(
    "KF107",
    Weight.DECIDE,
    title="an offset checkpoint that is wrong",
    meaning="A malformed line makes the broker drop the file or take the log directory offline; an offset above the log end shows that records were lost.",
    advice="Look at the other replicas before the broker is started: they may hold what is missing here.",
    told_apart_by=ToldApartBy.FILE,
)

MALFORMED_FILE = Rule(
    "KF108",
    Weight.DAMAGE,
    title="a small file of a node that is malformed",
    meaning="The broker refuses to start, or takes the partition's directory offline.",
    advice="Compare with the same file of a healthy directory; keep the original.",
    told_apart_by=ToldApartBy.FILE,
)

PARTIAL_METADATA_SNAPSHOT = Rule(
    "KF109",
    Weight.DAMAGE,
    title="a metadata snapshot that is not whole",
    meaning="A controller can't load it; without an older one and the log behind it the node has to fetch it again.",
    advice="Keep the snapshots and logs of the other controllers.",
    references=("KIP-630",),
    told_apart_by=ToldApartBy.FILE,
)

UNFINISHED_END = Rule(
    "KF110",
    Weight.NOTE,
    title="the unfinished end of a log",
    meaning="The broker was running or was killed: without a clean-shutdown marker recovery truncates the log here at the next start, and nothing before it is touched. With the marker nothing is truncated: half a batch stays, and takes along what is appended behind it at the next unclean start; zeros stop the broker.",
    advice="Without the marker nothing has to be done; what was behind is on the other replicas if it was committed. With it, copy the directory before the broker starts.",
    told_apart_by=ToldApartBy.PLACE,
)

FALLING_EPOCHS = Rule(
    "KF113",
    Weight.DECIDE,
    title="leader epochs that fall within a log",
    meaning="One log holds two histories: a truncation stopped at the wrong place, and this replica differs from others for good.",
    advice="Compare the replicas with `kforensics diff`, and decide which history counts before any of them is deleted.",
    references=("KIP-279",),
)

MOST_OF_A_FILE = 100
"""Damaged places of one file that become findings of their own; the file's row lists all."""

MOST_CITED = 50
"""Files that a finding about many of them cites; the files' rows name all."""

_SEQUENCE_KINDS = frozenset({DamageKind.ORDER, DamageKind.EPOCH, DamageKind.NAME})

_UNDER_A_SOUND_CHECKSUM = frozenset(
    {DamageKind.RECORD, DamageKind.COUNT, DamageKind.COMPRESSION, DamageKind.TOO_LARGE, DamageKind.UNSUPPORTED}
)
"""The damage that recovery does not see: it checks checksums, and opens no batch."""


_DISCARDED_AT_START = (
    "The broker left no clean-shutdown marker, and this place is at or above the recovery point. The next start truncates the log here "
    "and discards what is behind, sound batches included."
)
_COPY_FIRST = "Copy this directory before the broker starts again."

_TRUNCATED_AT_START = "The broker was running or was killed: recovery truncates the log here at the next start, and nothing before it is touched."
_NOTHING_TO_DO = "Nothing has to be done; what was behind is on the other replicas if it was committed."
_STOPS_AT_ZEROS = (
    "The log directory has a clean-shutdown marker, so nothing is recovered: the broker reads the zeros as a batch of size 0 and stops with "
    "a CorruptRecordException. That start has removed the marker since 2.8: the one after it recovers every log of the directory and truncates the zeros."
)
_STAYS_BEHIND_MARKER = (
    "The log directory has a clean-shutdown marker, so nothing is recovered: these bytes stay, new records are appended behind them, and the "
    "next unclean start truncates the log here, those records included."
)

REBUILT_FILES = Rule(
    "KF111",
    Weight.NOTE,
    title="derived files that the broker rebuilds",
    meaning="After a crash indexes and snapshots lag behind or run ahead of the log; a start recomputes them.",
    advice="Nothing has to be done.",
)

STALE_FILES = Rule(
    "KF112",
    Weight.NOTE,
    title="files that are stale by design",
    meaning="Checkpoints are written now and then, or not before a clean stop; loading repairs them.",
    advice="Nothing has to be done. Numbers above the log end can be a sign of lost records: `kforensics diff` compares the replicas.",
    references=("KAFKA-16541",),
)


_REPAIRED = {
    Gravity.REBUILDABLE: (REBUILT_FILES, "index or producer snapshot", "indexes or producer snapshots"),
    Gravity.STALE: (STALE_FILES, "checkpoint or log", "checkpoints or logs"),
}


def verify_findings(
    verification: Verification,
    intact: IntactReplicas,
    inputs: Sequence[Input],
    leaders: "Mapping[TopicPartition, LeadershipAccount] | None" = None,
    tiers: "Sequence[Tiers]" = (),
) -> tuple[Finding, ...]:
    """Return every finding, the gravest first; what brokers repair by themselves is one note a kind."""
    found: list[Finding] = []
    repaired: dict[Gravity, list[FileReport]] = defaultdict(list)
    for report in verification.files:
        found += _file_findings(report, intact, inputs, leaders or {})
        for gravity in _REPAIRED:
            if any(place.gravity is gravity and not _is_history(report, place) for place in report.damage):
                repaired[gravity].append(report)
    found += _lacked_epochs(verification, inputs, leaders or {})
    found += _stuck_futures(verification, inputs)
    found += _repaired_findings(repaired)
    found += _remark_findings(verification)
    for one in verification.partitions:
        found += _upkeep_findings(one, inputs)
        found += _sequence_findings(one, inputs)
    found += _topic_id_findings(verification, inputs)
    found += [one for each in tiers for one in tier_findings(each)]
    return by_gravity(tuple(found))


def _sequence_findings(one: CheckedPartition, inputs: Sequence[Input]) -> Iterator[Finding]:
    number, partition = one.context.input, _partition_of(one.context)
    about: dict[str, Any] = {
        "where": one.context.path,
        "topic_partition": partition,
        "broker_id": inputs[number].broker_id,
        "citations": (Citation(input=number, path=one.context.path),),
    }
    whereabouts = remembered_words(one.remembered)
    yield from sequence_findings(one.sequence_breaks, **about, whereabouts=whereabouts)
    yield from again_findings(one.written_again, **about, confidence=Confidence.PROVEN)


def _upkeep_findings(one: CheckedPartition, inputs: Sequence[Input]) -> Iterator[Finding]:
    partition, number = _partition_of(one.context), one.context.input
    for stamp in one.stamped_ahead:
        yield stamped_finding(stamp, input_number=number, partition=partition, broker_id=inputs[number].broker_id)
    about: dict[str, Any] = {
        "topic_partition": partition,
        "broker_id": inputs[number].broker_id,
        "citations": (Citation(input=number, path=one.context.path),),
    }
    yield from _of_segments(one.context, about)
    if one.cleaner_lag is not None and isinstance(partition, TopicPartition):
        yield cleaner_finding(
            one.cleaner_lag,
            where=one.context.path,
            partition=partition,
            broker_id=inputs[number].broker_id,
            citation=Citation(input=number, path=one.context.path),
        )


def _of_segments(context: PartitionContext, about: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what the names and lengths of the segments of a log in use show."""
    if isinstance(context.directory, Absent) or context.directory.state != "live":
        return
    yield from unfinished_findings(left_by_cleaning(context.files), where=context.path, about=about)
    live = context.of_kind(FileKind.SEGMENT)
    is_coordinator = context.directory.topic in {OFFSETS_TOPIC, TRANSACTIONS_TOPIC}
    if is_coordinator and len(live) > 1 and not context.are_logs_left_out and not any(one.length for one in live):
        yield empty_coordinator_finding(context.path, [base_offset_of(one) for one in live], about=about)


def _stuck_futures(verification: Verification, inputs: Sequence[Input]) -> Iterator[Finding]:
    """Yield the future logs that end below the start of the log that they are to replace."""
    starts: dict[tuple[int | Absent, int, TopicPartition], tuple[Citation, int]] = {}
    futures = []
    for one in verification.partitions:
        directory, number = one.context.directory, one.context.input
        segments = one.context.of_kind(FileKind.SEGMENT)
        if isinstance(directory, Absent) or not segments or directory.state not in {"live", "future"}:
            continue
        broker, bases = inputs[number].broker_id, [base_offset_of(file) for file in segments]
        key = (broker, number if isinstance(broker, Absent) else 0, directory.topic_partition)
        here = Citation(input=number, path=one.context.path)
        if directory.state == "future":
            futures.append((key, (here, max((bases[-1], *(part.last_offset + 1 for part in one.coverage))))))
        else:
            claimed = one.context.log_start
            starts[key] = (here, max(bases[0], claimed.value if isinstance(claimed, CheckpointValue) else 0))
    for key, future in futures:
        current = starts.get(key)
        if current is not None and future[1] < current[1]:
            yield future_finding(partition=key[2], broker_id=key[0], future=future, current=current)


def epochs_by_partition(verification: Verification, inputs: Sequence[Input]) -> dict[TopicPartition, list[HeldEpochs]]:
    """Return the last leader epochs of every directory in use that has a checkpoint of them."""
    held: dict[TopicPartition, list[HeldEpochs]] = defaultdict(list)
    for one in verification.partitions:
        directory = one.context.directory
        if isinstance(directory, Absent) or directory.state != "live" or not one.leader_epochs:
            continue
        held[directory.topic_partition].append(
            HeldEpochs(
                inputs[one.context.input].broker_id,
                one.leader_epochs[-1].leader_epoch,
                max((epoch for part in one.coverage for epoch, _ in part.epochs), default=-1),
                max((part.last_offset + 1 for part in one.coverage), default=one.leader_epochs[-1].start_offset),
                Citation(input=one.context.input, path=f"{one.context.path}/leader-epoch-checkpoint"),
            )
        )
    return held


def _lacked_epochs(
    verification: Verification, inputs: Sequence[Input], leaders: "Mapping[TopicPartition, LeadershipAccount]"
) -> Iterator[Finding]:
    held = epochs_by_partition(verification, inputs) if leaders else {}
    for partition, account in leaders.items():
        lacked = lacked_epoch(account, held.get(partition, ()))
        if lacked is not None:
            yield lacked_epoch_finding(lacked, partition)


def _is_history(report: FileReport, place: Damage) -> bool:
    return report.kind is FileKind.SEGMENT and place.kind is DamageKind.EPOCH and place.gravity is Gravity.STALE


def _file_findings(
    report: FileReport,
    intact: IntactReplicas,
    inputs: Sequence[Input],
    leaders: "Mapping[TopicPartition, LeadershipAccount]",
) -> Iterator[Finding]:
    owner = intact.owner(report.input, report.path)
    context = None if owner is None else owner.context
    for place in report.damage[:MOST_OF_A_FILE]:
        holders = () if owner is None else intact.holders(owner, place)
        if _is_history(report, place):
            rule = FALLING_EPOCHS
        elif place.gravity is Gravity.TORN_TAIL:
            rule = UNFINISHED_END
        elif place.gravity is not Gravity.DAMAGE:
            continue
        elif place.kind is DamageKind.MISSING:
            rule = MISSING_SEGMENT
        elif report.kind is FileKind.SEGMENT:
            rule = BATCHES_OUT_OF_ORDER if place.kind in _SEQUENCE_KINDS else UNREADABLE_BYTES
        else:
            code = FILE_KINDS[report.kind].damage_code
            assert not isinstance(code, Absent), f"{report.kind} is not checked"
            rule = rule_of(code)
        is_incomplete = rule is UNREADABLE_BYTES and _will_be_truncated(context, place)
        meaning, advice = (_DISCARDED_AT_START, _COPY_FIRST) if is_incomplete else ("", "")
        if rule is UNFINISHED_END:
            meaning, advice = _of_torn_tail(context)
        elif rule is UNREADABLE_BYTES and (words := _of_clean_tail(context, report, place)):
            meaning, advice = words, _COPY_FIRST
        elif rule is MISSING_SEGMENT and context is not None and context.is_metadata:
            meaning, advice = OF_METADATA, COMPARE_VOTERS
        elif owner is not None and rule in {WRONG_INDEX, WRONG_TRANSACTION_INDEX}:
            advice = _of_index(owner, report)
            if report.kind is FileKind.TIME_INDEX and place.kind is DamageKind.ZEROS:
                meaning, advice = OF_ZERO_TIMES, f"{RAISE_RETENTION} {advice}"
        elif owner is not None and rule is WRONG_PRODUCER_SNAPSHOT:
            advice = _of_snapshot(owner.context)
        partition = _partition_of(context)
        account = (
            leaders.get(partition) if isinstance(partition, TopicPartition) and rule in _OF_SERVED_RECORDS else None
        )
        led, cited_lead = _who_led(account, inputs[report.input].broker_id)
        yield rule.states(
            _statement(report, place, inputs) + led,
            meaning=meaning,
            advice=" ".join(words for words in (advice, _advice(holders)) if words),
            topic_partition=partition,
            broker_id=inputs[report.input].broker_id,
            offsets=place.offsets_lost,
            citations=(Citation(input=report.input, path=report.path, span=place.span), *cited_lead),
        )


TOLD_IN_FULL = frozenset(
    {FALLING_EPOCHS.code, EPOCH_LACKED.code, FUTURE_BELOW_START.code, *OF_SEQUENCES, *OF_UPKEEP, *OF_TIERS}
)
"""What the screen says in a paragraph of its own: no file is damaged by it, and no start repairs it."""

_OF_SERVED_RECORDS = frozenset({UNREADABLE_BYTES, BATCHES_OUT_OF_ORDER, MISSING_SEGMENT})


def _who_led(account: "LeadershipAccount | None", broker_id: int | Absent) -> tuple[str, tuple[Citation, ...]]:
    """Say whether consumers were served from a damaged log, where any input shows who led last."""
    last = None if account is None else next((s for s in reversed(account.states) if isinstance(s.leader, int)), None)
    if last is None:
        return "", ()
    who = "this broker" if last.leader == broker_id else f"broker {last.leader}"
    return f"; {who} led the partition last, in leader epoch {last.leader_epoch}", (last.citation,)


def _of_torn_tail(context: PartitionContext | None) -> tuple[str, str]:
    """Return what the next start makes of the unfinished end of a log, and what to do, where it is known that the start recovers it."""
    if context is None or not (context.is_metadata or context.clean_shutdown is False):
        return "", ""
    return _TRUNCATED_AT_START, _NOTHING_TO_DO


def _of_clean_tail(context: PartitionContext | None, report: FileReport, place: Damage) -> str:
    """Return what becomes of bytes behind the last batch after a clean shutdown, where nothing is recovered.

    `LogSegment.readNextOffset` reads on behind the last index entry without a checksum, up to 4.3.1.
    """
    if context is None or context.is_metadata or context.clean_shutdown is not True:
        return ""
    live = context.of_kind(FileKind.SEGMENT)
    is_tail = place.span.position + place.span.length == report.length and isinstance(place.next_good, Absent)
    if not is_tail or not live or live[-1].path != report.path:
        return ""
    is_read_as_batch = place.kind is DamageKind.ZEROS and place.span.length > HEADER_UP_TO_MAGIC
    return _STOPS_AT_ZEROS if is_read_as_batch else _STAYS_BEHIND_MARKER


def _of_index(owner: CheckedPartition, report: FileReport) -> str:
    """Why an index must not be set aside, where its segment is known to be damaged."""
    segment = report.path.rpartition(".")[0] + ".log"
    place = _first_bad(owner, segment)
    if place is None:
        return ""
    return (
        f"Do not set it aside: its segment has a batch that fails at byte {place.span.position}. A broker that rebuilds the index truncates the "
        "segment there, after a clean stop too, and keeps the segments behind it."
    )


def _first_bad(owner: CheckedPartition, path: str) -> Damage | None:
    """Return the first place of a segment at which a scan by the broker ends."""
    bad = [
        place
        for report in owner.reports
        if report.path == path
        for place in report.damage
        if place.gravity is Gravity.DAMAGE and place.kind not in _SEQUENCE_KINDS | _UNDER_A_SOUND_CHECKSUM
    ]
    return min(bad, key=lambda place: place.span.position, default=None)


def _of_snapshot(context: PartitionContext) -> str:
    """Why the only snapshot must not be set aside after a clean stop."""
    if context.clean_shutdown is not True or len(context.of_kind(FileKind.PRODUCER_SNAPSHOT)) > 1:
        return ""
    return (
        "Do not set it aside: it is the only snapshot and the stop was clean, so a broker without it, or one that can't read it, forgets open "
        "transactions and the sequences of idempotent producers. Copy the directory, and let another replica lead."
    )


def _will_be_truncated(context: PartitionContext | None, place: Damage) -> bool:
    """Whether the next start is known to recover the log from a place at or before this one."""
    lost = place.offsets_lost
    return (
        context is not None
        and place.kind not in _UNDER_A_SOUND_CHECKSUM
        and context.clean_shutdown is False
        and context.is_live
        and isinstance(lost, OffsetRange)
        and context.may_recover(lost.first)
    )


def _statement(report: FileReport, place: Damage, inputs: Sequence[Input]) -> str:
    lost = place.offsets_lost
    offsets = f", offsets {lost.first}..{lost.last}" if isinstance(lost, OffsetRange) else ""
    where = (
        f"{report.path} of {who(inputs[report.input])}, byte {place.span.position}, {place.span.length} bytes{offsets}"
    )
    return f"{where}: {place.kind}: expected {place.expected}, found {place.found}"


def who(described: Input) -> str:
    """Return a node in words."""
    return (
        f"{described.kind} at {described.path}"
        if isinstance(described.broker_id, Absent)
        else f"broker {described.broker_id}"
    )


def _advice(holders: Sequence[IntactReplica]) -> str:
    if not holders:
        return ""
    names = dict.fromkeys(  # of several moments a broker holds it once
        holder.path if isinstance(holder.broker_id, Absent) else f"broker {holder.broker_id}" for holder in holders
    )
    return f"Held intact by {listed(list(names))}: keep a copy of it, and do not let this replica become leader before it is replaced."


def _partition_of(context: PartitionContext | None) -> TopicPartition | Absent:
    return Absent.NOT_APPLICABLE if context is None else context.topic_partition


def _repaired_findings(repaired: dict[Gravity, list[FileReport]]) -> Iterator[Finding]:
    for gravity, (rule, one, many) in _REPAIRED.items():
        reports = repaired.get(gravity, [])
        if reports:
            count = f"1 {one} is" if len(reports) == 1 else f"{len(reports)} {many} are"
            what = (
                "out of step with the log, and rebuilt from it at the next start"
                if gravity is Gravity.REBUILDABLE
                else "behind or ahead of each other, as brokers leave and repair them"
            )
            yield rule.states(
                f"{count} {what}",
                citations=tuple(
                    Citation(
                        input=report.input,
                        path=report.path,
                        span=next(place.span for place in report.damage if place.gravity is gravity),
                    )
                    for report in reports[:MOST_CITED]
                ),
            )


MISSING_INDEX = Rule(
    "KF114",
    Weight.DAMAGE,
    title="indexes that are not there",
    meaning="At any start, after a clean stop too, the broker scans a segment without an offset index and rebuilds it. That loses nothing where every batch of the segment is sound; else the segment is truncated at the first batch that fails while the segments behind it stay: a hole. A missing time index stays empty until its segment is recovered.",
    advice="Check these segments with `kforensics verify --level crc` or deeper before the broker starts. Where a batch fails, put the index back from a copy, or replace the replica.",
)

MAYBE_LOST_SEGMENTS = Rule(
    "KF117",
    Weight.DECIDE,
    title="a log that may have lost segments",
    meaning="With the segments at the beginning of a log a broker deletes the leader epochs below, and by a clean stop has written where the log begins. So these were taken away by something else, "
    "unless the broker was killed or copied while it deleted them, or the topic has remote storage. A hole between two segments is ordinary only where a cleaner has been.",
    advice="Look for the segments in lost+found, in other copies of the directory and on the other replicas. Where remote storage holds them, nothing has to be done.",
    references=("KIP-405",),
    told_apart_by=ToldApartBy.FILE,
)


def _remark_findings(verification: Verification) -> Iterator[Finding]:
    harmless: list[tuple[PartitionContext, Remark]] = []
    for one in verification.partitions:
        for remark in one.remarks:
            if isinstance(remark.offsets, OffsetRange):
                yield MAYBE_LOST_SEGMENTS.states(
                    remark.statement,
                    topic_partition=_partition_of(one.context),
                    offsets=remark.offsets,
                    citations=(Citation(input=one.context.input, path=remark.path),),
                )
                continue
            place = _first_bad(one, remark.path) if remark.file_kind is FileKind.OFFSET_INDEX else None
            if place is None:
                harmless.append((one.context, remark))
                continue
            yield MISSING_INDEX.states(
                f"{remark.path} has no offset index and a batch that fails at byte {place.span.position}: the next start truncates the segment there",
                meaning="The broker scans a segment without an index at any start, after a clean stop too, and keeps the segments behind it: a hole.",
                advice="Copy the directory before the broker starts; put the index back from a copy, or replace the replica.",
                topic_partition=_partition_of(one.context),
                citations=(Citation(input=one.context.input, path=remark.path, span=place.span),),
            )
    if harmless:
        count = "1 index is" if len(harmless) == 1 else f"{len(harmless)} indexes are"
        yield MISSING_INDEX.states(
            weight=Weight.NOTE,
            statement=f"{count} missing: {harmless[0][1].statement}",
            citations=tuple(
                Citation(input=context.input, path=remark.path) for context, remark in harmless[:MOST_CITED]
            ),
        )


SEVERAL_TOPIC_IDS = Rule(
    "KF115",
    Weight.NOTE,
    title="one topic, several topic ids on a node",
    meaning="Some of its partitions are left from a topic that was deleted and created again under its name.",
    advice="The id in the cluster metadata says which are current; keep the others until it is clear that nothing of them is needed.",
    references=("KIP-516",),
)


def _topic_id_findings(verification: Verification, inputs: Sequence[Input]) -> Iterable[Finding]:
    ids: dict[tuple[int, str], dict[str, list[PartitionContext]]] = defaultdict(lambda: defaultdict(list))
    for one in verification.partitions:
        directory = one.context.directory
        if not isinstance(one.topic_id, Absent) and not isinstance(directory, Absent) and directory.state == "live":
            ids[one.context.input, directory.topic][one.topic_id].append(one.context)
    for (index, topic), by_id in ids.items():
        if len(by_id) > 1:
            yield SEVERAL_TOPIC_IDS.states(
                f"partitions of {topic} on {who(inputs[index])} have {len(by_id)} topic ids: {', '.join(sorted(by_id))}",
                broker_id=inputs[index].broker_id,
                citations=tuple(
                    Citation(input=index, path=f"{contexts[0].path}/partition.metadata") for contexts in by_id.values()
                ),
            )
