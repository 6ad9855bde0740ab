"""Scenario files: what is wrong is told with its line, and nothing that YAML can do gets through."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.errors import UsageError
from kforensics.protocol.election import Acks
from kforensics.protocol.truncation import ProtocolName
from kforensics.simulation.scenario import (
    MAX_FILE_LENGTH,
    Action,
    Election,
    ScenarioFileError,
    StepFailedError,
    builtin_scenario,
    parse_scenario,
    replay,
)

WHOLE = """\
name: mine
title: A story
brokers: [1, 2, 3]
settings:
  min_insync_replicas: 2
  unclean_leader_election: true
  lag_time_max: 10s
  lag_max_messages: 4000
  checkpoint_interval: 500ms
  recovery_point_interval: 2s
  start_time: 1700000000000
steps:
  - produce: {records: [a, b], acks: 1}
  - produce: {count: 5}
  - say: and then
  - fetch: [2, 3]
  - advance: 2min
  - elect: unclean
  - crash: [1, 2]
"""


def test_a_whole_scenario():
    scenario = parse_scenario(WHOLE, "mine.yaml")
    assert (scenario.name, scenario.title, scenario.brokers, scenario.source) == (
        "mine",
        "A story",
        (1, 2, 3),
        "mine.yaml",
    )
    assert scenario.settings.min_insync_replicas == 2
    assert scenario.settings.lag_time_max_ms == 10_000
    assert (scenario.settings.checkpoint_interval_ms, scenario.settings.recovery_point_interval_ms) == (500, 2_000)
    produce, more, say, fetch, advance, elect, crash = scenario.steps
    assert (produce.action, produce.records, produce.acks, produce.line) == (
        Action.PRODUCE,
        ("a", "b"),
        Acks.LEADER,
        13,
    )
    assert more.records == 5
    assert say.words == "and then"
    assert fetch.brokers == (2, 3)
    assert advance.milliseconds == 120_000
    assert elect.election is Election.UNCLEAN
    assert crash.brokers == (1, 2)
    assert replay(scenario, ProtocolName.KIP_595).rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "s:1: expected a scenario, found nothing"),
        ("- 1", "s:1: expected a scenario, found a list"),
        ("name: x\nbrokers: [1]", "s:1: expected the key 'steps', found none"),
        ("name: x\nbrokers: [1]\nstep: []", "s:3: expected one of name, title, brokers, settings, steps, found 'step'"),
        ("name: x\nname: y", "s:2: expected 'name' once, found it again"),
        ("name: x\nbrokers: 1\nsteps: 3", "s:3: expected a list of steps, found '3'"),
        ("name: x\nbrokers: [1, 1]\nsteps: []", "s:2: expected each broker once, found [1, 1]"),
        ("name: x\nbrokers: []\nsteps: []", "s:2: expected 1 to 64 brokers, found 0"),
        ("name: x\nbrokers: [a]\nsteps: []", "s:2: expected a number, found 'a'"),
        ("name: [x]\nbrokers: [1]\nsteps: []", "s:1: expected a word, found a list"),
        ("name: x\nbrokers: [1]\nsteps:\n- explode: 1", "s:4: expected one of produce,"),
        ("name: x\nbrokers: [1]\nsteps:\n- {fetch: 1, crash: 1}", "s:4: expected one action a step, found 2"),
        ("name: x\nbrokers: [1]\nsteps:\n- fetch: 9", "s:4: expected a broker out of [1], found 9"),
        (
            "name: x\nbrokers: [1]\nsteps:\n- advance: soon",
            "s:4: expected a time as 500ms, 10s, 5min or 1h, found 'soon'",
        ),
        ("name: x\nbrokers: [1]\nsteps:\n- advance: 99999999h", "s:4: expected at most ten years"),
        ("name: x\nbrokers: [1]\nsteps:\n- elect: me", "s:4: expected one of clean, preferred, unclean, found 'me'"),
        ("name: x\nbrokers: [1]\nsteps:\n- produce: {acks: 2}", "s:4: expected one of 0, 1, all, -1, found '2'"),
        ("name: x\nbrokers: [1]\nsteps:\n- produce: {count: 1, records: [a]}", "s:4: expected either"),
        ("name: x\nbrokers: [1]\nsteps:\n- produce: {count: 999999999}", "s:4: expected 1 to 100000 records"),
        ("name: x\nbrokers: [1]\nsettings: {unclean_leader_election: maybe}", "s:1: expected the key 'steps'"),
        ("name: x\nbrokers: [1]\nsteps: []\nsettings: {strict_min_isr: maybe}", "s:4: expected one of true, false"),
        ("name: &x x\nbrokers: [1]\nsteps: [*x]", "s:3: expected no alias, found *x"),
        ("a: &a [*a]", "s:1: expected no alias, found *a"),
        ("[" * 5000, "s:1: expected at most 8 levels, found more"),
        ("name: 'x", "s:1: expected YAML, found unexpected end of stream"),
        ("---\nname: x\n---\nname: y\n", "s:3: expected YAML, found another document"),
        ('name: "\\ud800"\nbrokers: [1]\nsteps: []', "s:1: expected Unicode, found half of a surrogate pair"),
        ("name: x\nbrokers: [9999999999]\nsteps: []", "s:2: expected broker ids up to 2147483647, found 9999999999"),
        (
            "name: x\nbrokers: [1]\nsettings: {start_time: 999999999999999}\nsteps: []",
            "s:3: expected a time before the year 9999, found '999999999999999'",
        ),
        (
            "name: x\nbrokers: [1]\nsettings: {start_time: 253370764799999}\nsteps:\n- advance: 1ms\n- advance: 1ms",
            "s:6: expected a time before the year 9999, found '1ms'",
        ),
        ("name: x\nbrokers: &b [1]\nsteps:\n- crash: *b", "s:4: expected no alias, found *b"),
        ("name: \x00", "s:1: expected YAML, found"),
        ("name: !!python/object:os.system x\nbrokers: [1]\nsteps: []", None),
        ("a: b: c", "s:1: expected YAML, found mapping values are not allowed here"),
    ],
)
def test_errors_are_reported_with_their_line(text, message):
    if message is None:
        assert parse_scenario(text, "s").name == "x"
        return
    with pytest.raises(ScenarioFileError) as refused:
        parse_scenario(text, "s")
    assert str(refused.value).startswith(message)


@pytest.mark.slow
def test_bounds():
    with pytest.raises(ScenarioFileError, match=r"at most 1048576 characters"):
        parse_scenario(" " * (MAX_FILE_LENGTH + 1), "s")
    with pytest.raises(ScenarioFileError, match=r"at most 10000 steps, found 10001"):
        parse_scenario("name: x\nbrokers: [1]\nsteps:\n" + "- produce: {}\n" * 10_001, "s")


def test_a_table_has_a_bound_too(monkeypatch):
    monkeypatch.setattr("kforensics.simulation.scenario.MAX_CELLS", 20)
    text = "name: x\nbrokers: [1, 2]\nsteps:\n- produce: {}\n- fetch: 2\n- fetch: 2\n- fetch: 2\n"
    with pytest.raises(StepFailedError, match=r"s:7: fetch can't happen here: .* more than 10 rows for 2 brokers"):
        replay(parse_scenario(text, "s"), ProtocolName.HW)


@pytest.mark.slow
def test_many_records_without_a_copy_take_no_time():
    steps = "- produce: {count: 100000}\n" * 2 + "- fetch: 2\n" * 500
    rows = replay(parse_scenario(f"name: x\nbrokers: [1, 2, 3]\nsteps:\n{steps}", "s"), ProtocolName.KIP_595).rows
    assert rows[-1].replicas[1].log_end_offset == 200_000


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(UsageError, match=r"no scenario 'nope': .*one-produce.*, or a file"):
        builtin_scenario("nope")


@given(st.text(max_size=120) | st.lists(st.sampled_from(WHOLE.splitlines()), max_size=20).map("\n".join))
@pytest.mark.slow
def test_any_text_is_a_scenario_or_a_refusal(text):
    try:
        scenario = parse_scenario(text, "s")
    except ScenarioFileError as refused:
        line = refused.line
    else:
        line = 1
        with contextlib.suppress(StepFailedError):
            replay(scenario, ProtocolName.KIP_279)
    assert 1 <= line <= len(text) + 1
