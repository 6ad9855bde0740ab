"""Leaderships, truncations, copies of logs and lines of brokers, as `reconcile` takes them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.broker_logs import LogFile, read_log_files
from kforensics.evidence.discovery.inputs import LogPlace
from kforensics.evidence.model import Replica
from kforensics.formats.log_lines.event import LineCensus
from kforensics.formats.log_lines.scan import scan_log
from kforensics.protocol.versions import parse_version
from kforensics.reconcile.bugs.evidence import TraceEvidence
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.logs.loaded_log import load_log
from kforensics.reconcile.observed.facts import BrokerVersions, Leadership
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation
from kforensics.units import TopicPartition
from tests.builders.logs import HERE, MemoryReader

PARTITION = TopicPartition("t", 0)


def leadership(
    leader, epoch, isr=(1, 2), at: int | Absent = Absent.UNKNOWN, *, unclean=False, time_ms=None
) -> Leadership:
    """A leader of brokers 1 and 2.

    Args:
        leader: its id.
        epoch: its leader epoch.
        isr: who was in sync.
        at: the metadata offset; that of the epoch's number where it does not matter.
        unclean: whether it was elected so.
        time_ms: when; the metadata offset as a number where it does not matter.
    """
    recorded_at = epoch if at is Absent.UNKNOWN else at
    return Leadership(
        leader=leader,
        leader_epoch=epoch,
        isr=frozenset(isr),
        replicas=(1, 2),
        unclean=unclean,
        recorded_at=recorded_at,
        time_ms=recorded_at if time_ms is None else time_ms,
        citation=HERE,
    )


def truncation(
    from_offset, to_offset, *, rule="epoch", broker=1, logged=True, topic=PARTITION, before=None, **more
) -> ObservedTruncation:
    """A truncation by leader 2, with its line in the log."""
    fields = {"time_ms": 1, "leader": 2, "leader_epoch": 5, "is_full": False, "is_shortened": False}
    return ObservedTruncation(
        broker_id=broker,
        topic_partition=topic,
        from_offset=from_offset,
        to_offset=to_offset,
        rule=rule,
        is_logged=logged,
        before=before,
        citations=(HERE,),
        **(fields | more),
    )


def logged_truncation(from_offset, to_offset, *, rule="epoch", broker=1, **more) -> LoggedTruncation:
    """What a log line says of a truncation, of no leader that it names."""
    unknown = dict.fromkeys(("leader", "leader_epoch", "high_watermark"), Absent.UNKNOWN)
    fields: dict[str, Any] = {"time_ms": 1, "is_full": False, **unknown}
    return LoggedTruncation(
        broker_id=broker,
        topic_partition=PARTITION,
        from_offset=from_offset,
        to_offset=to_offset,
        rule=rule,
        is_exact=True,
        citations=(HERE,),
        **(fields | more),
    )


def log_copy(replica: Replica, *, rank=1, is_final=True) -> LogCopy:
    """The log of a replica at a moment."""
    return LogCopy(view=load_log(replica), rank=rank, is_final=is_final)


def log_file(text: str, *, node: int = 1, mtime_ns: int = 0) -> LogFile:
    """A server.log of these lines, as it is read."""
    events = [event for window in scan_log([text.encode()]) for event in window.events]
    return LogFile(
        input=0,
        path=f"{node}.log",
        is_compressed=False,
        node_id=node,
        events=tuple(events),
        census=LineCensus(),
        events_dropped=0,
        problems=(),
        mtime_ns=mtime_ns,
    )


def logged_events(*lines: str, node: int = 1) -> Sequence[LoggedEvent]:
    """What a broker logs, a line a second from noon on."""
    text = "".join(f"[2024-05-01 12:00:{at:02d},000] INFO {line} (kafka)\n" for at, line in enumerate(lines))
    file = log_file(text, node=node)
    return [LoggedEvent(event, node, event.time_ms, file) for event in file.events]


def shifted(event: LoggedEvent, ms: int) -> LoggedEvent:
    """The same event at another time."""
    assert isinstance(event.time_ms, int)
    return event._replace(time_ms=event.time_ms + ms)


def trace_evidence(version, *copies, leader=None, **more) -> TraceEvidence:
    """What rules for known bugs look at: copies of a log on brokers of a version, and nothing else but what is given."""
    same = {"agree_until": lambda _one, other: other.log_end_offset, "reader": MemoryReader({})}
    plain = {"leaderships": (), "truncations": (), "logged": (), "residuals": (), "ordinary_truncations": frozenset()}
    versions = BrokerVersions(by_broker={broker: parse_version(version) for broker in (1, 2, 3)})
    return TraceEvidence(versions=versions, copies=copies, leader=leader, **{**same, **plain, **more})


def read_logs(root: Path) -> list[LogFile]:
    """Every broker's log below a directory."""
    found = (read_log(root, str(path.relative_to(root))) for path in sorted(root.rglob("*")) if path.is_file())
    return [file for file in found if file is not None]


def read_log(root: Path, path: str, *, number: int = 0) -> LogFile | None:
    """One broker's log below the input of that number; none where the file is no broker's log."""
    (found,) = read_log_files([LogPlace(root, path, number)], keeps_told=True)
    if isinstance(found, EvidenceError):
        raise found
    return found if isinstance(found, LogFile) else None
