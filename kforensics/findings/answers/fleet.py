"""The answers of the commands for fleets: whether partitions are at risk, and what changed between two audits."""

from dataclasses import replace

from kforensics.damage import Absent
from kforensics.findings.answers.diff import deleted_topics, diff_answer, of_deleted_topics, quorum_state
from kforensics.findings.answers.graver import with_disks
from kforensics.findings.answers.model import CALM_OF_DIFF, Answer, State, worst_state
from kforensics.findings.changes import NOT_BETTER, Change
from kforensics.findings.fleet_summary import AuditComparison, AuditTrend, FleetSummary, TrimmedHistory
from kforensics.findings.rules.directories import (
    FUTURE_BELOW_START,
    IN_TWO_LOG_DIRECTORIES,
    MISNAMED,
    REFUSED_ID,
)
from kforensics.findings.rules.quorum import with_quorum
from kforensics.findings.rules.settled import BELOW_THE_ENDS
from kforensics.units import Depth
from kforensics.words import counted, form, utc_text

_GRAVE = ("critical", "error", "warning")


def fleet_answer(summary: FleetSummary) -> Answer:
    """Return the answer to whether the replicas of a fleet agree."""
    damaged = sum(one.damaged_places for one in summary.damage_by_disk)
    answer = _answer_of_partitions(summary)
    if damaged and answer.state not in _WORSE_THAN_DAMAGE:
        disks = counted(len(summary.damage_by_disk), "disk")
        answer = Answer(
            state=State.DAMAGED,
            headline=f"{counted(damaged, 'damaged place')} on {disks}. {answer.headline}",
            now=("Look at the disks that are listed below; `kforensics verify` shows the damaged bytes.", *answer.now),
            tell=answer.tell,
            unknown=answer.unknown,
        )
    if summary.depth is Depth.TAILS and summary.partition_count:
        # Of the partitions that were judged only the worst are known here.
        unknown = [one for one in answer.unknown if not one.startswith(BELOW_THE_ENDS)]
        answer = replace(
            answer, unknown=(*unknown, f"{BELOW_THE_ENDS}: it was not compared; --depth content compares it.")
        )
    answer = with_disks(answer, [one for one in summary.findings if one.code in _OF_DISKS])
    return _with_problems(answer, summary)


_OF_DISKS = frozenset(one.code for one in (FUTURE_BELOW_START, IN_TWO_LOG_DIRECTORIES, MISNAMED, REFUSED_ID))
_WORSE_THAN_DAMAGE = frozenset({State.AT_RISK, State.MAYBE_AT_RISK, State.DIVERGED})


def _answer_of_partitions(summary: FleetSummary) -> Answer:
    compared = summary.partition_count - summary.deleted_partitions
    state = worst_state(map(State, summary.states))
    if state is None:
        return Answer(
            state=State.UNKNOWN,
            headline="Nothing to judge: no partition was found, or none of those that were asked for.",
        )
    if not compared and state is State.AGREE:
        deleted = summary.deleted_partitions
        words = f"Nothing to judge: {counted(deleted, 'partition')}, of {deleted_topics(deleted)}."
        return Answer(state=State.UNKNOWN, headline=words)
    if state is not State.AGREE or summary.quorums or summary.refused:
        worst = worst_state(filter(None, map(quorum_state, summary.quorums)))
        first = next((one for one in summary.quorums if quorum_state(one) is worst), None)
        answer = diff_answer(
            summary.judged,
            paths=[one.path for one in summary.inputs],
            findings=summary.findings,
            among=compared,
            refused=summary.refused,
            quorum=first,
        )
        for other in summary.quorums:
            answer = answer if other is first else with_quorum(answer, other)
        count = summary.states[state.value]
        more = (
            f" These are the first {len(summary.judged):,} of {count:,} such partitions."
            if count > len(summary.judged)
            else ""
        )
        return replace(answer, headline=answer.headline + more)
    grave = sum(summary.findings_by_severity.get(one, 0) for one in _GRAVE)
    agree = f"All replicas of {counted(compared, 'partition')} agree on {counted(summary.nodes, 'node')}, every assigned replica given"
    agree += of_deleted_topics(summary.deleted_partitions)
    # The findings may be filtered: that none is listed proves no sound fleet.
    return Answer(
        state=state, headline=f"{agree}, but {counted(grave, 'finding')} to look at." if grave else f"{agree}."
    )


def _with_problems(answer: Answer, summary: FleetSummary) -> Answer:
    if not summary.problem_count:
        return answer
    unread = (
        f"{counted(summary.problem_count, 'thing')} could not be read (listed below); what they hold is not judged."
    )
    return replace(
        answer,
        state=State.UNKNOWN if answer.state in CALM_OF_DIFF else answer.state,
        headline=f"Incomplete: {answer.headline}",
        unknown=(unread, *answer.unknown),
    )


def comparison_answer(comparison: AuditComparison) -> Answer:
    """Return the answer to what changed between two audits."""
    grown = sum(comparison.count(change) for change in NOT_BETTER)
    unchecked = comparison.count(Change.UNCHECKED)
    is_open = bool(unchecked or comparison.problem_count or comparison.limits or comparison.gone_nodes)
    unknown = list(comparison.limits)
    if comparison.gone_nodes:
        unknown.append(
            f"The later audit does not have {counted(len(comparison.gone_nodes), 'node')} of the earlier one."
        )
    if comparison.problem_count:
        unknown.append(f"The later audit could not read {counted(comparison.problem_count, 'thing')}.")
    if unchecked:
        unknown.append(
            f"{counted(unchecked, 'finding')} of the earlier audit {form(unchecked, 'is', 'are')} no longer found, but not all that showed "
            f"{form(unchecked, 'it', 'them')} was read again."
        )
    return Answer(
        state=State.CHANGED if grown else State.UNKNOWN if is_open else State.UNCHANGED,
        headline=_comparison_words(comparison, is_open=is_open),
        unknown=tuple(unknown),
    )


_CHANGE_WORDS = {
    Change.NEW: "new",
    Change.WORSE: "worse",
    Change.CHANGED: "changed",
    Change.BETTER: "better",
    Change.UNCHECKED: "not checked again",
    Change.GONE: "gone",
}


def change_words(name: str) -> str:
    """Return a change between two audits as sentences and columns have it."""
    return _CHANGE_WORDS.get(Change(name), name)


def _comparison_words(comparison: AuditComparison, *, is_open: bool) -> str:
    found = [(comparison.count(change), words) for change, words in _CHANGE_WORDS.items() if comparison.count(change)]
    changes = len(comparison.changes)
    if not found and not changes:
        what = "No finding and no verdict changed between the two audits"
        return f"{what}, as far as they could be compared." if is_open else f"{what}."
    parts = []
    if found:
        (count, first), *rest = found
        parts.append(
            ", ".join([f"{counted(count, 'finding')} {first}", *(f"{count:,} {words}" for count, words in rest)])
        )
    if changes:
        parts.append(f"{counted(changes, 'partition')} with another verdict")
    return f"{'; '.join(parts)}."


def history_answer(found: TrimmedHistory) -> Answer:
    """Return the answer to what is left of a history."""
    gone = len(found.trimmed_audits)
    left = f"{counted(len(found.audits), 'audit')} {form(len(found.audits), 'is', 'are')} left, the oldest of {utc_text(found.oldest_ms)[:10]}"
    if not gone:
        return Answer(
            state=State.COMPLETE, headline=f"No audit that can go is older than {counted(found.days, 'day')}: {left}."
        )
    files = f", with {counted(found.removed_files, 'file')} that only {form(gone, 'it', 'they')} held"
    return Answer(
        state=State.COMPLETE, headline=f"{counted(gone, 'audit')} {form(gone, 'was', 'were')} removed{files}: {left}."
    )


def trend_answer(trend: AuditTrend) -> Answer:
    """Return the answer to whether there are more or fewer findings than before."""
    last = trend.lines[-1]
    grave = [sum(one.findings_by_severity.get(name, 0) for name in _GRAVE) for one in trend.lines]
    first = next(at for at, one in enumerate(trend.lines) if set(one.clusters) & set(last.clusters) or one is last)
    of_cluster = " of the same cluster" if first else ""
    before = "" if trend.lines[first] is last else f"; the first of them{of_cluster} had {grave[first]:,}"
    changes = [f"{last.count(change):,} {words}" for change, words in _CHANGE_WORDS.items() if last.count(change)]
    since = (
        ""
        if isinstance(last.compared_with, Absent)
        else f"; since the audit before: {', '.join(changes) or 'no change'}"
    )
    headline = f"The latest of {counted(len(trend.lines), 'audit')} has {counted(grave[-1], 'finding')} of warning and above{before}{since}."
    unknown = list(last.limits)
    if last.problem_count:
        unknown.append(f"The latest audit could not read {counted(last.problem_count, 'thing')}.")
    if last.gone_nodes:
        unknown.append(f"The latest audit does not have {counted(len(last.gone_nodes), 'node')} of the one before.")
    if last.count(Change.UNCHECKED):
        unknown.append(
            f"The latest audit did not check {counted(last.count(Change.UNCHECKED), 'finding')} of the one before again."
        )
    if unknown:
        return Answer(state=State.UNKNOWN, headline=f"Incomplete: {headline}", unknown=tuple(unknown))
    return Answer(state=State.COMPLETE, headline=headline)
