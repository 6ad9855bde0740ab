"""The answer of `verify`: which files are damaged, and what to do about it."""

from collections import Counter
from collections.abc import Sequence

from kforensics.damage import Damage, DamageKind, Gravity
from kforensics.evidence.checks.consistency import Verification
from kforensics.evidence.checks.context import FileKind, FileReport, FileState
from kforensics.findings.answers.model import Answer, State
from kforensics.findings.model import Finding
from kforensics.findings.rules.upkeep import STAMPED_AHEAD
from kforensics.formats.segment.walk import Level
from kforensics.units import OffsetRange
from kforensics.words import counted, form

_DEPTHS = {
    Level.HEADERS: "headers only",
    Level.CRC: "checksums, not records",
    Level.RECORDS: "every record looked at",
}


_STARTS = "What a start makes of these files: it can refuse or delete some of which no byte is damaged. `kforensics predict` tells."


def verify_answer(verification: Verification, findings: Sequence[Finding], *, level: Level) -> Answer:
    """Return the answer to whether files are damaged."""
    files = verification.files
    states = Counter(report.state for report in files)
    total = counted(len(files), "file")
    damaged = [report for report in files if report.state is FileState.DAMAGED]
    unread = counted(len(verification.problems), "thing") if verification.problems else ""
    if damaged:
        worst = next((one for one in findings if one.is_grave), None)
        return Answer(
            state=State.DAMAGED,
            headline=f"{len(damaged)} of {total} {form(len(damaged), 'is', 'are')} damaged{_lost_words(damaged)}.",
            now=(f"{worst.advice} {worst.meaning}",) if worst is not None else (),
            unknown=(f"{unread} could not be read: see the end.",) if unread else (),
        )
    leftovers = sum(report.is_leftover for report in files)
    unchecked = states[FileState.UNCHECKED] - leftovers
    rest = f"; {counted(unchecked, 'file')} of other kinds not checked" if unchecked else ""
    rest += f"; {counted(leftovers, 'leftover')} of an unfinished write, which no broker reads" if leftovers else ""
    sound = states[FileState.INTACT] + states[FileState.TORN_TAIL]
    if unread:
        could = len(files) - states[FileState.UNREADABLE]
        held = f"of {counted(could, 'file')} that could, {sound:,} {form(sound, 'is', 'are')} sound{rest}"
        return Answer(state=State.UNKNOWN, headline=f"Incomplete: {unread} could not be read; {held}.")
    if not sound:
        return Answer(
            state=State.UNKNOWN,
            headline=f"Nothing was checked: {total}{', none of a kind that can be checked' if files else ''}.",
        )
    batches = sum(report.batches for report in files if isinstance(report.batches, int))
    records = sum(report.records for report in files if isinstance(report.records, int))
    contents = f"{counted(batches, 'batch', 'batches')} and {counted(records, 'record')}" if batches else "no batches"
    torn = states[FileState.TORN_TAIL]
    starts = (_STARTS,) if torn or any(one.context.may_shrink_at_start for one in verification.partitions) else ()
    grave = [one for one in findings if one.is_grave]
    what = "Sound"
    if grave:
        also = f", and {counted(torn, 'file')} would be repaired by a start" if torn else ""
        needs = f"{counted(len(grave), 'finding')} {form(len(grave), 'needs', 'need')} a look{also}"
        return Answer(
            state=State.REPAIRABLE if torn else State.SOUND,
            headline=f"No file is damaged, but {needs}: {grave[0].statement}.",
            now=tuple(dict.fromkeys(one.advice for one in grave if one.advice)),
            unknown=starts,
        )
    if torn:
        what = f"Nothing is damaged, and {counted(torn, 'file')} would be repaired by a start of the broker"
    ahead = next((f" {one.statement}." for one in findings if one.code == STAMPED_AHEAD.code), "")
    return Answer(
        state=State.REPAIRABLE if torn else State.SOUND,
        headline=f"{what}: {total} with {contents} ({_DEPTHS[level]}){rest}.{ahead}",
        unknown=starts,
    )


def _lost_words(damaged: Sequence[FileReport]) -> str:
    ranges = [
        (report, place.offsets_lost)
        for report in damaged
        for place in report.damage
        if _is_lost(place) and isinstance(place.offsets_lost, OffsetRange)
    ]
    if not ranges:
        return ""
    total = sum(lost.count for _, lost in ranges)
    missing = [place.kind is DamageKind.MISSING for report in damaged for place in report.damage if _is_lost(place)]
    what = "are missing" if all(missing) else "are missing or can't be read" if any(missing) else "can't be read"
    if len(ranges) > 1:
        return f": {total:,} offsets in {len(ranges)} places {what}"
    report, lost = ranges[0]
    is_of_many = report.kind is FileKind.OFFSET_CHECKPOINT
    of = report.path if is_of_many else report.path.rpartition("/")[0] or report.path
    return f": {total:,} {form(total, 'offset')} ({lost.first}..{lost.last}) {'named by' if is_of_many else 'of'} {of} {what.replace('are', 'is') if total == 1 else what}"


def _is_lost(place: Damage) -> bool:
    return place.gravity is Gravity.DAMAGE and isinstance(place.offsets_lost, OffsetRange)
