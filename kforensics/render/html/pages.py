"""The answer of a result at the top of its page: the colour, mark and words of its state, and what to do; and how the policy of a page names what it allows."""

import base64
import hashlib
from dataclasses import dataclass

from kforensics.exits import ExitCode
from kforensics.findings.answers.model import Answer, State
from kforensics.words import Prohibition


def hash_of(content: str) -> str:
    """Return the name under which the policy of a page allows a style or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMark:
    """The tone and symbol of the answer; the symbol says the same as the colour."""

    tone: str
    mark: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One part of the answer: an id, a heading and its sentences."""

    anchor: str
    title: str
    sentences: tuple[str, ...]


_VERDICTS = {
    State.BYTES_LEFT: AnswerMark(tone="bad", mark="!", words="Bytes of the key are left"),
    State.LOST: AnswerMark(tone="bad", mark="✕", words="Committed records are lost"),
    State.MAYBE_LOST: AnswerMark(tone="bad", mark="?", words="Committed records may be lost"),
    State.AT_RISK: AnswerMark(tone="bad", mark="!", words="Committed records are at risk"),
    State.MAYBE_AT_RISK: AnswerMark(tone="bad", mark="?", words="Committed records may be at risk"),
    State.DIVERGED: AnswerMark(tone="bad", mark="!", words="Replicas hold different content"),
    State.DAMAGED: AnswerMark(tone="warning", mark="!", words="Files are damaged"),
    State.UNKNOWN: AnswerMark(tone="warning", mark="?", words="The evidence does not answer it"),
    State.UNCOMMITTED_LOST: AnswerMark(tone="warning", mark="!", words="Records that were not committed are lost"),
    State.UNCOMMITTED_ONLY: AnswerMark(tone="warning", mark="!", words="Truncations are due, of nothing committed"),
    State.BEHIND: AnswerMark(tone="warning", mark="!", words="A replica is behind"),
    State.SAME_ENDS: AnswerMark(tone="warning", mark="?", words="Content was not compared"),
    State.CHANGED: AnswerMark(tone="warning", mark="!", words="Findings are new, worse or changed"),
    State.UNCHANGED: AnswerMark(tone="good", mark="✓", words="No finding is new or worse"),
    State.AGREE: AnswerMark(tone="good", mark="✓", words="All replicas agree"),
    State.PRESENT: AnswerMark(tone="warning", mark="!", words="A live replica holds it"),
    State.SUPERSEDED: AnswerMark(tone="warning", mark="!", words="A later record of its key follows"),
    State.DELETED_ON_PURPOSE: AnswerMark(tone="warning", mark="!", words="It was deleted on purpose"),
    State.NEVER_HERE: AnswerMark(tone="warning", mark="!", words="No offset of these logs holds it"),
    State.NO_BYTES_LEFT: AnswerMark(tone="good", mark="✓", words="No file that was searched holds the key"),
    State.NOTHING_LOST: AnswerMark(tone="good", mark="✓", words="No committed record is lost"),
    State.COMPLETE: AnswerMark(tone="note", mark="i", words="All that was asked for was read"),
    State.SAVED: AnswerMark(tone="note", mark="i", words="Saved"),
    State.IN_TIME: AnswerMark(tone="note", mark="i", words="In time"),
}
"""The verdicts that have words of their own; only a state that proves that all is well has a tick."""


def verdict_of(answer: Answer, *, is_whole: bool = True) -> AnswerMark:
    """Return the verdict at the top of the page of an answer.

    Args:
        is_whole: all content was read that the answer is about; without it no state has a tick.
    """
    found = _VERDICTS.get(answer.state) or _by_exit_code(answer.state)
    if is_whole or not answer.state.is_calm:
        return found
    return AnswerMark(tone="warning", mark="?", words=f"{found.words}, by the ends of the logs")


def _by_exit_code(state: State) -> AnswerMark:
    words = state.value.replace("-", " ").capitalize()
    if state.is_calm:
        return AnswerMark(tone="good", mark="✓", words=words)
    return AnswerMark(tone="bad" if state.exit_code is ExitCode.FINDINGS else "warning", mark="!", words=words)


def advice_of(answer: Answer) -> list[Advice]:
    """Return the parts of an answer that have sentences, what not to do first."""
    forbidden = tuple(one for one in answer.now if isinstance(one, Prohibition))
    every = (
        Advice(anchor="never", title="What not to do", sentences=forbidden),
        Advice(
            anchor="do",
            title="What to do now",
            sentences=tuple(one for one in answer.now if not isinstance(one, Prohibition)),
        ),
        Advice(anchor="tell", title="Who to tell", sentences=answer.tell),
        Advice(anchor="later", title="Later", sentences=answer.later),
        Advice(anchor="cant-tell", title="Can't tell", sentences=answer.unknown),
    )
    return [one for one in every if one.sentences]
