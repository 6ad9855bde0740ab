"""Known bugs of Kafka whose traces show in a partition, where its brokers' versions have them; without the trace none is named."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.protocol.known_bugs import KNOWN_BUGS, is_affected
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.copies import Copy
from kforensics.reconcile.facts import Leadership
from kforensics.reconcile.incidents import Cut
from kforensics.reconcile.logged_truncations import LoggedTruncation
from kforensics.reconcile.losses import is_in_use
from kforensics.reconcile.residual import Residual

_EPOCH_FILE = "leader-epoch-checkpoint"
_BUGS = {bug.jira: bug for bug in KNOWN_BUGS}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerVersions:
    """Which Kafka each broker runs."""

    by_broker: Mapping[int, KafkaVersion] = field(default_factory=dict)
    """As its log files name it last."""
    at_least: KafkaVersion | None = None
    """What the cluster's metadata.version demands of every broker."""

    def confidence(self, broker: int | Absent, jira: str) -> str | None:
        """`likely` where the broker's version is known and has the bug, `possible` where it may have it, else none."""
        version = self.by_broker.get(broker) if isinstance(broker, int) else None
        if version is not None:
            return "likely" if is_affected(version, jira) else None
        if self.at_least is None or not any(fixed > self.at_least for _, fixed in _BUGS[jira].affected):
            return None
        return "possible"


@dataclass(frozen=True, slots=True, kw_only=True)
class BugTrace:
    """One known bug that fits what is seen of a replica."""

    jira: str
    broker_id: int | Absent
    confidence: str
    """`likely` or `possible`."""
    effect: str
    trace: str
    """What was seen."""
    cut_to: int | Absent = Absent.NOT_APPLICABLE
    """The target of the truncation that it explains, if it is one."""
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvidence:
    """What is looked through."""

    versions: BrokerVersions
    copies: Sequence[Copy]
    leader: Copy | None
    leaderships: Sequence[Leadership]
    cuts: Sequence[Cut]
    logged: Sequence[LoggedTruncation]
    residuals: Sequence[Residual]
    ordinary_cuts: frozenset[int]
    """Targets of cuts that an unclean election or a lost disk cache explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A trace before the version is asked for."""

    jira: str
    broker_id: int | Absent
    trace: str
    is_telling: bool = True
    """Nothing else leaves it; else the bug is no more than possible."""
    cut_to: int | Absent = Absent.NOT_APPLICABLE
    citations: tuple[Citation, ...] = ()


def bug_traces(evidence: TraceEvidence) -> tuple[BugTrace, ...]:
    """Every known bug whose trace is there, each once for a broker and cut."""
    found: dict[tuple[str, int | Absent, int | Absent], BugTrace] = {}
    for seen in _all_seen(evidence):
        confidence = evidence.versions.confidence(seen.broker_id, seen.jira)
        if confidence is None:
            continue
        trace = BugTrace(
            jira=seen.jira,
            broker_id=seen.broker_id,
            confidence=confidence if seen.is_telling else "possible",
            effect=_BUGS[seen.jira].effect,
            trace=seen.trace,
            cut_to=seen.cut_to,
            citations=seen.citations,
        )
        found.setdefault((seen.jira, seen.broker_id, seen.cut_to), trace)
    return tuple(found.values())


def doubted_marks(
    logged: Sequence[LoggedTruncation], versions: BrokerVersions, ordinary_cuts: frozenset[int]
) -> dict[int, int]:
    """By broker, the offset from which its recorded high watermark proves nothing (KAFKA-14704, KAFKA-13141).

    A follower of an affected version raised its mark over records that it then cut; cuts that something else explains do not count.
    """
    doubted: dict[int, int] = {}
    for line in logged:
        broker = line.broker_id
        if not isinstance(broker, int) or not _is_below_mark(line) or line.to_offset in ordinary_cuts:
            continue
        if any(versions.confidence(broker, jira) for jira in ("KAFKA-14704", "KAFKA-13141")):
            doubted[broker] = min(line.to_offset, doubted.get(broker, line.to_offset))
    return doubted


def _is_below_mark(line: LoggedTruncation) -> bool:
    return isinstance(line.high_watermark, int) and line.to_offset < line.high_watermark


def _all_seen(evidence: TraceEvidence) -> Iterator[_Seen]:
    yield from _of_residuals(evidence)
    yield from _of_cuts(evidence)
    for copy in evidence.copies:
        if not copy.is_remnant and copy.view.replica.state == "live":
            yield from _of_files(copy)
    yield from _of_stuck_replicas(evidence)


def _of_residuals(evidence: TraceEvidence) -> Iterator[_Seen]:
    for one in evidence.residuals:
        where = f"broker {one.broker_id} differs from the leader from offset {one.offset} on and does not cut it"
        jira = {ProtocolName.HW: "KAFKA-1211", ProtocolName.KIP_101: "KAFKA-6361"}.get(one.protocol)
        if one.protocol is ProtocolName.KIP_101 and one.old_format:
            jira = "KAFKA-6857"
        if jira is not None:
            is_telling = jira != "KAFKA-1211"  # a lost disk cache leaves the same
            yield _Seen(jira=jira, broker_id=one.broker_id, trace=where, is_telling=is_telling, citations=one.citations)


def _of_cuts(evidence: TraceEvidence) -> Iterator[_Seen]:
    for line in evidence.logged:
        if not _is_below_mark(line) or line.to_offset in evidence.ordinary_cuts:
            continue
        trace = f"broker {line.broker_id} cut to {line.to_offset}, below its high watermark {line.high_watermark}"
        for jira, is_telling in (("KAFKA-14704", True), ("KAFKA-13141", False)):
            yield _Seen(
                jira=jira,
                broker_id=line.broker_id,
                trace=trace,
                is_telling=is_telling,
                cut_to=line.to_offset,
                citations=line.citations,
            )
    for cut in evidence.cuts:
        before = cut.before.view.replica if cut.before is not None else None
        if cut.rule == "high-watermark" or (cut.is_logged and before and _is_at_mark(cut)):
            trace = f"broker {cut.broker_id} cut to its high watermark {cut.to_offset}"
            yield _Seen(
                jira="KAFKA-1211",
                broker_id=cut.broker_id,
                trace=trace,
                cut_to=cut.to_offset,
                citations=cut.citations,
            )
        if cut.to_offset == 0 and before is not None and isinstance(before.high_watermark, Absent):
            trace = f"broker {cut.broker_id} cut to 0, and no high watermark of it was recorded"
            yield _Seen(
                jira="KAFKA-1647",
                broker_id=cut.broker_id,
                trace=trace,
                cut_to=0,
                citations=cut.citations,
            )
        if cut.is_full:
            trace = f"broker {cut.broker_id} dropped its whole log and began anew at {cut.to_offset}"
            yield _Seen(
                jira="KAFKA-2143",
                broker_id=cut.broker_id,
                trace=trace,
                is_telling=False,
                cut_to=cut.to_offset,
                citations=cut.citations,
            )
        magic = cut.before.view.oldest_magic if cut.before is not None else Absent.UNKNOWN
        if cut.rule == "epoch" and isinstance(magic, int) and magic < 2 and before and before.checkpoint_epochs:
            trace = f"broker {cut.broker_id} cut a log of the old message format to {cut.to_offset} by leader epoch"
            yield _Seen(
                jira="KAFKA-7897",
                broker_id=cut.broker_id,
                trace=trace,
                cut_to=cut.to_offset,
                citations=cut.citations,
            )


def _is_at_mark(cut: Cut) -> bool:
    recorded = cut.before.view.replica.high_watermark if cut.before is not None else Absent.UNKNOWN
    return not isinstance(recorded, Absent) and recorded.value == cut.to_offset


def _of_files(copy: Copy) -> Iterator[_Seen]:
    view, replica = copy.view, copy.view.replica
    broker, end = replica.broker_id, view.log_end_offset
    claimed, recorded = replica.checkpoint_epochs, replica.high_watermark
    first = view.batch_epochs[0] if view.batch_epochs else None
    entries = () if isinstance(claimed, Absent) else claimed
    if entries and first is not None and first.leader_epoch == 0 < entries[0].leader_epoch:
        trace = f"broker {broker}'s {_EPOCH_FILE} lacks epoch 0, which its batches carry"
        yield _Seen(jira="KAFKA-10432", broker_id=broker, trace=trace, citations=(replica.cite(_EPOCH_FILE),))
    is_empty = not isinstance(claimed, Absent) and not entries and first is not None
    if is_empty or any(path.endswith(_EPOCH_FILE) for path in replica.damage):
        trace = f"broker {broker}'s {_EPOCH_FILE} is empty or unreadable"
        yield _Seen(jira="KAFKA-16541", broker_id=broker, trace=trace, citations=(replica.cite(_EPOCH_FILE),))
    torn = sorted(path for path in replica.damage if path.endswith(".snapshot"))
    if torn:
        trace = f"a producer snapshot of broker {broker} is damaged"
        yield _Seen(
            jira="KAFKA-9892",
            broker_id=broker,
            trace=trace,
            citations=(Citation(input=replica.input, path=torn[0]),),
        )
    point = replica.recovery_point
    if not isinstance(point, Absent) and point.value > end:
        trace = f"broker {broker}'s recovery point {point.value} lies past its log end {end}"
        yield _Seen(jira="KAFKA-3968", broker_id=broker, trace=trace, is_telling=False, citations=(point.citation,))
    if not isinstance(recorded, Absent) and recorded.value < view.log_start_offset:
        trace = f"broker {broker}'s high watermark {recorded.value} lies below its log start {view.log_start_offset}"
        for jira in ("KAFKA-9491", "KAFKA-5634"):
            yield _Seen(jira=jira, broker_id=broker, trace=trace, is_telling=False, citations=(recorded.citation,))
    cleaned = replica.cleaner_point
    if not isinstance(cleaned, Absent) and cleaned.value > end:
        trace = f"broker {broker}'s cleaner checkpoint {cleaned.value} lies past its log end {end}"
        yield _Seen(jira="KAFKA-3330", broker_id=broker, trace=trace, citations=(cleaned.citation,))


def _of_stuck_replicas(evidence: TraceEvidence) -> Iterator[_Seen]:
    """An epoch that begins at the log end of a replica which others left behind."""
    newest = evidence.leaderships[-1] if evidence.leaderships else None
    for copy in evidence.copies:
        claimed = copy.view.replica.checkpoint_epochs
        if copy is evidence.leader or not is_in_use(copy) or isinstance(claimed, Absent) or not claimed:
            continue
        is_out = newest is not None and isinstance(newest.isr, frozenset) and copy.broker_id not in newest.isr
        if is_out and claimed[-1].start_offset == copy.view.log_end_offset and len(claimed) > 1:
            trace = f"the last leader epoch of broker {copy.broker_id} begins at its log end, and it is not in sync"
            yield _Seen(
                jira="KAFKA-10706",
                broker_id=copy.broker_id,
                trace=trace,
                is_telling=False,
                citations=(copy.view.replica.cite(_EPOCH_FILE),),
            )
