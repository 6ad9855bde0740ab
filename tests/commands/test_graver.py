"""No command is calm where the replicas of the partitions that it is about are not."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from kforensics.ask.model import Ask, What
from kforensics.commands import diff, explain, groups, predict, salvage, transactions, verify
from kforensics.commands.graver import graver_of
from kforensics.commands.result import Result
from kforensics.findings.answers.graver import GRAVE, Asked, beyond, may_be_calmer, with_graver
from kforensics.findings.answers.model import STATES, Answer, State

RISK = "DATA AT RISK: broker 1 will discard 56 committed records of 3 partitions that the leader does not hold: see `kforensics diff`."


def compared(state, headline="ONLY BROKER 1 HOLDS 14 records. Copy its directory."):
    return Asked(
        "diff",
        answer=Answer(state=state, headline=headline, now=("Copy it.",), tell=("Tell it.",)),
        ask=Ask(paths=(Path("a b"),)),
    )


def test_what_replicas_come_to_stands_in_the_first_line_of_verify(fixtures):
    result = verify.run(Ask(paths=(fixtures / "unclean-election",), jobs=1))

    assert (result.answer.state, result.exit_code) == ("at-risk", 1)
    assert result.answer.headline.startswith(f"{RISK} Sound: ")
    assert any(
        getattr(one, "commands", ()) == (f"kforensics diff {fixtures / 'unclean-election'}",)
        for one in result.answer.now
    )


def test_replicas_that_agree_after_a_loss_are_not_calm(incident):
    place = incident("disk-replaced-4.x")
    asked = Ask(paths=(place / "snapshots" / "99-final", place / "logs"), jobs=1)

    result = diff.run(asked)

    assert (result.answer.state, result.exit_code) == ("lost", 1)
    lost, _, rest = result.answer.headline.partition(": see `kforensics explain`. ")
    assert "records that were committed are lost from bonds" in lost
    assert rest.startswith("All replicas agree: ")
    assert any("kforensics explain" in one for step in result.answer.now for one in getattr(step, "commands", ()))
    # It is answered.
    assert not any("were lost before" in one for one in result.answer.unknown)


@pytest.mark.parametrize("command", [predict, verify])
@pytest.mark.parametrize(("name", "state"), [("disk-replaced-4.x", "lost"), ("unclean-election-4.x", "maybe-lost")])
@pytest.mark.some("unclean-election-4.x-maybe-lost-kforensics.commands.predict")
def test_neither_a_start_nor_a_check_is_calm_after_a_loss(incident, command, name, state):
    place = incident(name)
    asked = Ask(paths=(place / "snapshots" / "99-final", place / "logs"), jobs=1)

    result = command.run(asked)

    assert (result.answer.state, result.exit_code) == (state, 1)
    assert ": see `kforensics explain`. " in result.answer.headline


def test_what_neither_an_election_nor_a_truncation_can_have_lost_is_not_explained(incident, monkeypatch):
    monkeypatch.setattr("kforensics.commands.explain.explain", lambda *_: pytest.fail("it explained"))
    place = incident("kraft-quorum-3x")

    result = diff.run(Ask(paths=(place / "snapshots" / "99-final", place / "logs"), jobs=1))

    assert (result.answer.state, result.exit_code) == ("behind", 0)


def test_a_marker_that_one_replica_lacks_is_not_lost(incident):
    snapshots = incident("consumer-ahead-4.x") / "snapshots"
    nodes = [one for one in sorted((snapshots / "99-final").iterdir()) if one.name != "broker-2"]

    result = diff.run(
        Ask(paths=(*nodes, snapshots / "03-old-leader-down-live" / "broker-2"), topics=frozenset({"derived"}), jobs=1)
    )

    assert (result.answer.state, result.exit_code) == ("behind", 0)


def test_one_directory_alone_is_not_compared(fixtures, monkeypatch):
    monkeypatch.setattr("kforensics.commands.comparing.compare", lambda *_: pytest.fail("it compared"))

    result = verify.run(Ask(paths=(fixtures / "unclean-election" / "broker-1",), jobs=1))

    assert (result.answer.state, result.exit_code) == ("sound", 0)
    assert "diff" not in result.answer.headline


def test_what_replicas_of_another_topic_come_to_is_not_said(fixtures):
    """Of payments no replica truncates, nor of the topics of the coordinators."""
    asked = Ask(paths=(fixtures / "unclean-election",), jobs=1)
    told: list[Result[Any]] = [
        explain.run(Ask(paths=asked.paths, topics=frozenset({"payments"}), jobs=1)),
        groups.run(asked),
        transactions.run(asked),
    ]

    assert all("diff" not in one.answer.headline for one in told)
    assert all(one.answer.state not in {"at-risk", "diverged"} for one in told)


@pytest.mark.parametrize("depth", [None, "tails"])
def test_explain_compares_what_it_has_read(fixtures, monkeypatch, depth):
    monkeypatch.setattr("kforensics.case.comparison.compare_all", lambda *_: pytest.fail("it read the logs again"))

    result = explain.run(Ask(paths=(fixtures / "unclean-election",), depth=depth, jobs=1))

    graver = graver_of(result.case)
    assert graver is not None
    assert graver.answer.state == State.AT_RISK


def test_what_is_saved_is_not_at_risk_any_more(fixtures, tmp_path):
    result = salvage.run(Ask(paths=(fixtures / "unclean-election",), what=What.LOST, out=tmp_path / "out", jobs=1))

    assert result.body.records
    assert "DATA AT RISK" not in result.answer.headline


@pytest.mark.parametrize(
    ("state", "theirs", "expected"),
    [
        (State.SOUND, State.AT_RISK, State.AT_RISK),
        (State.SOUND, State.DIVERGED, State.DIVERGED),
        (State.REPAIRABLE, State.MAYBE_AT_RISK, State.MAYBE_AT_RISK),
        (State.UNKNOWN, State.AT_RISK, State.AT_RISK),
        (State.NOTHING_LOST, State.MAYBE_AT_RISK, State.MAYBE_AT_RISK),
        (State.NO_SETBACK, State.AT_RISK, State.AT_RISK),
        (State.IN_TIME, State.AT_RISK, State.AT_RISK),
    ],
)
def test_the_graver_state_is_that_of_the_whole(state, theirs, expected):
    found = with_graver(Answer(state=state, headline="It is calm.", now=("Wait.",)), compared(theirs))

    assert expected == found.state
    assert "ONLY BROKER 1 HOLDS 14 records: see `kforensics diff`. Copy its directory. It is calm." == found.headline
    assert ("Copy it.", "Wait.") == (found.now[0], found.now[-1])
    assert "kforensics diff 'a b'" in found.now[1]
    assert ("Tell it.",) == found.tell


@pytest.mark.parametrize(
    ("state", "theirs"),
    [
        (State.LOST, State.AT_RISK),
        (State.MAYBE_LOST, State.AT_RISK),
        (State.UNKNOWN, State.UNKNOWN),
        (State.DAMAGED, State.AT_RISK),
        (State.SOUND, State.AGREE),
        (State.SOUND, State.UNKNOWN),
        (State.SOUND, State.UNCOMMITTED_ONLY),
    ],
)
def test_an_answer_that_is_as_grave_stays(state, theirs):
    answer = Answer(state=state, headline="It is so.")

    assert answer == with_graver(answer, compared(theirs))
    assert answer == with_graver(answer, None)


def test_what_nothing_outweighs_needs_no_comparison():
    assert not may_be_calmer(Answer(state=State.LOST, headline=""))
    assert may_be_calmer(Answer(state=State.UNKNOWN, headline=""))


def test_what_is_supposed_stays_with_what_comes_of_it():
    supposed = "Suppose broker 3 leads. Then 24 records of orders are lost. The cause: an unclean election."
    graver = Asked("explain", Answer(state=State.MAYBE_LOST, headline=supposed))

    answer = with_graver(Answer(state=State.AGREE, headline="All agree."), graver)

    first = "Suppose broker 3 leads. Then 24 records of orders are lost: see `kforensics explain`."
    assert answer.headline == f"{first} The cause: an unclean election. All agree."
    assert beyond(supposed, "Then 24 records of orders are lost.") == supposed
    assert (
        beyond(supposed, "Suppose broker 3 leads. Then 24 records of orders are lost.")
        == "The cause: an unclean election."
    )


def test_what_is_said_under_a_label_is_not_said_again():
    said = "LOGS DIFFER FOR GOOD: Node 1 holds two logs: from offset 3 on: see `kforensics diff`. Node 2 began anew."

    assert beyond("Node 1 holds two logs: from offset 3 on. Sound: 3 files.", said) == "Sound: 3 files."
    other_way = beyond(said, "Node 1 holds two logs: from offset 3 on. Three records are lost.")
    assert other_way == "Node 2 began anew."
    assert beyond("AT RISK: Node 3 holds one.", said) == "AT RISK: Node 3 holds one."


@pytest.mark.parametrize("command", [diff, explain, predict, salvage, verify])
@pytest.mark.some(2)
def test_a_log_that_is_gone_is_as_grave_to_every_command(fixtures, tmp_path, command):
    """Of a partition with one replica no other holds what its checkpoints name."""
    shutil.copytree(fixtures / "unclean-election", tmp_path / "now", symlinks=True)
    for one in (tmp_path / "now").glob("broker-*/orders-*/*.log"):
        one.unlink()

    result = command.run(Ask(paths=(tmp_path / "now",), jobs=1, plan=command is salvage))

    assert result.exit_code == 1
    assert result.answer.state in {"maybe-at-risk", "at-risk", "damaged"}
    assert "Nothing" not in result.answer.headline


def test_the_statement_of_another_command_keeps_its_exit_code():
    """What stands first is as grave as where it comes from; of a command that has no such state it would be refused."""
    for command, states in GRAVE.items():
        assert states <= STATES[command].keys()
        for one in ("diff", "explain", "predict", "verify", "salvage", "groups", "transactions", "triage"):
            taken = states & STATES[one].keys()
            assert all(STATES[one][state] == STATES[command][state] for state in taken)
            if command == "diff":
                assert taken == states


def test_what_copying_running_brokers_leaves_behind_is_said_alike_by_all(fixtures, tmp_path):
    """Every replica ends below the high watermark that its broker recorded, and none was stopped cleanly."""
    for broker in sorted((fixtures / "unclean-election").glob("broker-*")):
        now = tmp_path / broker.name
        shutil.copytree(broker, now, ignore=lambda _, names: {one for one in names if one.startswith(("orders", "_"))})
        (now / ".kafka_cleanshutdown").unlink(missing_ok=True)
        (now / "recovery-point-offset-checkpoint").unlink()
        lines = [one for one in (now / "replication-offset-checkpoint").read_text().split("\n") if "payments" in one]
        raised = [f"{one.rpartition(' ')[0]} {int(one.rpartition(' ')[2]) + 5}" for one in lines]
        (now / "replication-offset-checkpoint").write_text("\n".join(["0", str(len(raised)), *raised, ""]))

    asked = Ask(paths=tuple(sorted(tmp_path.iterdir())), jobs=1)

    told = [one.run(asked) for one in (diff, predict, verify)]

    expected = [("maybe-at-risk", 1), ("maybe-at-risk", 1), ("unknown", 3)]
    assert [(one.answer.state, one.exit_code) for one in told] == expected
    assert all(one.answer.headline.startswith("MAYBE AT RISK") for one in told)
    assert "damaged" not in told[2].answer.headline
