"""The first answer: the worst of all questions, what to do, and no more than a screen."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys

import pytest

import kforensics
from kforensics.ask.model import Ask
from kforensics.case.comparison import results_of
from kforensics.case.opening import open_case
from kforensics.cli.app import run
from kforensics.findings.answers.advice import Holders
from kforensics.findings.answers.graver import Asked
from kforensics.findings.answers.model import STATES, Answer, State
from kforensics.findings.answers.triage import TopicRow, triage_answer
from kforensics.units import Depth
from kforensics.words import EXPORT, SAFE, Prohibition, Rescue, Step, with_place
from tests.conftest import ROOT

FINAL = "snapshots/99-final"


@pytest.fixture
def shown(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def show(*words):
        code = run([str(word) for word in words])
        return code, capsys.readouterr().out

    return show


def test_a_path_is_the_first_question(shown, fixtures, untouched):
    with untouched(fixtures / "unclean-election"):
        code, screen = shown(fixtures / "unclean-election")

    assert (code, screen) == shown("triage", fixtures / "unclean-election")
    assert code == 1
    assert screen.startswith("DATA AT RISK: broker 1 will discard 56 committed records of 3 partitions")
    assert screen.count("DATA AT RISK") == 1
    assert re.search(r"^ +\$ kforensics salvage --what at-risk ", screen, re.MULTILINE)
    assert "  orders           3     0      0       56      0  broker 1" in screen
    assert len(screen.splitlines()) <= 30


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"at_risk": 56, "at_risk_on": ("broker 1",)}, "broker 1"),
        # That broker 1 holds what is at risk does not say that anyone holds what is lost.
        ({"lost": 2, "at_risk": 56, "at_risk_on": ("broker 1",)}, "at risk: broker 1"),
        ({"lost": 2, "now_on": ("broker 1",), "at_risk": 5, "at_risk_on": ("broker 1",)}, "broker 1"),
        (
            {"lost": 2, "copied_from": ("broker 2",), "at_risk_on": ("broker 1",)},
            "copies of broker 2; at risk: broker 1",
        ),
        ({"lost": 2, "now_on": ("broker 2",), "copied_from": ("broker 2",)}, "broker 2 and copies"),
        ({"lost": 2}, ""),
    ],
)
def test_who_holds_what_is_at_risk_is_told_from_who_holds_what_is_lost(row, words):
    none = TopicRow("orders", 1, 0, 0, 0, 0, 0, is_least=False, now_on=(), copied_from=(), at_risk_on=())

    assert none._replace(**row).held_by == words


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["disk-replaced-4.x", "power-loss-4.x", "consumer-ahead-4.x", "hw-loss-0.10"])
@pytest.mark.some(2)
def test_it_is_one_screen_beside_what_to_do_now(shown, monkeypatch, incident, name, width):
    place = incident(name)
    monkeypatch.setenv("COLUMNS", str(width))
    before = [word for one in sorted((place / "snapshots").iterdir())[:-1] for word in ("--before", one)]

    code, screen = shown(place / FINAL, place / "logs", *before)

    assert code == 1
    commands = [line for line in screen.splitlines() if line.lstrip().startswith("$ ")]
    assert any("salvage --what lost" in line and "--before" in line for line in commands)
    assert len(screen.splitlines()) <= 30


def test_a_total_loss_is_not_hidden_by_replicas_that_agree(shown, incident):
    place = incident("disk-replaced-4.x")

    _, compared = shown("diff", place / FINAL, "--depth", "tails")
    code, screen = shown(place / FINAL, place / "logs")

    assert compared.startswith("Whether committed records of 5 partitions are lost is unknown")
    assert code == 1
    assert screen.startswith("At least 125 records that were committed are lost")


def test_logs_are_compared_by_what_explain_has_read_of_them(shown, fixtures, monkeypatch):
    answers = {name: shown(name, fixtures / "unclean-election", "--depth", "tails") for name in ("triage", "predict")}

    for place in ("kforensics.case.comparison.compare_all", "kforensics.commands.comparing.compare_all"):
        monkeypatch.setattr(place, lambda *_: pytest.fail("it read the logs again"))

    assert shown("triage", fixtures / "unclean-election", "--depth", "tails") == answers["triage"]
    assert "DATA AT RISK: broker 1 will discard 56 committed records" in answers["triage"][1]
    assert "56 committed records" in answers["predict"][1]


def test_what_differs_in_the_question_is_compared_for_itself(fixtures):
    case = open_case(Ask(paths=(fixtures / "unclean-election",), jobs=1))

    every = results_of(case)

    assert results_of(case.asking(now_ms=0)) is every
    assert {one.partition.topic for one in results_of(case.asking(topics=frozenset({"payments"})))} == {"payments"}
    assert results_of(case.asking(depth=Depth.TAILS)) is not every
    assert results_of(case.asking(replicas=(1, 2, 3, 4))) is not every


def test_logs_alone_are_asked_too(shown, incident):
    code, screen = shown(incident("unclean-election-4.x") / "logs")

    assert code == 3
    assert "Nothing that was committed is lost" not in screen
    assert "A start" not in screen


@pytest.mark.parametrize(
    ("lines", "first", "advice"),
    [
        (
            "ERROR [BrokerLifecycleManager id=3] Unable to register broker 3 because the controller returned error DUPLICATE_BROKER_REGISTRATION (k)",
            "Log lines name a cause: registration refused. Whether committed records are lost is unknown",
            "Look for a second process with this node id",
        ),
        (
            (
                "FATAL [Kafka Server 0], Fatal error during KafkaServer startup. Prepare to shutdown (k)\n"
                "kafka.common.KafkaException: Failed to acquire lock on file .lock in /d. A Kafka instance in another process or thread is using this directory."
            ),
            "Broker 0's last start failed at 2024-05-01 12:00:00 UTC: KafkaException: Failed to acquire lock",
            "Find the process that has the directory open",
        ),
        (
            "ERROR [KafkaServer id=0] Fatal error during KafkaServer startup. Prepare to shutdown (k)\njava.lang.OutOfMemoryError: Java heap space",
            "Broker 0's last start failed at 2024-05-01 12:00:00 UTC: OutOfMemoryError: Java heap space.",
            "Give the process more memory",
        ),
        (
            "INFO Partition [t,0] on broker 2: Cached zkVersion [12] not equal to that in zookeeper, skip updating ISR (k)",
            "Log lines name a symptom: ISR refused. Whether committed records are lost is unknown",
            "Where it goes on for the same partition, restart this broker",
        ),
        (
            "INFO [GroupCoordinator 1]: Stabilized group g generation 7 (__consumer_offsets-17) with 3 members (k)",
            "The 1 known line of 1 file is harmless (of 2024-05-01 12:00:00 UTC, as far as they are UTC).",
            "Don't delete any data directory",
        ),
    ],
)
def test_what_lines_mean_is_the_answer_to_logs_alone(lines, first, advice, shown, tmp_path):
    (tmp_path / "server.log").write_text(f"[2024-05-01 12:00:00,000] {lines}\n")
    code, screen = shown(tmp_path / "server.log")
    text = " ".join(screen.split())

    assert code == 3
    assert text.startswith(first)
    assert text.count(advice) == 1
    assert ("What the log lines mean" in text) == ("harmless" not in first)
    assert text.endswith("More: kforensics explain and logs.")


def test_causes_on_which_no_conclusion_rests_are_named_beside_directories(shown, fixtures, tmp_path):
    refused = "Unable to register broker 1 because the controller returned error DUPLICATE_BROKER_REGISTRATION"
    (tmp_path / "server.log").write_text(
        f"[2026-11-21 07:00:00,000] ERROR [BrokerLifecycleManager id=1] {refused} (k)\n"
    )
    named = "Log lines name registration refused: kforensics logs."

    assert named in shown(fixtures / "unclean-election", tmp_path / "server.log")[1]
    assert "Log lines" not in shown(fixtures / "unclean-election")[1]


@pytest.mark.parametrize(
    ("pasted", "first", "advice"),
    [
        (
            "`kafka.common.InconsistentClusterIdException: The Cluster ID gKMTPCdQQui26oDVZo-EMA doesn't match stored clusterId Some(K6-IRRUxSvW0GSLeNea0DA) in meta.properties. The broker is trying to join the wrong cluster.",
            "Log lines name a cause: start error.",
            "Find out which of the two is wrong",
        ),
        (
            "Exiting because log truncation is not allowed for partition design-0, \nCurrent leader 1's latest offset 65 is less than replica 2's latest offset 70 (kafka.server.ReplicaFetcherThread)",
            "Log lines name a cause: truncation refused.",
            "Copy the directories of this broker",
        ),
        (
            "b1  | 2024-03-08 16:42:33,730 ERROR [org.apa.kaf.sto.int.log.LogDirFailureChannel] (request-handler-6) Error while appending records to foo-0 in dir /tiny: java.io.IOException: No space left on device\nb1  | \tat java.base@17.0.8/sun.nio.ch.FileDispatcherImpl.write0(FileDispatcherImpl.java)",
            "The broker's log directory /tiny failed at 2024-03-08 16:42:33 UTC: IOException: No space left on device (appending records to foo-0).",
            "Make room without deleting files of segments by hand",
        ),
    ],
)
def test_what_people_paste_is_read_as_they_paste_it(pasted, first, advice, shown, tmp_path):
    (tmp_path / "pasted.txt").write_text(f"{pasted}\n")
    code, screen = shown(tmp_path / "pasted.txt")
    text = " ".join(screen.split())

    assert code == 3
    assert text.startswith(first)
    assert text.count(advice) == 1


def test_each_question_of_the_document_has_the_answer_of_its_command(fixtures):
    made = kforensics.triage(fixtures / "unclean-election", jobs=1)
    document = made.to_dict()

    assert [one["command"] for one in document["questions"]] == ["explain", "diff", "predict"]
    for one in document["questions"]:
        alone = getattr(kforensics, one["command"])(fixtures / "unclean-election", jobs=1, depth="tails").to_dict()
        assert one["answer"]["headline"] == alone["answer"]["headline"]
    assert document["topics"][0] | {"topic": "orders", "at_risk": 56, "lost": 0} == document["topics"][0]


@pytest.mark.parametrize("command", ["explain", "diff", "predict", "groups", "transactions"])
def test_no_state_that_exits_with_1_is_calm_in_the_first_answer(command):
    for state, code in STATES[command].items():
        assert code != 1 or STATES["triage"].get(state) == 1, state


def test_one_directory_is_an_answer(shown, fixtures):
    code, screen = shown(fixtures / "unclean-election" / "broker-2")

    assert code in {1, 3}
    assert "agree" not in screen.splitlines()[0]


def test_a_topic_that_was_not_asked_for_is_not_shown(shown, fixtures):
    code, screen = shown(fixtures / "unclean-election", "-t", "payments")

    assert "orders" not in screen
    assert code in {0, 3}


def test_a_mistyped_path_is_not_taken_for_a_command(capsys, fixtures, monkeypatch, tmp_path):
    shutil.copytree(fixtures / "unclean-election", tmp_path / "evidence")
    monkeypatch.chdir(tmp_path)

    assert run(["./evidense"]) == 3
    error = capsys.readouterr().err
    assert "evidence" in error
    assert "No such command" not in error


def test_a_mistyped_command_is_not_taken_for_a_path(capsys):
    assert run(["explian", "x"]) == 2
    assert "explain" in capsys.readouterr().err


def test_a_command_wins_over_a_path_of_its_name(shown, fixtures, monkeypatch, tmp_path):
    shutil.copytree(fixtures / "unclean-election" / "broker-1", tmp_path / "ls")
    monkeypatch.chdir(tmp_path)

    code, screen = shown("ls", "--format", "json", "ls")

    assert json.loads(screen)["schema"].startswith("kforensics/ls/")
    assert code in {0, 1, 3}


def test_the_steps_are_a_script_that_copies_and_saves(fixtures, tmp_path, untouched, monkeypatch):
    script, safe = tmp_path / "now.sh", tmp_path / "other disk"
    safe.mkdir()
    with untouched(fixtures / "unclean-election"):
        kforensics.triage(fixtures / "unclean-election", steps=script, jobs=1)

        assert stat.S_IMODE(script.stat().st_mode) == 0o700
        assert json.loads((tmp_path / "elections-1.json").read_text()) == {
            "partitions": [{"topic": "orders", "partition": 0}]
        }
        unset = subprocess.run([script], capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
        assert unset.returncode != 0
        assert "SAFE" in unset.stderr
        (tmp_path / "kforensics").write_text(f'#!/bin/sh\nexec {sys.executable} -m kforensics "$@"\n')
        (tmp_path / "kforensics").chmod(0o755)
        paths = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SAFE": str(safe), "PYTHONPATH": str(ROOT)}
        done = subprocess.run([script], capture_output=True, text=True, check=False, env=paths)
    assert done.returncode == 0, done.stderr
    assert {one.name for one in safe.iterdir()} == {"unclean-election-broker-1", "at-risk"}
    saved = [json.loads(line) for one in (safe / "at-risk").rglob("*.jsonl") for line in one.read_text().splitlines()]
    assert len(saved) >= 56


def test_steps_overwrite_nothing_and_lie_outside_of_the_evidence(fixtures, tmp_path):
    tree = tmp_path / "evidence"
    shutil.copytree(fixtures / "unclean-election", tree)
    (tmp_path / "there").write_text("mine")

    with pytest.raises(kforensics.UsageError, match="exists"):
        kforensics.triage(tree, steps=tmp_path / "there")
    with pytest.raises(kforensics.UsageError, match="inside the evidence"):
        kforensics.triage(tree, steps=tree / "now.sh")
    assert (tmp_path / "there").read_text() == "mine"
    assert not (tree / "now.sh").exists()


def test_groups_that_read_one_of_several_topics_are_asked(shown, incident):
    place = incident("consumer-ahead-4.x")

    code, screen = shown(place / FINAL, "-t", "billing", "-t", "derived")
    _, without = shown(place / FINAL, "-t", "derived")

    assert code == 1
    assert screen.startswith("BILLING-AUDIT IS PAST THE END of billing-0")
    assert "No group has committed anything" not in without
    assert "`kforensics groups` would say" not in without


def test_what_could_not_be_asked_is_said(shown, fixtures):
    place = fixtures / "unclean-election" / "broker-1" / "orders-0"

    _, screen = shown(place)
    document = kforensics.triage(place, jobs=1).to_dict()

    assert "What `kforensics predict` would say: predict needs whole log directories" in " ".join(screen.split())
    assert [one["command"] for one in document["not_asked"]] == ["predict"]
    assert "predict" not in [one["command"] for one in document["questions"]]


def test_each_question_that_ends_as_unknown_says_what_would_settle_it():
    asked = [
        Asked("predict", Answer(state=State.LOSES, headline="It discards.", unknown=("A?", "B?", "C?"))),
        Asked("explain", Answer(state=State.UNKNOWN, headline="Unknown.", unknown=("D?", "E?"))),
    ]

    answer = triage_answer(asked, [], [], Ask(), Holders())

    assert answer.state is State.LOSES
    assert answer.unknown == ("D?", "A?", "3 more open questions: kforensics predict and explain have them.")


def test_a_discard_at_a_start_is_not_hidden_behind_an_unknown_comparison():
    compared = "UNKNOWN: broker 2 is not among the inputs."
    asked = [
        Asked("explain", Answer(state=State.LOST, headline="3 records are lost.")),
        Asked("diff", Answer(state=State.UNKNOWN, headline=compared)),
        Asked("predict", Answer(state=State.LOSES, headline=f"{compared} Kafka 4.1.0 discards 12 records.")),
    ]

    headline = triage_answer(asked, [], [], Ask(), Holders()).headline

    assert headline == f"3 records are lost. {compared} Kafka 4.1.0 discards 12 records."


@pytest.mark.parametrize("worst", [State.LOST, State.UNKNOWN])
def test_what_two_questions_say_alike_is_said_once(worst):
    compared = "MAYBE AT RISK: the last records of 3 partitions."
    asked = [
        Asked("explain", Answer(state=worst, headline="Explained.")),
        Asked("diff", Answer(state=State.MAYBE_AT_RISK, headline=compared)),
        Asked("predict", Answer(state=State.LOSES, headline=f"{compared} Kafka 4.1.0 discards 12 records.")),
    ]

    assert triage_answer(asked, [], [], Ask(), Holders()).headline.count(compared) == 1


def test_a_sentence_of_all_questions_is_said_once():
    risk, of_one = (
        "DATA AT RISK: broker 1 will discard 14 committed records.",
        "It is not shown that all inputs are of one cluster.",
    )
    copy = with_place(
        [Prohibition("Do not start broker 1 before its directory is copied", (f"cp -a /data/1 {SAFE}/1",))]
    )
    asked = [
        Asked("diff", Answer(state=State.AT_RISK, headline=f"{risk} {of_one}", now=copy)),
        Asked("predict", Answer(state=State.LOSES, headline=f"{risk} Kafka 1.1.1 loads all 8 logs.", now=copy)),
        Asked("explain", Answer(state=State.LOST, headline=f"4 records are lost. {of_one}")),
    ]

    answer = triage_answer(asked, [], [], Ask(), Holders())

    assert [answer.headline.count(one) for one in (risk, of_one, "4 records are lost.")] == [1, 1, 1]
    assert len(answer.now) == 1


def test_a_copy_that_two_questions_ask_for_is_made_once():
    copy = f"cp -a /data/1 {SAFE}/1"
    asked = [
        Asked(command, Answer(state=state, headline="", now=with_place([Step(f"Copy it, says {command}", (copy,))])))
        for command, state in (("explain", State.LOST), ("diff", State.AT_RISK))
    ]

    steps = triage_answer(asked, [], [], Ask(), Holders()).now

    assert sum(copy in one for one in steps) == 1


def test_a_start_that_waits_for_a_copy_is_forbidden_once():
    copies = [f"cp -a /data/{one} {SAFE}/{one}" for one in (1, 2, 3)]
    both = Prohibition("Do not start brokers 1 and 2 before their directories are copied", copies[:2])
    alone = [
        Prohibition(f"Do not start broker {at + 1} before its directory is copied: it will truncate", (one,))
        for at, one in enumerate(copies)
    ]
    force = Prohibition("Do not force an unclean election of t-0 while one of brokers 1 and 2 is down.")
    asked = [
        Asked("diff", Answer(state=State.AT_RISK, headline=f"Two hold records. {force}", now=(both, force))),
        Asked("predict", Answer(state=State.LOSES, headline="4 may be lost.", now=tuple(alone))),
    ]

    answer = triage_answer(asked, [], [], Ask(), Holders())

    assert [getattr(one, "sentence", one) for one in answer.now] == [both.sentence, force, alone[2].sentence]
    assert answer.headline == "Two hold records. 4 may be lost.", "NOW has what is forbidden"


def test_how_records_are_saved_is_one_list_for_every_question():
    rescue = Rescue(
        "Save the records that are at risk", (f"kforensics salvage --what at-risk /data -o {SAFE}/at-risk",)
    )
    asked = [Asked("explain", Answer(state=State.MAYBE_LOST, headline="", now=(rescue, "Keep the snapshots.")))]

    assert triage_answer(asked, [], [], Ask(), Holders()).now == ("Keep the snapshots.",)


def test_its_page_says_what_it_is_about_and_shows_all_of_each_command(shown, fixtures):
    _, page = shown(fixtures / "unclean-election", "--format", "html")

    assert "<dt>Cluster</dt><dd>6It1kTHbTjKY3LNflMZizQ</dd>" in page
    assert "<dt>Events</dt><dd>2026-11-21T06:39:48" in page
    assert "pre.step { background: var(--panel); border-radius: 6px; white-space: pre-wrap; }" in page
    assert "`" not in page.partition("<body>")[2].partition('<nav class="contents"')[0]


def test_the_day_of_a_cause_is_said_once_without_other_events(shown, incident):
    place = incident("acks1-tail-1.1")

    _, screen = shown(place / FINAL, place / "logs")

    assert "What happened on 2026-11-21 (UTC)\n  Broker 2 became leader of payments-0 cleanly at 12:40:12," in screen
    assert "T12:40:12" not in screen


def test_records_are_not_to_be_saved_out_of_captures_that_hold_none(shown, small_cluster, tmp_path):
    nodes = [small_cluster / f"broker-{number}" for number in (1, 2, 3)]
    for node in nodes:
        kforensics.capture(node, out=tmp_path / f"{node.name}.kfc")
    kforensics.capture(nodes[0], out=tmp_path / "with.kfc", with_tail=True)
    captures = [tmp_path / f"{node.name}.kfc" for node in nodes]

    code, screen = shown(*captures)
    _, mixed = shown(nodes[0], *captures[1:])
    _, with_tail = shown(tmp_path / "with.kfc", *nodes[1:])

    assert code == 1
    assert "$ kforensics salvage" not in screen
    words = " ".join(screen.split())
    assert (
        "with the directories of brokers 1, 2 and 3 themselves, as captures without --with-tail hold no records"
        in words
    )
    assert "with the directories of brokers 2 and 3 themselves" in " ".join(mixed.split())
    assert "$ kforensics salvage --what at-risk" in mixed
    assert "--with-tail" not in with_tail
    assert "$ kforensics salvage --what at-risk" in with_tail


@pytest.mark.slow
def test_what_was_truncated_after_its_directory_was_copied_is_lost_and_not_at_risk_too(shown, incident):
    place = incident("consumer-ahead-4.x")
    copied = place / "snapshots" / "03-old-leader-down-live"

    _, screen = shown(copied, place / "logs")
    rows = {one["topic"]: one for one in kforensics.triage(copied, place / "logs", jobs=1).to_dict()["topics"]}

    assert "81 records are in both counts, truncated after the directories were copied." in " ".join(screen.split())
    assert [(rows[one]["lost"], rows[one]["at_risk"]) for one in ("billing", "derived")] == [(65, 7), (16, 0)]
    assert sum(one["lost_since"] for one in rows.values()) == 81


def test_what_an_earlier_copy_holds_leaves_what_is_at_risk_as_it_is(fixtures):
    tree = fixtures / "unclean-election"
    before = kforensics.triage(tree, before=[tree / "broker-1"], jobs=1).to_dict()

    assert [(one["at_risk"], one["lost_since"]) for one in before["topics"]] == [(56, 0)]


def test_transactions_are_not_looked_for_in_long_logs_and_that_is_said(incident, monkeypatch):
    place = incident("consumer-ahead-4.x") / FINAL
    monkeypatch.setattr("kforensics.commands.triage.MOST_BYTES", 1000)
    monkeypatch.setattr("kforensics.case.model.READ_WHOLE", 1000)

    document = kforensics.triage(place, jobs=1).to_dict()

    assert [one["command"] for one in document["not_asked"]] == ["transactions"]
    assert "What `kforensics transactions` would say: it reads all of each log" in document["answer"]["unknown"][0]
    thorough = kforensics.triage(place, jobs=1, depth="content").to_dict()
    assert not thorough["not_asked"]
    assert "transactions" in [one["command"] for one in thorough["questions"]]


def test_groups_are_not_asked_of_long_logs_and_that_is_said(incident, monkeypatch):
    place = incident("consumer-ahead-4.x") / FINAL
    monkeypatch.setattr("kforensics.case.cluster.MOST_COMMITS", 100)
    monkeypatch.setattr("kforensics.case.model.READ_WHOLE", 1000)

    document = kforensics.triage(place, jobs=1).to_dict()

    assert [one["command"] for one in document["not_asked"]] == ["groups"]
    (said,) = [one for one in document["answer"]["unknown"] if "would say" in one]
    assert "What `kforensics groups` would say: it reads all of each log of the coordinators of groups" in said
    ends = kforensics.explain(place, jobs=1, depth="tails").answer.unknown
    assert any(one.startswith("Where groups stand: the logs of their coordinators are ") for one in ends)
    thorough = kforensics.explain(place, jobs=1, depth="content")
    assert not any("were not read whole" in one for one in thorough.answer.unknown)


@pytest.mark.slow
def test_content_of_small_logs_is_read_so_that_what_differs_below_their_ends_is_not_called_calm(
    shown, incident, monkeypatch
):
    place = incident("silent-divergence-4.x")

    code, screen = shown(place / FINAL, place / "logs")

    assert code == 1
    assert "REPLICAS HAVE DIVERGED" in " ".join(screen.split())
    assert "judged by the ends" not in screen
    monkeypatch.setattr("kforensics.case.model.READ_WHOLE", 1000)
    _, of_ends = shown(place / FINAL, place / "logs")
    assert "was not read" in " ".join(of_ends.split())
    assert "judged by the ends of their logs" in of_ends


def test_a_directory_that_is_given_twice_is_judged_once(shown, fixtures):
    tree = fixtures / "unclean-election"

    once = shown(tree)
    code, screen = shown(tree, tree / "broker-1")

    assert (code, screen.splitlines()[:2]) == (once[0], once[1].splitlines()[:2])
    assert re.search(r"^  orders +3 +0 +0 +56 +0  broker 1$", screen, re.MULTILINE)


def test_what_loading_discards_is_a_step_for_each_broker(shown, incident, tmp_path):
    """Each log has its line in the script and among the logs of `predict`."""
    final = incident("reassignment-jbod-2.8") / FINAL
    code, screen = shown(final, "--steps", tmp_path / "steps.sh")
    script = (tmp_path / "steps.sh").read_text()
    words = " ".join(screen.split())

    assert code == 1
    step = "Copy 1 directory of broker {} before it starts: 18 of {} records that it discards are kept on no other replica given:"
    assert words.count(step.format(2, 54)) == 1
    assert re.search(r"^ +\$ mkdir -p \S*broker-2 && cp -a \S*-delete \S+$", screen, re.MULTILINE)
    assert step.format(1, 288) not in words  # all of its directory is copied
    assert re.search(r"^ +\$ cp -a \S+broker-1 \S+$", screen, re.MULTILINE)
    assert "Keep brokers" not in words  # each holds what others discard
    assert len(re.findall(r"^# broker \d discards [\d]+ records of disk-\S+-delete: ", script, re.MULTILINE)) == 7
    assert script.count(": 18 of them are kept on no other replica given; others are on broker 3.") == 2
    assert "Save disk" not in words
    assert "See what each replica truncates" not in words  # the last line names diff
    assert len(screen.splitlines()) <= 30


def test_what_is_below_a_copied_directory_is_not_copied_again():
    parts = f"mkdir -p {SAFE}/1 && cp -a '/data of/1/t-0' /data/11/t-1 {SAFE}/1"
    own = f"mkdir -p {SAFE}/2 && cp -a /data/2/t-0 {SAFE}/2"

    steps = with_place(
        [
            Step("Copy 2 directories of broker 1", (parts.replace(" /data/11/t-1", ""),)),
            Step("Copy 2 directories of brokers 1 and 11", (parts,)),
            Step("Copy 1 directory of broker 2", (own,)),
            Prohibition("Do not start broker 1 before its directory is copied", (f"cp -a '/data of/1' {SAFE}/1",)),
        ]
    )

    made = [one for one in steps if isinstance(one, Step)]
    assert [one.sentence for one in made] == [
        "Copy 2 directories of brokers 1 and 11",
        "Copy 1 directory of broker 2",
        "Do not start broker 1 before its directory is copied",
    ]
    assert [one.commands[0] == EXPORT for one in made] == [True, False, False]


def test_a_warning_stays_where_its_copies_are_made_by_others():
    copy = f"cp -a /data/1 {SAFE}/1"
    steps = with_place(
        [
            Prohibition("Do not start broker 1 before its directory is copied", (copy,)),
            Step("Copy the directory of broker 1", (copy,)),
            Step("Empty and delete no replica of t-0. Copy the directories first", (copy,)),
            "Copy what is set aside.",
        ]
    )

    assert len(steps) == 3
    assert "Empty and delete no replica of t-0. Copy the directories first." in steps
    assert "Copy what is set aside." in steps


def test_logs_in_which_nothing_is_known_are_counted_once(fixtures, tmp_path):
    """Four questions read them, and the answer of each names them."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(5):
        lines = [f"2026-11-21 06:40:00,123 INFO nothing {number} {one} (com.example.Foo)\n" for one in range(20)]
        (logs / f"{number}-server.log").write_text("".join(lines))

    def asked(*paths):
        return kforensics.triage([fixtures / "unclean-election", *paths], jobs=1).answer.unknown

    before, after = asked(), asked(logs)
    silence = [one for one in after if one.startswith("What ") and "known" in one]

    assert len(silence) == 4
    assert silence[-1] == "What 2 more log files say: no line of them is known."
    assert [one for one in after if one not in silence] == [
        one for one in before if "server.log, state-change.log" not in one
    ]


def test_what_several_brokers_lack_is_one_step(shown, incident):
    root = incident("last-standing-3.3")

    _, screen = shown(root / FINAL, root / "logs", "--before", root / "snapshots" / "02-before-power-loss")

    words = " ".join(screen.split())
    assert words.count("Look for the files of calm-0") == 1
    assert "that brokers 1, 2 and 3 lack here, on their disks" in words
    assert len(screen.splitlines()) <= 30


def test_disks_of_a_whole_cluster_that_were_put_back_are_the_cause_of_what_is_gone(shown, quorums):
    root = quorums("set-back-4.1")

    code, screen = shown(root / FINAL, root / "logs")
    words = " ".join(screen.split())

    assert (code, words.startswith("At least 68 records that were committed are lost from")) == (1, True)
    assert "with their disks put back to an earlier state" in words
    code, screen = shown(root / FINAL, root / "logs", "--before", root / "snapshots" / "01-before")
    words = " ".join(screen.split())
    assert (code, words.startswith("73 records that were committed are lost from")) == (1, True)
    assert re.search(r"salvage --what lost \S+99-final \S+logs --before \S+01-before ", words)


def test_that_logs_load_is_not_the_first_that_is_said(shown, incident):
    root = incident("acks1-tail-2.8")

    code, screen = shown(root / FINAL, root / "logs")

    assert (code, screen.startswith("No log is on the disk of broker 3")) == (3, True)
    assert "loads all" not in screen


def test_a_reassignment_that_goes_on_leaves_no_start_unknown_while_a_replica_that_stays_holds_the_same(shown, incident):
    root = incident("recreated-topic-4.x")
    one, controller = root / FINAL / "broker-1", root / FINAL / "controller-100"

    code, screen = shown(root / FINAL, root / "logs")
    words = " ".join(screen.split())

    assert (code, words.startswith("Nothing that was committed is lost from 11 partitions since")) == (0, True)
    assert "410 records of deleted topics inventory and oldstuff go with their directories" in words
    code, screen = shown("predict", root / FINAL, root / "logs", "-v")
    assert (code, "A replica that stays holds the same offsets." in " ".join(screen.split())) == (0, True)
    code, screen = shown("predict", one, controller, "-v")
    assert (code, "A replica that stays" in " ".join(screen.split())) == (3, False)


@pytest.mark.slow
def test_that_nothing_was_lost_is_said_beside_what_a_start_deletes(shown, incident):
    root = incident("benign-rolling-restart-4.x")

    code, screen = shown(root / FINAL, root / "logs")

    assert (code, "Nothing that was committed is lost from 10 partitions since" in " ".join(screen.split())) == (
        1,
        True,
    )


def test_copies_of_what_replicas_hold_are_not_called_copies_of_lost_records(shown, incident):
    root = incident("fast-failover-1.1")
    before = root / "snapshots" / "02-both-down-a-has-tail"

    _, screen = shown(root / FINAL, root / "logs", "--before", before)
    words = " ".join(screen.split())

    assert "no input holds what is lost" in words
    assert "Keep the snapshots: 4 directories in them still hold records that a leader lacks." in words
    assert len(screen.splitlines()) <= 30


def test_what_directories_set_aside_hold_is_counted_once():
    asked = [
        Asked("explain", Answer(state=State.LOST, headline="116 records are lost.")),
        Asked("diff", Answer(state=State.MAYBE_AT_RISK, headline="MAYBE AT RISK: directories hold 116 records.")),
    ]

    said = triage_answer(asked, [], [], Ask(), Holders(), ("broker 51", "broker 52")).headline

    assert said == (
        "116 records are lost. Directories of brokers 51 and 52 that are no replica any more still hold lost records."
    )
    assert "MAYBE AT RISK" in triage_answer(asked, [], [], Ask(), Holders()).headline


def test_a_controller_that_leaves_no_marker_is_not_asked_for_one(shown, incident):
    root = incident("epoch-truncate-2.8")

    _, screen = shown("predict", root / FINAL, root / "logs", "-v")

    assert screen.startswith("Kafka 2.8.1 loads all 31 logs, and loading discards no record.")
    assert "still running" not in screen


@pytest.mark.slow
def test_empty_logs_of_offsets_whose_leaders_are_all_shown_leave_no_group_unknown(shown, incident):
    root = incident("controller-change-4.4")

    assert shown("groups", root / FINAL, root / "logs")[0] == 0
    code, screen = shown(root / FINAL, root / "logs")
    assert (code, "No commit of a group" in screen) == (0, False)


@pytest.mark.slow
def test_what_changes_places_does_so_for_every_question_and_in_every_command(shown, incident):
    place = incident("unclean-election-2.8")
    first, newest = min((place / "snapshots").iterdir()), place / FINAL
    asked = shown("triage", newest, place / "logs", "--before", first, "-v")
    swapped = shown("triage", first, place / "logs", "--before", newest, "-v")

    assert asked == swapped
    assert "snapshot-before" not in swapped[1].lower()
    _, explained = shown("explain", first, place / "logs", "--before", newest, "-v")
    assert f"$ kforensics diff {first}" not in explained


def test_a_broker_that_does_not_start_is_not_said_to_start_after_a_crash(shown, incident, tmp_path):
    shutil.copytree(incident("unclean-election-4.x") / FINAL, tmp_path / "now", symlinks=True)
    (tmp_path / "now" / "broker-1" / "lost+found").mkdir()
    _, screen = shown("triage", tmp_path / "now", "-v")
    said = " ".join(screen.split())

    assert re.search(r"Broker 1 does not start \(lost\+found", said)
    assert "ombined" not in said

    (tmp_path / "now" / "broker-2" / "lost+found").mkdir()
    _, screen = shown("triage", tmp_path / "now", "-v")
    assert "Brokers 1 and 2 do not start (lost+found" in " ".join(screen.split())


def test_of_a_node_without_any_log_its_start_is_told(shown, tmp_path):
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "meta.properties").write_text("version=1\nbroker.id=7\n")
    code, screen = shown(tmp_path)
    said = " ".join(screen.split())

    assert code == 1
    assert screen.startswith("Broker 7 does not start with Kafka ")
    assert "More: kforensics explain and predict." in said
