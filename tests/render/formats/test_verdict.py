"""The top of a page claims no more than the state of its answer."""

import pytest

from kforensics.findings.answers.model import STATES, Answer, State
from kforensics.render.formats.page import verdict_of

PAGES = ("explain", "fleet audit", "fleet report", "trace", "trace --erasure")


@pytest.mark.parametrize("state", sorted({state for command in PAGES for state in STATES[command]}))
def test_only_calm_states_have_a_tick(state):
    verdict = verdict_of(Answer(state=State(state), headline="It is so."))

    assert (verdict.tone == "good") == (verdict.mark == "✓") == (state.is_calm)
    assert verdict.words
    assert verdict_of(Answer(state=State(state), headline="It is so."), is_whole=False).mark != "✓"
