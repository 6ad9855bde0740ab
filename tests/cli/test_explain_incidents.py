"""What `explain` concludes beyond cuts: replicas that stay different, known bugs, operations, and how it tells of it."""

import os

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied
from tests.builders.explained import arguments_of, explain

pytestmark = pytest.mark.usefixtures("read_once")


def screen(capsys, *arguments):
    run(["explain", *map(str, arguments)])
    return capsys.readouterr().out


def test_replicas_that_stay_different_come_first_where_nothing_is_lost(incident, capsys):
    out = " ".join(screen(capsys, *arguments_of(incident("silent-divergence-4.x"))).split())

    assert out.startswith("Replicas of audit (2 partitions) hold different content that replication does not repair")
    assert "Broker 2 holds other content than broker 1, the last leader on record, in audit-1" in out
    assert "no rule will repair it" in out
    assert "is missing in 4 other partitions, as the inputs prove; they do not prove it of the 2 partitions" in out
    assert "The log of audit-0 on broker 2 is damaged at offset 58" in out
    assert "`kforensics diff`" in out


def test_no_start_is_warned_of_where_no_rule_cuts(incident, capsys):
    document, code = explain(capsys, *arguments_of(incident("hw-divergence-0.10")))

    assert 1 == code
    assert not any("Do not start" in sentence for sentence in document["advice"])
    assert any("from offset 59 on" in sentence for sentence in document["conclusion"])
    assert {"KF204"} <= {one["code"] for one in document["findings"]}


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("fast-failover-1.1", {"KAFKA-6361"}),
        ("hw-loss-0.10", {"KAFKA-1211"}),
        ("fast-failover-2.x", set()),
        ("unclean-election-4.x", set()),
        ("power-loss-4.x", set()),
    ],
)
@pytest.mark.some(3)
def test_a_known_bug_is_named_only_where_version_and_traces_fit(name, known, incident, capsys):
    document, _ = explain(capsys, *arguments_of(incident(name)))
    bugs = [bug for incident in document["partitions"] for bug in incident["known_bugs"]]

    assert known == {bug["reference"] for bug in bugs}
    assert {"likely"} >= {bug["confidence"] for bug in bugs}
    assert known == {
        word.rstrip(":") for s in document["conclusion"] for word in s.split() if word.startswith("KAFKA-")
    }


def test_what_operators_did_is_no_loss(incident, capsys):
    document, code = explain(capsys, *arguments_of(incident("recreated-topic-4.x")))

    assert 0 == code
    assert {("recreated-topic", "inventory"), ("reassignment", "catalog"), ("deleted-topic", "oldstuff")} == {
        (one["kind"], one["topic"]) for one in document["operations"]
    }
    assert any(sentence.startswith("On purpose, and no loss: ") for sentence in document["conclusion"])
    assert any(words.startswith("Topic oldstuff was deleted, and ") for words in document["answer"]["tell"])
    (step,) = [one for one in document["answer"]["now"] if one.startswith("Get back what was deleted of ")]
    assert "kforensics salvage --what all --topic inventory --topic oldstuff " in step


def test_a_topic_that_was_deleted_with_zookeeper_is_named_while_its_directories_wait(coordinators, capsys):
    root = coordinators("groups-2.8")
    paths = (root / "snapshots" / "02-failed-over-live", root / "logs", "--topic", "short-lived")
    document, code = explain(capsys, *paths)

    assert 0 == code
    assert [("deleted-topic", "short-lived")] == [(one["kind"], one["topic"]) for one in document["operations"]]
    assert ["Topic short-lived was deleted, and 2 directories of it are still among the inputs."] == document["answer"][
        "tell"
    ]
    assert "kforensics salvage --what all --topic short-lived " in document["answer"]["now"][0]


def test_a_high_watermark_past_every_log_is_no_calm_answer(incident, tmp_path, capsys):
    brokers = tmp_path / "brokers"
    copied(incident("power-loss-4.x") / "snapshots" / "99-final", brokers)
    for segment in brokers.rglob("ledger-0/*.log"):
        os.truncate(segment, segment.stat().st_size // 2)

    document, code = explain(capsys, brokers)
    out = " ".join(screen(capsys, brokers).split())

    assert 1 == code
    assert {"KF207"} == {one["code"] for one in document["findings"] if one["severity"] == "critical"}
    assert document["conclusion"][0].startswith("Committed records of ledger-0 are on no disk given here: broker 1 rec")
    assert not any("Nothing that was committed" in sentence for sentence in document["conclusion"])
    assert "Look for another replica or an earlier snapshot" in out


def test_a_copy_with_times_of_whole_seconds_is_of_no_earlier_topic(incident, capsys):
    root = incident("power-loss-4.x")
    early = [root / "snapshots" / name for name in ("01-before-live", "02-killed-before-page-cache-loss")]
    before = [word for path in early for word in ("--before", path)]
    document, _ = explain(capsys, root / "snapshots" / "99-final", *before, root / "logs")

    assert {"power-loss", "last-replica-standing"} == {one["cause"] for one in document["truncations"]}


def test_the_timeline_reads_as_sentences_from_the_first_trouble_to_the_last(incident, capsys):
    out = screen(capsys, *arguments_of(incident("unclean-election-4.x")))
    happened = out.split("What happened")[1].split("What was truncated")[0]

    assert 1 == happened.count("the controller fences broker 2: its session has timed out")
    assert "broker-fenced" not in out
    assert "broker 1 truncates 3 logs" in " ".join(happened.rstrip().splitlines()[-3:])
    assert "orders-0 (epoch 1)" in " ".join(happened.split())
    assert 24 > len(happened.splitlines())


@pytest.mark.slow
def test_only_a_span_of_time(incident, capsys):
    root = incident("unclean-election-4.x")
    span = ("--since", "2026-11-21T06:40:07Z", "--until", "2026-11-21T06:40:08Z", "--partition", "0")
    document, _ = explain(capsys, *arguments_of(root), *span)

    times = [entry["time_utc"] for entry in document["timeline"]]
    assert times
    assert all("2026-11-21T06:40:07" <= time < "2026-11-21T06:40:08" for time in times)
    assert {0, None} >= {entry["partition"] for entry in document["timeline"]}


def test_a_directory_from_before_a_logged_truncation_shows_what_was_lost_by_it(incident, capsys):
    root = incident("unclean-election-4.x")
    document, code = explain(capsys, root / "snapshots" / "03-old-leader-down-live", root / "logs")

    assert 1 == code
    assert document["answer"]["headline"].startswith("56 records that were committed are lost from orders")
    certain = [one for one in document["losses"] if one["was_committed"] == "certain"]
    assert 56 == sum(one["records"] for one in certain)
    assert not any(held["in_use"] for one in certain for held in one["held_by"])
    assert not any("start broker 1" in one.lower() for one in document["answer"]["now"])
    assert any("broker 1 as it is now" in one for one in document["answer"]["unknown"])


def test_such_a_directory_is_no_leader(incident, capsys):
    root = incident("unclean-election-4.x")
    document, code = explain(capsys, root / "logs", root / "snapshots" / "03-old-leader-down-live" / "broker-1")

    assert (3, "unknown") == (code, document["answer"]["state"])
    assert "leads (guessed" not in document["answer"]["headline"]
    assert [] == document["losses"]


def test_a_tie_of_two_leaders_is_not_decided(incident, capsys):
    snapshot = incident("hw-divergence-0.10") / "snapshots" / "99-final"
    document, code = explain(capsys, snapshot)
    headline = document["answer"]["headline"]

    assert (1, "maybe-lost") == (code, document["answer"]["state"])
    assert headline.startswith(
        "If broker 1 leads, 13 records of ledger-0 that were possibly committed are not in its log"
    )
    assert "if broker 2 leads, 13: no input shows which one does" in headline
    assert {"possible"} == {one["was_committed"] for one in document["losses"]}
    assert "Brokers 1 and 2 hold different content in ledger-0 from offset 59 on" in " ".join(document["conclusion"])
    out = screen(capsys, snapshot)
    assert "What the guessed leaders do not hold" in out
    assert "the leader" not in out


def test_an_open_answer_says_what_to_keep_and_what_to_add(incident, capsys):
    document, _ = explain(capsys, incident("unclean-election-4.x") / "snapshots" / "99-final")

    assert "unknown" == document["answer"]["state"]
    (line,) = document["answer"]["now"]
    assert line.startswith(
        "Don't delete any data directory, snapshot or log file of these brokers. Add a copy of the disks of"
    )


def test_log_lines_that_name_a_later_leader_end_the_account_of_an_older_metadata_log(incident, capsys):
    root = incident("unclean-election-4.x")
    document, code = explain(capsys, root / "snapshots" / "01-before-live", root / "logs")

    assert (1, "maybe-lost") == (code, document["answer"]["state"])
    assert "never committed" not in document["answer"]["headline"]
    assert not any(one["was_committed"] == "no" for one in document["losses"])
    assert any("A newer metadata log would show it" in line for line in document["answer"]["unknown"])


@pytest.mark.slow
def test_the_log_of_a_leader_from_before_it_was_elected_proves_no_loss(incident, capsys):
    root = incident("unclean-election-2.8")
    document, _ = explain(capsys, root / "snapshots" / "02-all-down-broker-1-was-alone", root / "logs")

    assert "maybe-lost" == document["answer"]["state"]
    assert not any(one["committed"] == "certain" for one in document["losses"])


def test_an_unclean_election_of_the_last_leader_is_no_proven_cause_without_its_log(incident, capsys):
    root = incident("power-loss-4.x")
    document, _ = explain(capsys, root / "snapshots" / "04-after-recovery-live", root / "logs")

    found = {(one["cause"], one["confidence"]) for one in document["truncations"] if one["topic"] == "ledger"}
    # Of ledger-2 a line says that recovery found a damaged batch, and cut it.
    assert {("unclean-election", "possible"), ("power-loss", "likely")} == found
    assert "Of the other 23 the cause is unknown, an unclean election is possible" in document["answer"]["headline"]


def test_offsets_that_lines_alone_show_as_truncated_are_told_from_lost_ones_in_the_document(incident, capsys):
    root = incident("unclean-election-4.x")
    document, _ = explain(capsys, root / "snapshots" / "99-final", root / "logs")

    possible = [one for one in document["losses"] if one["was_committed"] == "possible"]
    assert possible
    assert all(one["only_logged"] for one in possible)
    assert {True, False} == {one["may_be_in_leader"] for one in possible}
    found = [one for one in document["findings"] if one["code"] == "KF302"]
    assert found
    assert all(" truncated (" in one["statement"] and " lost" not in one["statement"] for one in found)
    document, _ = explain(
        capsys,
        root / "snapshots" / "99-final",
        root / "logs",
        "--before",
        root / "snapshots" / "02-old-leader-killed",
    )
    assert not any(one["only_logged"] or one["may_be_in_leader"] for one in document["losses"])


def test_damaged_batches_that_recovery_cut_leave_no_answer_open(incident, capsys):
    root = incident("power-cut-2.8")
    document, code = explain(capsys, root / "snapshots" / "99-final", root / "logs")
    lost = {(one["partition"], one["first_offset"], one["was_committed"]) for one in document["losses"]}

    assert (1, "maybe-lost") == (code, document["answer"]["state"])
    assert {(2, 911, "possible"), (4, 893, "possible")} == lost
    assert document["answer"]["headline"].startswith("At least 2 offsets of readings (2 partitions) were truncated")
    # Of zeros that were cut (readings-3), and of a cut at the end of a batch (readings-1), no line says that records went.
    assert all(one["records_at_least"] and one["may_be_in_leader"] for one in document["losses"])
