"""Name the known bugs of Kafka whose traces are found and which the brokers' versions have; a version alone names none.

docs/known-bugs.md describes the trace of each bug, and names the bugs that leave none.
"""

from collections.abc import Iterable, Iterator, Sequence

from kforensics.damage import Absent
from kforensics.reconcile.bugs import files, truncations  # noqa: F401 - rules register themselves on import
from kforensics.reconcile.bugs.evidence import RULES, BugTrace, Seen, TraceEvidence, traced
from kforensics.reconcile.bugs.log_signs import Sign, SignKind
from kforensics.reconcile.bugs.truncations import is_below_high_watermark
from kforensics.reconcile.observed.broker_versions import BrokerVersions
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation

_WORDS_OF_BROKERS = {
    SignKind.RECOVERY_AFTER_STOP: ("KAFKA-13315", "broker {} stopped in order, and its next start recovered its logs"),
    SignKind.CLEAN_START_TWICE: (
        "KAFKA-10471",
        "broker {} started twice without recovery and did not stop in order between",
    ),
}


def bug_traces(evidence: TraceEvidence) -> tuple[BugTrace, ...]:
    """Return every known bug whose trace is found, each once per broker and truncation.

    Args:
        evidence: what is known of one partition.
    """
    return _once(_all_seen(evidence), evidence.versions)


def broker_bugs(signs: Iterable[Sign], versions: BrokerVersions) -> tuple[BugTrace, ...]:
    """Return known bugs whose traces are in the brokers' log lines about their starts and stops.

    Args:
        signs: as `broker_signs` found them.
        versions: those of the brokers; a bug that a broker's version does not have is left out.
    """
    seen = []
    for sign in signs:
        if sign.kind in _WORDS_OF_BROKERS:
            jira, words = _WORDS_OF_BROKERS[sign.kind]
            seen.append(
                Seen(
                    jira,
                    sign.broker_id,
                    words.format(sign.broker_id),
                    sign.citations,
                    is_conclusive=sign.kind is SignKind.RECOVERY_AFTER_STOP,
                )
            )
    return _once(seen, versions)


def named_bugs() -> frozenset[str]:
    """Return the names of all known bugs whose traces some rule looks for."""
    in_logs = frozenset(name for name, _ in _WORDS_OF_BROKERS.values())
    return in_logs.union(*RULES.values())


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
    """Return by broker the offset from which its recorded high watermark proves nothing (KAFKA-14704, KAFKA-13141).

    A follower of an affected version raised its high watermark over records that it then truncated; truncations with another explanation do not count.

    Args:
        logged: the truncations of one partition that log lines report.
        versions: those of the brokers, as far as they are known.
        ordinary_truncations: the offsets of truncations that something else explains.
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
    for rule, names in RULES.items():
        for seen in rule(evidence):
            assert seen.jira in names, f"{rule.__name__} is not registered for {seen.jira}"
            yield seen
