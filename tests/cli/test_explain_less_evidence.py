"""Inputs taken away from the recordings: `explain` of what is left is unsure, never calm, denies no loss, and more evidence only refines it."""

import json
import random
import re
from pathlib import Path

import pytest

from kforensics.ask.model import Ask
from kforensics.case.opening import open_case
from kforensics.commands.explain import explain
from kforensics.findings.answers.explain import incident_state
from kforensics.findings.answers.model import State
from tests.builders.directories import copied
from tests.builders.repeating import OF_EACH_KIND, times

pytestmark = pytest.mark.usefixtures("read_once")

RECORDINGS = sorted(
    p.name.removesuffix(".tar.xz") for p in (Path(__file__).parents[2] / "fixtures" / "incidents").glob("*.tar.xz")
)
SUBSETS = times(1, 4)


def look(now, before):
    return explain(open_case(Ask(paths=tuple(now), before=tuple(before), jobs=1)))


def offsets_of(result, certainty, field="committed"):
    return {
        (one.topic_partition.topic, one.topic_partition.partition, offset)
        for incident in result.incidents
        for one in incident.losses
        if getattr(one, field) == certainty
        for offset in range(one.offsets.first, one.offsets.last + 1)
    }


CERTAIN = re.compile(r"certainly|were committed|was committed|(?<!possibly )committed records?\b", re.IGNORECASE)


def check_guesses(context, result):
    """Where no input shows the leader, nothing is certain, and no sentence says so."""
    guessed = [one for one in result.incidents if not one.is_leader_known]
    for one in guessed:
        assert not [loss for loss in one.losses if "certain" in {loss.committed, loss.was_committed}], context
        assert not [cut for cut in one.truncations if cut.committed.certain], context
    names = {one.partition for one in guessed}
    assert not [one for one in result.findings if one.code == "KF301" and (one.topic, one.partition) in names], context
    harmed = {one.partition for one in result.incidents if one.losses or one.past_end}
    if harmed and harmed <= names and not any(one.past_end for one in result.incidents):
        answer = result.answer
        said = [*([answer.headline] if answer.state is State.MAYBE_LOST else ()), *answer.now, *answer.tell]
        said += [one for one in result.conclusion if "never committed" not in one and not one.startswith("No input")]
        assert not [one for one in said if CERTAIN.search(one)], context


def check_promises(context, result, lost, kept):
    check_guesses(context, result)
    assert not (lost and result.answer.state in {State.NOTHING_LOST, State.UNCOMMITTED_LOST}), context
    assert set() == offsets_of(result, "no", "was_committed") & lost - kept, context
    assert set() == offsets_of(result, "certain") & kept - lost, context
    # The whole is never calmer than a part of it.
    if result.answer.state is State.NOTHING_LOST:
        assert {State.NOTHING_LOST} >= {
            incident_state(one) for one in result.incidents if not one.partition.topic.startswith(("__cluster", "@"))
        }


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some(*OF_EACH_KIND)
def test_with_less_evidence_explain_is_unsure_and_never_calm(name, incident):
    root = incident(name)
    check = json.loads((root / "checks.json").read_text())["explain"]
    lost = {(one["topic"], one["partition"], offset) for one in check["lost"] for offset in one["offsets"]}
    kept = {
        (one["topic"], one["partition"], offset)
        for one in check["not_lost"]
        for first, last in one["runs"]
        for offset in range(first, last + 1)
    }
    final = sorted((root / "snapshots" / check["snapshot"]).iterdir())
    logs = sorted((root / "logs").iterdir())
    before = [root / "snapshots" / one for one in check["before"]]

    whole = look([*final, *logs], before)
    check_promises("everything", whole, lost, kept)
    assert State.UNKNOWN is not whole.answer.state

    rng = random.Random(name)
    plans = [(final, []), (final, before[:1])]
    for _ in range(SUBSETS):
        nodes = [one for one in final if rng.random() < 0.6] or final[:1]
        lines = [one for one in logs if rng.random() < 0.6]
        plans.append(([*nodes, *lines], [one for one in before if rng.random() < 0.4]))
    for now, earlier in plans:
        context = [str(one.relative_to(root)) for one in (*now, *earlier)]
        check_promises(context, look(now, earlier), lost, kept)


@pytest.mark.parametrize("name", ["unclean-election-4.x", "power-loss-4.x", "benign-rolling-restart-4.x"])
@pytest.mark.some("unclean-election-4.x")
def test_along_growing_evidence_calm_never_turns_into_a_loss(name, incident):
    root = incident(name)
    check = json.loads((root / "checks.json").read_text())["explain"]
    final = sorted((root / "snapshots" / check["snapshot"]).iterdir())
    rest = [*sorted((root / "logs").iterdir()), *(root / "snapshots" / one for one in check["before"])]
    random.Random(name).shuffle(rest)

    now, before, calm = list(final), list[Path](), False
    for step in (None, *rest):
        if step is not None:
            (now if step.parent.name == "logs" else before).append(step)
        state = look(now, before).answer.state
        assert not (calm and state in {State.LOST, State.MAYBE_LOST}), (name, str(step))
        calm = calm or state is State.NOTHING_LOST


def test_what_the_last_leader_lost_with_its_disk_is_never_called_uncommitted(incident):
    recording = incident("disk-replaced-4.x")
    truth = json.loads((recording / "incident.json").read_text())["truth"]
    lost = {(one["topic"], one["partition"], one["offset"]) for one in truth["lost_acked"]}

    result = look([recording / "snapshots" / "04-only-1-up-live"], [])

    assert result.answer.state is State.MAYBE_LOST
    shown = offsets_of(result, "certain", "was_committed") | offsets_of(result, "possible", "was_committed")
    assert len(lost & shown) > 100
    assert set() == lost & offsets_of(result, "no", "was_committed")


def test_a_leader_on_record_whose_log_is_from_before_its_term_is_not_called_a_guess(incident):
    snapshots = incident("unclean-election-4.x") / "snapshots"
    final = [one for one in sorted((snapshots / "99-final").iterdir()) if one.name != "broker-3"]

    result = look([*final, snapshots / "01-before-live" / "broker-3"], [])

    assert result.answer.state is State.MAYBE_LOST
    words = "Suppose broker 3, the last leader on record, leads with the log given, which is from before it led. Then 79 possibly committed records"
    assert result.answer.headline.startswith(words)
    statements = [one.statement for one in result.findings if one.code == "KF302"]
    assert len(statements) == 4
    assert all("33 records that were possibly committed are not in the leader's log" in one for one in statements[:1])
    assert all(one.endswith("brokers 1 and 2 still hold them") for one in statements)


def test_a_condition_that_makes_a_sentence_too_long_is_one_of_its_own(incident):
    root = incident("late-return-2.4")

    headline = look([root / "snapshots" / "03-3-leads-live", root / "logs"], []).answer.headline

    condition = "Suppose broker 3, the last leader on record, leads with the log given, which is from before it led."
    assert f"{condition} Then 24 records of orders (2 partitions) that were possibly committed are lost." in headline
    assert "If broker 3" not in headline


def test_partition_directories_without_a_broker_are_not_said_to_be_missing(incident):
    root = incident("unclean-election-4.x")
    directories = [root / "snapshots" / "99-final" / f"broker-{n}" / "orders-2" for n in (1, 2, 3)]

    assert look(directories, []).answer.state is State.UNKNOWN
    answer = look([*directories, root / "logs"], []).answer

    assert answer.state is State.MAYBE_LOST
    assert "those given (no input says which brokers they are of)" in answer.headline


def test_what_a_leader_lost_with_a_segment_is_never_called_uncommitted(incident, tmp_path):
    """Its account shows that it held all that was committed when it was elected, and nothing of what became of its files."""
    final = copied(incident("benign-rolling-restart-4.x") / "snapshots" / "99-final", tmp_path / "final")
    for path in sorted((final / "broker-3" / "events-0").glob("00000000000000000060.*")):
        path.unlink()

    result = look(sorted(final.iterdir()), [])

    assert result.answer.state is State.MAYBE_LOST
    assert set() == offsets_of(result, "no", "was_committed")
    assert {("events", 0, offset) for offset in range(60, 75)} == offsets_of(result, "possible", "was_committed")


def test_a_log_that_lost_its_first_segments_on_every_broker_is_not_whole(incident, tmp_path):
    """Retention would have deleted the leader epochs below, too."""
    root = incident("epoch-truncate-3.9")
    final = copied(root / "snapshots" / "99-final", tmp_path / "final")
    for path in sorted(final.glob("broker-*/trades-0/00000000000000000000.*")):
        path.unlink()

    result = look(sorted(final.iterdir()), [])

    assert result.answer.state is State.UNKNOWN
    assert (
        "what offsets 0 to 106 of broker 2 held, which are unaccounted for by its own files (trades-0)"
        in result.answer.headline
    )


def test_what_the_last_leader_wrote_and_lost_with_its_disk_is_never_called_uncommitted(incident):
    """The cluster was stopped, so the newest state has no leader, in a later leader epoch."""
    snapshots = incident("benign-rolling-restart-4.x") / "snapshots"
    final = [one for one in sorted((snapshots / "99-final").iterdir()) if one.name != "broker-3"]

    result = look([*final, snapshots / "02-broker-2-down-live" / "broker-3"], [])

    assert result.answer.state is State.MAYBE_LOST
    assert set() == offsets_of(result, "no", "was_committed")
    assert {("events", 0, offset) for offset in range(90, 105)} <= offsets_of(result, "possible", "was_committed")
