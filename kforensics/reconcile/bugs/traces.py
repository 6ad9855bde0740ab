"""Known bugs of Kafka whose traces are there, where its brokers' versions have them; without the trace none is named.

docs/known-bugs.md says what trace each bug leaves, and which leave none.
"""

from collections.abc import Iterable, Iterator, Sequence

from kforensics.damage import Absent
from kforensics.reconcile.bugs.evidence import BrokerVersions, BugTrace, Seen, TraceEvidence, traced
from kforensics.reconcile.bugs.files import (
    of_files,
    of_formats,
    of_lost_markers,
    of_stale_directories,
    of_stuck_replicas,
)
from kforensics.reconcile.bugs.log_signs import Sign, SignKind
from kforensics.reconcile.bugs.truncations import (
    is_below_high_watermark,
    of_early_joins,
    of_emptied_segments,
    of_fetchers,
    of_metadata_truncations,
    of_residuals,
    of_truncations,
    of_unwritten_epochs,
)
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation

_WORDS_OF_BROKERS = {
    SignKind.RECOVERY_AFTER_STOP: ("KAFKA-13315", "broker {} stopped in order, and its next start recovered its logs"),
    SignKind.CLEAN_START_TWICE: (
        "KAFKA-10471",
        "broker {} started twice without recovery and did not stop in order between",
    ),
}


def bug_traces(evidence: TraceEvidence) -> tuple[BugTrace, ...]:
    """Every known bug whose trace is there, each once for a broker and cut."""
    return _once(_all_seen(evidence), evidence.versions)


def broker_bugs(signs: Iterable[Sign], versions: BrokerVersions) -> tuple[BugTrace, ...]:
    """Known bugs whose traces are in what brokers say of their starts and stops."""
    seen = []
    for sign in signs:
        if sign.kind in _WORDS_OF_BROKERS:
            jira, words = _WORDS_OF_BROKERS[sign.kind]
            seen.append(
                Seen(
                    jira=jira,
                    broker_id=sign.broker_id,
                    trace=words.format(sign.broker_id),
                    is_conclusive=sign.kind is SignKind.RECOVERY_AFTER_STOP,
                    citations=sign.citations,
                )
            )
    return _once(seen, versions)


def _once(seen: Iterable[Seen], versions: BrokerVersions) -> tuple[BugTrace, ...]:
    found: dict[tuple[str, int | Absent, int | Absent], BugTrace] = {}
    for one in seen:
        trace = traced(one, versions)
        if trace is not None:
            found.setdefault((one.jira, one.broker_id, one.truncated_to), trace)
    return tuple(found.values())


def doubted_high_watermarks(
    logged: Sequence[LoggedTruncation], versions: BrokerVersions, ordinary_truncations: frozenset[int]
) -> dict[int, int]:
    """By broker, the offset from which its recorded high watermark proves nothing (KAFKA-14704, KAFKA-13141).

    A follower of an affected version raised its mark over records that it then cut; cuts that something else explains do not count.
    """
    doubted: dict[int, int] = {}
    for line in logged:
        broker = line.broker_id
        if not isinstance(broker, int) or not is_below_high_watermark(line) or line.to_offset in ordinary_truncations:
            continue
        if any(versions.confidence(broker, jira) for jira in ("KAFKA-14704", "KAFKA-13141")):
            doubted[broker] = min(line.to_offset, doubted.get(broker, line.to_offset))
    return doubted


def _all_seen(evidence: TraceEvidence) -> Iterator[Seen]:
    yield from of_residuals(evidence)
    yield from of_truncations(evidence)
    yield from of_emptied_segments(evidence)
    yield from of_unwritten_epochs(evidence)
    yield from of_early_joins(evidence)
    yield from of_metadata_truncations(evidence)
    yield from of_fetchers(evidence)
    for copy in evidence.copies:
        if not copy.is_remnant and copy.view.replica.state == "live":
            yield from of_files(evidence, copy)
            yield from of_formats(copy)
            yield from of_lost_markers(evidence, copy)
    yield from of_stuck_replicas(evidence)
    yield from of_stale_directories(evidence)
