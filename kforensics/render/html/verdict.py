"""The answer of a result as the colour, mark and words at the top of its page."""

from dataclasses import dataclass

from kforensics.findings.answers.model import Answer, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The tone and symbol of the answer; the symbol says the same as the colour."""

    tone: str
    mark: str
    words: str


_VERDICTS = {
    State.LOST: Verdict(tone="bad", mark="✕", words="Committed records are lost"),
    State.MAYBE_LOST: Verdict(tone="bad", mark="?", words="Committed records may be lost"),
    State.AT_RISK: Verdict(tone="bad", mark="!", words="Committed records are at risk"),
    State.MAYBE_AT_RISK: Verdict(tone="bad", mark="?", words="Committed records may be at risk"),
    State.DIVERGED: Verdict(tone="bad", mark="!", words="Replicas hold different content"),
    State.DAMAGED: Verdict(tone="warning", mark="!", words="Files are damaged"),
    State.UNKNOWN: Verdict(tone="warning", mark="?", words="The evidence does not answer it"),
    State.UNCOMMITTED_LOST: Verdict(tone="warning", mark="!", words="Records that were not committed are lost"),
    State.UNCOMMITTED_ONLY: Verdict(tone="warning", mark="!", words="Truncations are due, of nothing committed"),
    State.BEHIND: Verdict(tone="warning", mark="!", words="A replica is behind"),
    State.SAME_ENDS: Verdict(tone="warning", mark="?", words="Content was not compared"),
    State.AGREE: Verdict(tone="good", mark="✓", words="All replicas agree"),
    State.NOTHING_LOST: Verdict(tone="good", mark="✓", words="No committed record is lost"),
}
"""The verdicts of the commands that have pages; only a state that proves that all is well has a tick."""


def verdict_of(answer: Answer) -> Verdict:
    """The verdict at the top of the page of an answer."""
    return _VERDICTS[answer.state]
