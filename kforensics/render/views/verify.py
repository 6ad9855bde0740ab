"""What `verify` shows: each damaged file with its places, then what is normal."""

from collections.abc import Iterator, Sequence

from kforensics.commands.result import Result
from kforensics.commands.verify import VerifyResult
from kforensics.damage import Absent, DamageCause, Gravity
from kforensics.evidence.checks.context import FileReport, FileState
from kforensics.evidence.model import Input
from kforensics.findings.model import Finding, Severity
from kforensics.findings.rules.files import TOLD_IN_FULL, who
from kforensics.findings.rules.tiers import tier_words
from kforensics.reconcile.replicas.report import IntactReplica, IntactReplicas
from kforensics.render.blocks import GAP, Block, Column, Fact, Prose, Section, Table
from kforensics.render.frame import problem_items
from kforensics.render.view import View
from kforensics.units import OffsetRange
from kforensics.words import counted, form, utc_words

MOST_FILES = 20
"""The most damaged files that the screen shows in full."""

MOST_PLACES = 5
"""The most damaged places of one file that the screen shows in full."""

_COUNTS = ("Superseded", "With a key", "Tombstones", "Due")
"""Records of a compacted log: those that a later one of the key follows, all with a key, tombstones, and those past their delete horizon."""


def blocks(result: Result[VerifyResult], view: View) -> Iterator[Block]:
    """Yield the damaged files, then what is normal and what was not read."""
    verification, inputs, findings = result.body.verification, result.inputs, result.findings
    damaged = [report for report in verification.files if report.state is FileState.DAMAGED]
    most = len(damaged) if view.page else MOST_FILES
    for report in damaged[:most]:
        yield GAP
        yield from _file(report, result.body.intact, inputs, most=len(report.damage) if view.page else MOST_PLACES)
    if len(damaged) > most:
        yield GAP
        yield Prose(f"… and {counted(len(damaged) - most, 'more damaged file')} in --format json.")
    for one in findings:
        if one.code in TOLD_IN_FULL:
            yield GAP
            yield Prose(f"{one.statement}. {one.meaning}")
    yield from _notes(findings)
    if result.body.tiers:
        yield Section(title="Tiers", anchor="tiers") if view.page else GAP
        yield Table(
            name="Offsets in remote storage",
            columns=[Column("Partition"), Column("Offsets"), Column("Where they are")],
            rows=[(str(one.partition), *words) for one in result.body.tiers for words in tier_words(one)],
            has_heading=False,
        )
    shown = [one for one in result.body.compacted if one.superseded or one.tombstones]
    if shown:
        yield Section(title="Compacted logs", anchor="compacted") if view.page else GAP
        yield Table(
            name="Keys of compacted logs",
            columns=[Column("Compacted"), *(Column(name, is_number=True) for name in _COUNTS), Column("Horizons end")],
            rows=[
                (
                    f"{one.partition}, {who(inputs[one.citation.input])}",
                    one.superseded_words(),
                    f"{one.records:,}",
                    f"{one.tombstones:,}",
                    f"{one.due:,}",
                    utc_words(one.kept_until_ms) if isinstance(one.kept_until_ms, int) else "",
                )
                for one in (shown if view.page else shown[:MOST_FILES])
            ],
        )
        if len(shown) > MOST_FILES and not view.page:
            yield Prose(f"… and {counted(len(shown) - MOST_FILES, 'more log')} in --format json.")
    if uncounted := result.body.uncounted:
        yield GAP
        yield Prose(
            f"The keys of {counted(uncounted, 'more compacted log')} were not counted, which {form(uncounted, 'is', 'are')} too long beside the others: --topic counts those of one topic."
        )
    if verification.problems:
        yield GAP
    yield from problem_items(verification.problems[:MOST_FILES], inputs, view)
    if len(verification.problems) > MOST_FILES and not view.page:
        yield Prose(f"… and {len(verification.problems) - MOST_FILES} more in --format json.")


def _file(report: FileReport, intact: IntactReplicas, inputs: Sequence[Input], *, most: int) -> Iterator[Block]:
    owner = intact.owner(report.input, report.path)
    yield Section(title=report.path, aside=who(inputs[report.input]), level=3)
    places = [place for place in report.damage if place.gravity is Gravity.DAMAGE]
    for place in places[:most]:
        lost = place.offsets_lost
        offsets = f", offsets {lost.first}..{lost.last}" if isinstance(lost, OffsetRange) else ""
        yield Prose(f"byte {place.span.position}, {place.span.length} bytes{offsets}", depth=1)
        yield Fact("expected", place.expected)
        yield Fact("found", place.found)
        if isinstance(place.cause, DamageCause):
            flip = place.cause.flip
            where = "" if flip is None else f"; byte {flip.position}, bit {flip.bit}"
            yield Fact("cause", f"{place.cause.detail}{where}")
        if not isinstance(place.next_good, Absent):
            yield Fact("next good", f"offset {place.next_good[0]} at byte {place.next_good[1]}")
        holders = () if owner is None else intact.holders(owner, place)
        if holders:
            yield Fact("intact on", ", ".join(_holder(holder) for holder in holders))
        elif isinstance(lost, OffsetRange) and owner is not None:
            yield Fact("intact on", "none of the replicas among the inputs")
    if len(places) > most:
        yield Prose(f"… and {counted(len(places) - most, 'more place')}", depth=1)


def _holder(holder: IntactReplica) -> str:
    return holder.path if isinstance(holder.broker_id, Absent) else f"broker {holder.broker_id} ({holder.path})"


_OF_TWO_TOPICS = "KF115"


def _notes(findings: Sequence[Finding]) -> Iterator[Block]:
    unfinished = sum(1 for one in findings if one.code == "KF110")
    notes = [
        f"{'Noted' if one.code == _OF_TWO_TOPICS else 'Normal'}: {one.statement}"
        for one in findings
        if one.severity is Severity.NOTE and one.code not in {"KF110", *TOLD_IN_FULL}
    ]
    if unfinished:
        notes.insert(
            0,
            f"Normal: {counted(unfinished, 'log')} {form(unfinished, 'has', 'have')} an unfinished end, as a running or killed broker leaves it: recovery truncates it",
        )
    if notes:
        yield GAP
        for note in notes:
            yield Prose(f"{note}.")
