"""Findings of `verify`: damaged files, what a crash left behind, and what the broker repairs by itself."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kforensics.damage import Absent, Damage, DamageKind, Gravity
from kforensics.evidence.checks.consistency import Verification
from kforensics.evidence.checks.context import CheckedPartition, FileKind, FileReport, PartitionContext, Remark
from kforensics.evidence.file_kinds import FILE_KINDS
from kforensics.evidence.model import Citation, Input
from kforensics.findings.missing import COMPARE_VOTERS, OF_METADATA
from kforensics.findings.model import Finding, Severity, by_gravity, finding
from kforensics.formats.log.batch_table import HEADER_UP_TO_MAGIC
from kforensics.reconcile.replicas.holders import IntactReplica, IntactReplicas
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import listed

if TYPE_CHECKING:
    from kforensics.reconcile.observed.leadership import LeadershipAccount

MOST_OF_A_FILE = 100
"""Damaged places of one file that become findings of their own; the file's row lists all."""

MOST_CITED = 50
"""Files that a finding about many of them cites; the files' rows name all."""

_SEQUENCE_KINDS = frozenset({DamageKind.ORDER, DamageKind.EPOCH, DamageKind.NAME})

_UNDER_A_SOUND_CHECKSUM = frozenset(
    {DamageKind.RECORD, DamageKind.COUNT, DamageKind.COMPRESSION, DamageKind.TOO_LARGE, DamageKind.UNSUPPORTED}
)
"""The damage that recovery does not see: it checks checksums, and opens no batch."""

_REBUILT = frozenset({"KF103", "KF104", "KF105", "KF107"})
"""Damage of files that a broker can do without: a warning, not an error."""

_DISCARDED_AT_START = (
    "The broker left no clean-shutdown marker, and this place is at or above the recovery point: the next start truncates the log here "
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

_REPAIRED = {
    Gravity.REBUILDABLE: ("KF111", "index or producer snapshot", "indexes or producer snapshots"),
    Gravity.STALE: ("KF112", "checkpoint or log", "checkpoints or logs"),
}


def verify_findings(
    verification: Verification,
    intact: IntactReplicas,
    inputs: Sequence[Input],
    leaders: "Mapping[TopicPartition, LeadershipAccount] | None" = None,
) -> tuple[Finding, ...]:
    """Return every finding, the gravest first; what brokers repair by themselves is one note a kind.

    Args:
        intact: who holds a damaged range intact.
        leaders: who led the damaged partitions, as far as any input shows it.
    """
    found: list[Finding] = []
    repaired: dict[Gravity, list[FileReport]] = defaultdict(list)
    for report in verification.files:
        found += _file_findings(report, intact, inputs, leaders or {})
        for gravity in _REPAIRED:
            if any(place.gravity is gravity and not _is_history(report, place) for place in report.damage):
                repaired[gravity].append(report)
    found += _repaired_findings(repaired)
    found += _remark_findings(verification)
    found += _topic_id_findings(verification, inputs)
    return by_gravity(tuple(found))


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
            code, severity = "KF113", Severity.WARNING
        elif place.gravity is Gravity.TORN_TAIL:
            code, severity = "KF110", Severity.NOTE
        elif place.gravity is not Gravity.DAMAGE:
            continue
        elif place.kind is DamageKind.MISSING:
            code, severity = "KF116", Severity.ERROR
        elif report.kind is FileKind.SEGMENT:
            code, severity = ("KF102" if place.kind in _SEQUENCE_KINDS else "KF101"), Severity.ERROR
        else:
            code = FILE_KINDS[report.kind].damage_code
            assert not isinstance(code, Absent), f"{report.kind} is not checked"
            severity = Severity.WARNING if code in _REBUILT else Severity.ERROR
        is_incomplete = code == "KF101" and _will_be_truncated(context, place)
        meaning, advice = (_DISCARDED_AT_START, _COPY_FIRST) if is_incomplete else ("", "")
        if code == "KF110":
            meaning, advice = _of_torn_tail(context)
        elif code == "KF101" and (words := _of_clean_tail(context, report, place)):
            meaning, advice = words, _COPY_FIRST
        elif code == "KF116" and context is not None and context.is_metadata:
            meaning, advice = OF_METADATA, COMPARE_VOTERS
        elif owner is not None and code in {"KF103", "KF104"}:
            advice = _of_index(owner, report)
        elif owner is not None and code == "KF105":
            advice = _of_snapshot(owner.context)
        partition = _partition_of(context)
        account = (
            leaders.get(partition) if isinstance(partition, TopicPartition) and code in _OF_SERVED_RECORDS else None
        )
        led, cited_lead = _who_led(account, inputs[report.input].broker_id)
        yield finding(
            code,
            severity=severity,
            statement=_statement(report, place, inputs) + led,
            meaning=meaning,
            advice=" ".join(words for words in (advice, _advice(holders)) if words),
            topic_partition=partition,
            broker_id=inputs[report.input].broker_id,
            offsets=place.offsets_lost,
            citations=(Citation(input=report.input, path=report.path, span=place.span), *cited_lead),
        )


_OF_SERVED_RECORDS = frozenset({"KF101", "KF102", "KF116"})


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
        and not isinstance(context.directory, Absent)
        and context.directory.state == "live"
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
    """Return a node in words.

    Args:
        described: an input; without a known node id it is named by its path.
    """
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
    for gravity, (code, one, many) in _REPAIRED.items():
        reports = repaired.get(gravity, [])
        if reports:
            count = f"1 {one} is" if len(reports) == 1 else f"{len(reports)} {many} are"
            what = (
                "out of step with the log, and rebuilt from it at the next start"
                if gravity is Gravity.REBUILDABLE
                else "behind or ahead of each other, as brokers leave and repair them"
            )
            yield finding(
                code,
                severity=Severity.NOTE,
                statement=f"{count} {what}",
                citations=tuple(
                    Citation(
                        input=report.input,
                        path=report.path,
                        span=next(place.span for place in report.damage if place.gravity is gravity),
                    )
                    for report in reports[:MOST_CITED]
                ),
            )


def _remark_findings(verification: Verification) -> Iterator[Finding]:
    harmless: list[tuple[PartitionContext, Remark]] = []
    for one in verification.partitions:
        for remark in one.remarks:
            if isinstance(remark.offsets, OffsetRange):
                yield finding(
                    "KF117",
                    severity=Severity.WARNING,
                    statement=remark.statement,
                    topic_partition=_partition_of(one.context),
                    offsets=remark.offsets,
                    citations=(Citation(input=one.context.input, path=remark.path),),
                )
                continue
            place = _first_bad(one, remark.path) if remark.file_kind is FileKind.OFFSET_INDEX else None
            if place is None:
                harmless.append((one.context, remark))
                continue
            yield finding(
                "KF114",
                severity=Severity.ERROR,
                statement=(
                    f"{remark.path} has no offset index and a batch that fails at byte {place.span.position}: the next start truncates the segment there"
                ),
                meaning="The broker scans a segment without an index at any start, after a clean stop too, and keeps the segments behind it: a hole.",
                advice="Copy the directory before the broker starts; put the index back from a copy, or replace the replica.",
                topic_partition=_partition_of(one.context),
                citations=(Citation(input=one.context.input, path=remark.path, span=place.span),),
            )
    if harmless:
        count = "1 index is" if len(harmless) == 1 else f"{len(harmless)} indexes are"
        yield finding(
            "KF114",
            severity=Severity.NOTE,
            statement=f"{count} missing: {harmless[0][1].statement}",
            citations=tuple(
                Citation(input=context.input, path=remark.path) for context, remark in harmless[:MOST_CITED]
            ),
        )


def _topic_id_findings(verification: Verification, inputs: Sequence[Input]) -> Iterable[Finding]:
    ids: dict[tuple[int, str], dict[str, list[PartitionContext]]] = defaultdict(lambda: defaultdict(list))
    for one in verification.partitions:
        directory = one.context.directory
        if not isinstance(one.topic_id, Absent) and not isinstance(directory, Absent) and directory.state == "live":
            ids[one.context.input, directory.topic][one.topic_id].append(one.context)
    for (index, topic), by_id in ids.items():
        if len(by_id) > 1:
            yield finding(
                "KF115",
                severity=Severity.NOTE,
                statement=f"partitions of {topic} on {who(inputs[index])} have {len(by_id)} topic ids: {', '.join(sorted(by_id))}",
                broker_id=inputs[index].broker_id,
                citations=tuple(
                    Citation(input=index, path=f"{contexts[0].path}/partition.metadata") for contexts in by_id.values()
                ),
            )
