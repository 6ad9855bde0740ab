"""Findings about remote storage: offsets that are in neither tier, and copies that no broker reads."""

from collections.abc import Iterator, Sequence

from kforensics.evidence.remote_copies import CopyState, RemoteSegment
from kforensics.findings.model import Confidence, Finding, Weight
from kforensics.findings.rule import Rule
from kforensics.reconcile.logs.tiers import Tier, Tiers, begins_at
from kforensics.units import OffsetRange
from kforensics.words import counted, listed

IN_NEITHER_TIER = Rule(
    "KF122",
    Weight.DECIDE,
    title="offsets of a tiered topic that are in no live log and in no finished remote copy",
    meaning="A broker deletes a local segment once its copy in remote storage is finished, and reads from finished copies of its own leader epochs alone. A consumer at these offsets gets an error, or is reset by auto.offset.reset.",
    advice="Keep every copy of the data directories and delete nothing in remote storage: an unfinished copy, or one of other leader epochs, may hold these records.",
    references=("KIP-405",),
)

COPIES_NOT_READ = Rule(
    "KF123",
    Weight.NOTE,
    title="copies in remote storage that no broker reads",
    meaning="A broker that is killed, or loses the partition, leaves copies that were begun and never finished, or whose deletion was; copies of leader epochs that the log has not are of a leader that was replaced. Their bytes cost room, and a request to erase data has to reach them.",
    advice="A copy of the last minutes may only not be finished yet. Compare older ones with a listing of the remote storage before anything is removed by hand.",
    references=("KIP-405", "KAFKA-17062"),
)

BESIDE_THE_LOG = Rule(
    "KF130",
    Weight.DECIDE,
    title="finished copies in remote storage hold offsets that the log has not",
    meaning="A broker copies only what is committed. Then an unclean election, or a disk that was lost, took these records out of the log, and no broker reads them from copies of other leader epochs, or behind its end.",
    advice="Keep every copy of the data directories and delete nothing in remote storage: these copies may be the only ones.",
    references=("KIP-405",),
)

OF_TIERS = frozenset({IN_NEITHER_TIER.code, COPIES_NOT_READ.code, BESIDE_THE_LOG.code})


def tier_findings(tiers: Tiers) -> Iterator[Finding]:
    """Yield what is wrong with one partition in both tiers."""
    for one in tiers.ranges:
        if one.tier is not Tier.NEITHER:
            continue
        first, last = one.offsets
        parts = [part for part in tiers.parts if first <= part.offsets.first <= last]
        why = next((f"{part.why[:1].upper()}{part.why[1:]}. " for part in parts if part.why), "")
        yield IN_NEITHER_TIER.states(
            f"{tiers.partition}: offsets {first} to {last} are in no live log here, and in no finished copy in remote storage that brokers read",
            meaning=f"{why}{IN_NEITHER_TIER.meaning}",
            confidence=Confidence.LIKELY,
            topic_partition=tiers.partition,
            offsets=one.offsets,
            citations=tuple(dict.fromkeys(copy.citation for part in parts for copy in part.others)),
        )
    beside = tiers.beside
    if beside:
        whole = OffsetRange(min(there.first for there, _ in beside), max(there.last for there, _ in beside))
        runs = whole.without(whole.without(there for there, _ in beside))
        offsets = listed([f"{first} to {last}" for first, last in runs], most=4)
        yield BESIDE_THE_LOG.states(
            f"{tiers.partition}: finished copies in remote storage hold records at offsets {offsets} that the log has not: they are of other leader epochs, or behind its end at {tiers.log_end_offset}",
            confidence=Confidence.LIKELY,
            topic_partition=tiers.partition,
            offsets=whole,
            citations=tuple(dict.fromkeys(one.citation for _, one in beside)),
        )
    own = tiers.unread(beside)
    if unread := (*own, *tiers.former):
        yield COPIES_NOT_READ.states(
            f"{tiers.partition}: {counted(len(unread), 'copy', 'copies')} in remote storage that no broker reads ({_kinds(own, tiers)})",
            meaning=f"{unread[0].words[:1].upper()}{unread[0].words[1:]}. {COPIES_NOT_READ.meaning}",
            topic_partition=tiers.partition,
            offsets=OffsetRange(unread[0].offsets.first, max(one.offsets.last for one in unread)),
            citations=tuple(dict.fromkeys(one.citation for one in unread)),
        )


def not_shown(tiers: Tiers) -> Iterator[str]:
    """Yield which offsets may be in remote storage, and which record, that was not read whole, would show it."""
    for one in tiers.ranges:
        if one.tier is Tier.UNKNOWN:
            lacks = next(part.lacks for part in tiers.parts if one.offsets.first <= part.offsets.first and part.lacks)
            yield (
                f"Whether remote storage holds offsets {one.offsets.first:,} to {one.offsets.last:,} of {tiers.partition},"
                f" which no live log here holds. {lacks} would name the copies."
            )


def _kinds(copies: Sequence[RemoteSegment], tiers: Tiers) -> str:
    begins = begins_at(tiers.log_start_offset, tiers.epochs, tiers.copies)
    below = [one.is_finished and one.offsets.last < begins for one in copies]
    counts = {
        "never finished": sum(one.state == CopyState.STARTED for one in copies),
        "whose deletion was not finished": sum(one.state == CopyState.DELETE_STARTED for one in copies),
        "below the log start, which are to be deleted": sum(below),
        "of other leader epochs, or behind the end of the log": sum(one.is_finished for one in copies) - sum(below),
        "of a topic with another id": len(tiers.former),
        "of a state that is newer than known": sum(one.state > CopyState.DELETE_FINISHED for one in copies),
    }
    return listed([f"{count:,} {words}" for words, count in counts.items() if count])


def tier_words(tiers: Tiers) -> Iterator[tuple[str, str]]:
    """Yield each run of offsets with where it is, in words."""
    for one in tiers.ranges:
        first, last = one.offsets
        copies = [
            copy
            for copy in tiers.copies
            if copy.is_finished and any(map(one.offsets.meets, copy.readable(tiers.epochs)))
        ]
        many = f"{counted(len(copies), 'finished copy', 'finished copies')}"
        where = {
            Tier.LOCAL: "in a live log alone",
            Tier.BOTH: f"in a live log, and in remote storage in {many}",
            Tier.REMOTE: f"in remote storage alone, in {many}",
            Tier.DELETED: "deleted from remote storage, and in no live log here",
            Tier.UNKNOWN: "in no live log here; the record of the copies in remote storage is not whole",
            Tier.NEITHER: "in no live log here, and in no finished copy",
        }[one.tier]
        yield f"{first}..{last}", where
