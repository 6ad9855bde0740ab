"""The first lines of a comparison: what is at risk, and what to do and not to do."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.text import Text

from kforensics.commands.diff import DiffResult
from kforensics.findings.model import Severity
from kforensics.reconcile.replicas.partition import PartitionReport, Verdict
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import Style, counted, listed, wrapped


class _Totals(NamedTuple):
    lost: int
    possible: int
    owners: list[str]
    """Those that will discard what no other replica holds."""
    silent: int
    past: int
    """Partitions with a high watermark past every log end."""


class _Answer(NamedTuple):
    style: str
    head: str
    advice: str = ""


def answer_lines(result: DiffResult, width: int) -> Iterator[Text]:
    """The answer, then what the look could not cover, then the advice."""
    answer = _answer(result)
    yield from wrapped(answer.head, width=width, style=answer.style)
    if result.problems:
        missed = counted(len(result.problems), "thing")
        yield from wrapped(
            f"Incomplete: {missed} could not be read (listed below); what they hold is not judged.", width=width
        )
    if answer.advice:
        yield from wrapped(answer.advice, width=width)


def _answer(result: DiffResult) -> _Answer:
    total = _totals(result.reports)
    count = Counter(one.verdict for one in result.partitions)
    among = counted(len(result.partitions), "partition")
    grave = [f for f in result.findings if f.severity.rank >= Severity.WARNING.rank]
    loose = next((f for f in grave if f.code in {"KF507", "KF508"}), None)
    if loose is not None:
        return _Answer(
            Style.ANSWER_BAD,
            f"These inputs can't be compared as they are: {escape_text(loose.statement)}.",
            escape_text(loose.advice),
        )
    if total.silent:
        head = f"REPLICAS DIFFER FOR GOOD: {counted(total.silent, 'partition')} of {len(result.partitions)} hold different content at the same offset, and no rule will repair it."
        if total.lost or total.possible:
            head += f" {_capital(_at_risk(total))}."
        return _Answer(
            Style.ANSWER_BAD,
            head,
            "Find out which content is right before a leader changes: readers see one or the other. Delete nothing.",
        )
    if total.past:
        head = f"DATA IS MISSING: {counted(total.past, 'partition')} of {len(result.partitions)} had committed records past the end of every log here."
        return _Answer(Style.ANSWER_BAD, head, "Look for another replica or snapshot before anything is started.")
    if total.lost or total.possible:
        who = listed(total.owners)
        whose = "its directory is" if len(total.owners) == 1 else "their directories are"
        return _Answer(
            Style.ANSWER_BAD,
            f"DATA AT RISK: {_at_risk(total)} in {count[Verdict.WILL_TRUNCATE]} of {among}.",
            f"Do not start {who} before {whose} copied. No other replica given here holds these records.",
        )
    missing = [f for f in grave if f.code == "KF216"]
    if missing:
        more = f" ({counted(len(missing) - 1, 'other partition')} likewise)" if len(missing) > 1 else ""
        return _Answer(
            Style.ANSWER_BAD, f"THE ISR IS NOT HERE: {escape_text(missing[0].statement)}{more}.", missing[0].advice
        )
    recovery = [f for f in grave if f.code == "KF210"]
    if recovery:
        more = f" ({counted(len(recovery) - 1, 'other log')} likewise)" if len(recovery) > 1 else ""
        return _Answer(
            Style.ANSWER_BAD,
            f"RECOVERY WILL DROP SOUND RECORDS: {escape_text(recovery[0].statement)}{more}.",
            recovery[0].advice,
        )
    if count[Verdict.WILL_TRUNCATE]:
        expected = counted(count[Verdict.WILL_TRUNCATE], "partition")
        return _Answer(
            Style.ANSWER_WARNING,
            f"Nothing committed is at risk: {expected} of {len(result.partitions)} will cut a tail that the leader holds or that was never committed.",
            "The brokers repair this by themselves when they start.",
        )
    if count[Verdict.DIFFERENT_TOPIC]:
        strangers = counted(count[Verdict.DIFFERENT_TOPIC], "partition")
        return _Answer(
            Style.ANSWER_WARNING,
            f"Nothing will be cut, but {strangers} of {len(result.partitions)} have replicas of another topic of the same name: it was deleted and created again.",
            "These logs are strangers to each other and were not compared. Copy nothing between them.",
        )
    if grave:
        return _Answer(
            Style.ANSWER_WARNING, f"No replica will be cut, but {counted(len(grave), 'finding')} to look at in {among}."
        )
    if result.partitions:
        if count[Verdict.LEADER] == len(result.partitions):
            return _Answer(
                Style.ANSWER_WARNING,
                f"Nothing was compared: of {'each of ' if len(result.partitions) > 1 else ''}{among} one replica is here.",
                "Give the other brokers' directories too.",
            )
        left_out = count[Verdict.UNREADABLE]
        if left_out == len(result.partitions):
            return _Answer(Style.ANSWER_WARNING, f"Nothing was compared: no live replica of {among} is here.")
        compared = counted(len(result.partitions) - left_out, "partition")
        rest = (
            f", {left_out} left out that {'has' if left_out == 1 else 'have'} no live replica here" if left_out else ""
        )
        return _Answer(Style.ANSWER_GOOD, f"All replicas agree: {compared} compared{rest}.")
    return _Answer(Style.ANSWER_WARNING, "Nothing to compare: no partition was found.")


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _at_risk(total: _Totals) -> str:
    who = listed(total.owners)
    if total.lost:
        also = f" (and {total.possible} possibly committed)" if total.possible else ""
        return f"{who} will discard {counted(total.lost, 'committed record')}{also}"
    return f"{who} will discard {counted(total.possible, 'record')} that may have been committed"


def _totals(reports: Sequence[PartitionReport]) -> _Totals:
    lost = possible = silent = past = 0
    owners: set[str] = set()
    for report in reports:
        silent += any(r.verdict is Verdict.SILENT_DIVERGENCE for r in report.replicas)
        past += any(r.past_end is not None for r in report.replicas)
        for replica in report.replicas:
            if replica.truncation is not None and replica.view.replica.state == "live":
                gone = replica.truncation.lost
                if gone.certain or gone.possible:
                    owners.add(replica.view.replica.owner)
        chosen = next((w for w in report.what_if if report.leader and w.leader is report.leader.view), None)
        if chosen is not None:
            lost, possible = lost + chosen.lost_certain, possible + chosen.lost_possible
    return _Totals(lost, possible, sorted(owners), silent, past)
