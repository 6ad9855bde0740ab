"""Known bugs of Kafka that lose records, let logs diverge or truncate wrongly, by the broker versions that have them."""

from dataclasses import dataclass

from kforensics.protocol.versions import KafkaVersion, parse_version

NOT_FIXED = KafkaVersion(9_999, 0)
"""Above every release: no fix is known, so what comes next has the bug, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBug:
    """One defect of Kafka, as far as it shows on disk or in the logs."""

    jira: str
    """Its JIRA issue, or a name of its own where none is known."""
    affected: tuple[tuple[KafkaVersion, KafkaVersion], ...]
    """Runs of versions, each from the first affected up to, and without, the first that is fixed; an open bug ends at `NOT_FIXED`."""
    effect: str


def _bug(jira: str, affected: str, effect: str) -> KnownBug:
    ranges = (run.split("..") for run in affected.split())
    return KnownBug(
        jira=jira,
        affected=tuple((parse_version(first), parse_version(fixed) if fixed else NOT_FIXED) for first, fixed in ranges),
        effect=effect,
    )


RECOVERY_IO_ERROR = "RECOVERY-IO-ERROR"
"""A bug of which no JIRA issue is known."""

KNOWN_BUGS = (
    _bug(
        "KAFKA-1211",
        "0.8.0..0.11.0.0",
        "high-watermark truncation loses acknowledged records or leaves logs diverged (KIP-101)",
    ),
    _bug(
        "KAFKA-1647",
        "0.8.0..0.8.2.0",
        "a high watermark checkpoint entry is lost while no leader is available, and the follower truncates to 0",
    ),
    _bug(
        "KAFKA-2143",
        "0.8.0..0.9.0.1",
        "a race in out-of-range handling drops a whole log that was in range",
    ),
    _bug(
        "KAFKA-3330",
        "0.8.1..0.10.0.0",
        "the cleaner checkpoint stays above the log end after a truncation",
    ),
    _bug(
        "KAFKA-5634",
        "0.8.0..0.11.0.1",
        "retention deletes segments beyond the high watermark",
    ),
    _bug(
        "KAFKA-6361",
        "0.11.0.0..2.0.0",
        "two quick fail-overs leave divergent records that KIP-101 does not see (KIP-279)",
    ),
    _bug(
        "KAFKA-6857",
        "0.11.0.0..1.0.2 1.1.0..1.1.1",
        "an undefined epoch is answered with the log end: no truncation where one to the high watermark was due",
    ),
    _bug(
        "KAFKA-7128",
        "0.8.0..2.0.1",
        "a follower joins the ISR before it reaches the leader's term, and committed records are lost with the next election",
    ),
    _bug(
        "KAFKA-7164",
        "0.11.0.0..2.0.1",
        "a follower that missed an epoch of the same leader does not truncate",
    ),
    _bug(
        "KAFKA-7415",
        "0.11.0.0..2.0.1",
        "a leader's epoch is not written when it is elected: wrong truncation points after elections in a row",
    ),
    _bug(
        "KAFKA-7897",
        "2.0.1..2.0.2 2.1.0..2.1.1",
        "epochs are written on old message formats and followers trust the sparse cache: far too much is truncated",
    ),
    _bug(
        "KAFKA-7601",
        "0.11.0.0..2.2.1",
        "the epoch cache stays after the message format was lowered",
    ),
    _bug(
        "KAFKA-9491",
        "0.11.0.0..2.4.1",
        "the high watermark stays below the log start after a full truncation",
    ),
    _bug(
        "KAFKA-10432",
        "0.11.0.0..2.6.1",
        "recovery does not restore epoch 0",
    ),
    _bug(
        "KAFKA-10706",
        "2.0.0..2.6.1",
        "an epoch entry at the log end is never removed: truncation never ends",
    ),
    _bug(
        "KAFKA-13141",
        "2.7.0..2.7.2 2.8.0..2.8.1",
        "the leader's high watermark passes over a diverging follower",
    ),
    _bug(
        "KAFKA-13207",
        "2.8.0..2.8.1",
        "a stale fetcher thread truncates while another appends",
    ),
    _bug(
        "KAFKA-12996",
        "2.7.0..2.7.2 2.8.0..2.8.1",
        "a follower whose offset is below the leader's log start fails instead of starting again",
    ),
    _bug(
        "KAFKA-12460",
        "2.8.0..3.0.0",
        "a quorum member may truncate its metadata log below the high watermark",
    ),
    _bug(
        "KAFKA-14704",
        "2.8.0..3.4.1",
        "a follower raises its high watermark over records that it is about to truncate",
    ),
    _bug(
        "KAFKA-16541",
        "3.7.0..3.8.0",
        "truncations of leader-epoch-checkpoint are not flushed: a power loss leaves it empty or incomplete (KAFKA-15046)",
    ),
    _bug(
        "KAFKA-10471",
        "0.8.0..2.8.0",
        "a crash while logs load counts as a clean shutdown",
    ),
    _bug(
        "KAFKA-9892",
        "0.11.0.0..2.8.0",
        "producer snapshots are not flushed",
    ),
    _bug(
        "KAFKA-3968",
        "0.8.0..3.0.0",
        "directories are not flushed: a power loss can take a whole new segment",
    ),
    _bug(
        "KAFKA-13315",
        "3.0.0..3.0.1",
        "an orderly stop leaves no clean-shutdown marker",
    ),
    _bug(
        "KAFKA-14616",
        "3.0.0..3.7.0",
        "a topic recreated while a replica's disk was away meets the replica of the old topic",
    ),
    _bug(
        "KAFKA-18723",
        "0.11.0.0..3.9.1 4.0.0..4.1.0",
        "a follower stores batches of a newer epoch than the one it fetches in",
    ),
    _bug(
        "KAFKA-14055",
        "0.11.0.0..3.0.2 3.1.0..3.1.2 3.2.0..3.2.1",
        "the log cleaner drops transaction markers too early",
    ),
    # LogLoader.recoverLog of 4.0.0, 4.1.0, 4.3.1 and 4.4.0 catches IOException beside InvalidOffsetException; 3.9 does not. No fix is known.
    _bug(
        RECOVERY_IO_ERROR,
        "4.0.0..",
        "an I/O error while a segment is recovered, a full disk too, empties the segment and deletes all behind it, however sound they are",
    ),
)
"""Not complete for 4.1 and later."""

BUGS = {bug.jira: bug for bug in KNOWN_BUGS}


def is_affected(version: KafkaVersion, jira: str) -> bool:
    """Return whether a broker of a version has a bug; false of a bug that `KNOWN_BUGS` does not list."""
    return any(first <= version < fixed for bug in KNOWN_BUGS if bug.jira == jira for first, fixed in bug.affected)
