"""The answer to what metadata logs hold."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent
from kforensics.evidence.metadata.compare import LogComparison, MetadataTail
from kforensics.evidence.metadata.quorum import majority
from kforensics.evidence.metadata.set_back import QuorumSetBack
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.unaccounted import Unaccounted
from kforensics.findings.answers.model import Answer, State
from kforensics.findings.rules.quorum import quorum_steps, quorum_words
from kforensics.protocol.versions import NEWEST_LEVEL, level_name
from kforensics.words import counted, listed


def metadata_answer(
    comparison: LogComparison,
    problems: Sequence[Problem],
    *,
    lost_end: Unaccounted | None = None,
    quorum: QuorumSetBack | None = None,
) -> Answer:
    """Return the answer to what the metadata logs hold.

    Returns:
        `diverged` where a node holds records that the newest log does not and that a majority may have held, `unknown` where not all could be read, `behind` where a log is shorter or has a tail that no majority held, `agree`
        where several are the same, `complete` for one alone.
    """
    unread = counted(len(problems), "problem") if problems else ""
    incomplete = [f"with {unread}"] if unread else []
    if lost_end is not None:
        incomplete.append(f"a broker registered at offset {lost_end.last}, above its end")
    prefix = f"Incomplete, {' and '.join(incomplete)}: " if incomplete else ""
    headline = f"{prefix}{_newest(comparison)}"
    return Answer(
        state=_state(comparison, bool(incomplete or quorum)),
        headline=f"{quorum_words(quorum)} {headline}" if quorum else headline,
        now=tuple(quorum_steps(quorum)) if quorum else (),
        unknown=(
            *(
                (
                    f"What {lost_end.words} and later ones hold: .kafka_cleanshutdown names the broker epoch {lost_end.last}.",
                )
                if lost_end
                else ()
            ),
            *((f"What the metadata holds in the places of {unread} is not shown.",) if unread else ()),
            *_uncommitted(comparison),
        ),
    )


def _state(comparison: LogComparison, is_incomplete: bool) -> State:
    tails = [log.tail for log in comparison.logs if not isinstance(log.tail, Absent)]
    # What no majority holds was not committed: its node truncates it when it next fetches (KIP-595).
    if any(_can_be_committed(tail, comparison) for tail in tails) or any(log.is_mixed for log in comparison.logs):
        return State.DIVERGED
    if is_incomplete:
        return State.UNKNOWN
    if tails or any(log.behind for log in comparison.logs):
        return State.BEHIND
    return State.AGREE if len(comparison.logs) > 1 else State.COMPLETE


def _can_be_committed(tail: MetadataTail, comparison: LogComparison) -> bool:
    """Whether a majority of the voters can hold a tail that differs from the newest log; a majority that holds the newest log there excludes it."""
    voters = comparison.voters
    without = {
        log.history.node_id
        for log in comparison.logs
        if isinstance(log.tail, Absent) or log.tail.first_offset != tail.first_offset
    }
    return not voters or len(set(voters) - without) >= majority(len(voters))


def _uncommitted(comparison: LogComparison) -> Iterator[str]:
    """Yield the parts of the newest log that are not shown to be committed."""
    newest, end, voters = comparison.newest, comparison.majority_end_offset, comparison.voters
    if isinstance(end, Absent):
        if len(voters) > 1:
            yield f"How far the metadata is committed: the logs of most of the voters {listed(list(map(str, voters)))} would show it."
    elif end < newest.end_offset:
        last = newest.end_offset - 1
        is_one = last == end
        offsets, them = (f"offset {end}", "it") if is_one else (f"offsets {end}..{last}", "them")
        yield f"Whether {offsets} {'was' if is_one else 'were'} ever committed: no majority of the voters holds {them} in the logs given, which need not be of one moment."


def _newest(comparison: LogComparison) -> str:
    newest = comparison.newest
    node = "a node" if isinstance(newest.node_id, Absent) else f"node {newest.node_id}"
    version = newest.metadata_version
    newer = f" ({level_name(version)})" if isinstance(version, int) and version > NEWEST_LEVEL else ""
    feature = "" if isinstance(version, Absent) else f", metadata.version {version}{newer}"
    logs = "" if len(comparison.logs) == 1 else f" (the newest of {len(comparison.logs)} logs)"
    if not newest.is_log_known:
        return f"Metadata log of {node}{logs}: it could not be read whole, and where it ends is unknown{feature}."
    if newest.start_offset == newest.end_offset:
        return f"Metadata log of {node}{logs}: no record behind its snapshot at offset {newest.end_offset}{feature}."
    return (
        f"Metadata log of {node}{logs}: offsets {newest.start_offset}..{newest.end_offset - 1}, "
        f"leader epoch {newest.last_epoch}{feature}."
    )
