"""The top of a page claims no more than the state of its answer."""

from dataclasses import replace

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


def test_metadata_whose_copies_agree_is_not_said_to_be_well():
    agreeing = Answer(state=State.AGREE, headline="It is so.")

    assert verdict_of(agreeing, command="metadata").mark != "✓"
    assert verdict_of(agreeing, command="metadata").words != verdict_of(agreeing, command="diff").words
    assert verdict_of(replace(agreeing, state=State.AT_RISK), command="metadata") == verdict_of(
        replace(agreeing, state=State.AT_RISK), command="diff"
    )
