"""What stands before the answer of a command where the replicas of the same partitions, or their history, come to something graver: no command is calm then."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from kforensics.ask.model import Ask
from kforensics.ask.questions import command_of
from kforensics.exits import ExitCode
from kforensics.findings.answers.model import STATES, Answer, State, no_calmer_than_open
from kforensics.findings.concern import ConcernKind
from kforensics.findings.model import Finding, Weight
from kforensics.words import Step, counted, in_short_sentences

SENTENCES = re.compile(r"(?<=\.) (?!Then )(?=[A-Z])")
"""What is between two sentences that can stand alone: what is supposed stays with what comes of it."""
GRAVE = {
    "diff": frozenset({State.AT_RISK, State.MAYBE_AT_RISK, State.DIVERGED}),
    "explain": frozenset({State.LOST, State.MAYBE_LOST, State.UNKNOWN}),
}
"""The states of these commands that others take over which would be calmer about the same partitions: what stands first decides the exit code, whoever says it."""


class Asked(NamedTuple):
    """A command with its answer about the same inputs."""

    command: str
    answer: Answer
    ask: Ask = Ask()
    """What it is asked, and about which subjects."""
    open_kinds: frozenset[ConcernKind] = frozenset()
    """Of `diff`: the subjects of what decides its state."""
    is_whole: bool = False
    """Of `diff`: whether it read more than the ends of logs."""

    @property
    def code(self) -> int:
        """The exit code of the state."""
        return STATES[self.command][self.answer.state]


def with_findings(command: str, answer: Answer, findings: Sequence[Finding], told: Collection[str] = ()) -> Answer:
    """Return the answer, whose headline names the gravest finding where that alone gives its exit code.

    Args:
        told: codes of what the headline, or the screen below it, says in other words.
    """
    grave = [one for one in findings if one.is_grave]
    is_told = any(one.statement in answer.headline or one.code in told for one in grave)
    if STATES[command][answer.state] or not grave or is_told:
        return answer
    more = f" {counted(len(grave) - 1, 'more such finding')}, below." if len(grave) > 1 else ""
    return replace(answer, headline=f"{answer.headline} {grave[0].statement}.{more}")


def beyond(headline: str, said: str) -> str:
    """Return a headline without the sentences that another one says before it, be they under a label (`AT RISK: `) in one of both."""
    # Of two answers one may be in short sentences already.
    headline, said = in_short_sentences(headline), in_short_sentences(said)
    before = {
        each
        for one in SENTENCES.split(said)
        for each in (*_with_and_without_label(one), one.partition(": ")[2].rstrip("."))
    }
    return " ".join(one for one in SENTENCES.split(headline) if before.isdisjoint(_with_and_without_label(one)))


def _with_and_without_label(sentence: str) -> set[str]:
    whole = _SEEN.sub("", sentence).rstrip(".")
    return {whole, _LABEL.sub("", whole)}


_SEEN = re.compile(r": see `kforensics \w+`")
_LABEL = re.compile(r"^[A-Z ]+: ")


_SEE = {
    "diff": "See what each replica truncates, and which leader loses least",
    "explain": "See what was lost, when, and who still holds it",
}


def see(asked: Asked) -> Step:
    """Return the step that leads to what another command says."""
    return Step(_SEE[asked.command], (command_of(asked.command, asked.ask),))


def said_by(asked: Asked, beside: str = "") -> str:
    """Return what a command says first, with its name after the first sentence that is not said beside it."""
    sentences, known = SENTENCES.split(asked.answer.headline), SENTENCES.split(beside)
    at = next((at for at, one in enumerate(sentences) if one not in known), 0)
    sentences[at] = f"{sentences[at].rstrip('.')}: see `kforensics {asked.command}`."
    return " ".join(sentences)


def may_be_calmer(answer: Answer) -> bool:
    """Whether replicas can come to something graver than an answer."""
    return any(_is_graver(one, answer) for one in GRAVE["diff"])


def _is_graver(one: State, than: Answer) -> bool:
    return than.state.weight < min(one.weight, Weight.DAMAGE)


def with_graver(answer: Answer, graver: Asked | None, *, code: int = 0) -> Answer:
    """Return the answer, no calmer than the other one allows: its statement stands first, and decides the state."""
    if graver is None:
        return answer
    state = graver.answer.state
    if state not in GRAVE[graver.command] or not _is_graver(state, answer):
        return answer
    if code == ExitCode.FINDINGS and state is State.UNKNOWN:
        return answer
    said = said_by(graver, beside=answer.headline)
    return replace(
        answer,
        state=state,
        headline=f"{said} {beyond(answer.headline, graver.answer.headline)}".rstrip(),
        now=tuple(dict.fromkeys((*graver.answer.now, see(graver), *answer.now))),
        tell=tuple(dict.fromkeys((*graver.answer.tell, *answer.tell))),
    )


def with_disks(answer: Answer, found: Sequence[Finding], told: Sequence[Finding] = ()) -> Answer:
    """Return the answer with what is wrong with log directories of one broker as they lie side by side: it stands before all but what a start loses, and no answer is calm then.

    Args:
        told: what is wrong, too, and leaves nothing open of what was asked.
    """
    state = no_calmer_than_open(answer.state) if found else answer.state
    found = (*found, *told)
    if not found:
        return answer
    said = " ".join(f"{one.statement[:1].upper()}{one.statement[1:]}." for one in found[:_MOST_DISKS])
    more = (
        f" The same of {counted(len(found) - _MOST_DISKS, 'more directory', 'more directories')}."
        if len(found) > _MOST_DISKS
        else ""
    )
    is_harm = answer.state in {State.AT_RISK, State.LOSES}  # what was lost, these directories may explain
    headlines, advice = (f"{said}{more}", answer.headline), tuple(one.advice for one in found if one.advice)
    return replace(
        answer,
        state=state,
        headline=" ".join(reversed(headlines) if is_harm else headlines),
        now=tuple(dict.fromkeys((*answer.now, *advice) if is_harm else (*advice, *answer.now))),
    )


_MOST_DISKS = 2
