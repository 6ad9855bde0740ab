"""`transactions` on recorded brokers: what Kafka's own tools and a read_committed consumer said at the same moment, and what was not found."""

import json
import re
import shutil
from dataclasses import replace

import pytest

from kforensics.ask.model import Ask
from kforensics.cli.app import run as run_line
from kforensics.commands.transactions import run
from kforensics.damage import Absent
from kforensics.errors import InputsRefused, UsageError
from kforensics.findings.answers.transactions import JudgedTransactions
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.builders.directories import copied

RECORDINGS = ("transactions-2.8", "transactions-3.5", "transactions-3.9", "transactions-4.1")
MOMENTS = {
    "none-open": "01-none-open-live",
    "hanging": "02-hanging-live",
    "prepared": "03-prepared",
    "prepared-ended": "04-prepared-ended-live",
    "torn": "07-torn-live",
}
ABORT = "kafka-transactions.sh --bootstrap-server HOST:PORT abort"


def transactions(*paths, **options):
    return run(Ask(paths=paths, jobs=1, **options))


def by_partition(result):
    """Of each partition the replica of the leader, else any."""
    found = {}
    for one in sorted(result.body.partitions, key=lambda each: each.leads is True):
        found[str(one.topic_partition)] = one
    return found


def open_in(result, partition):
    return [
        (one, result.body.ending(p, one))
        for p in result.body.partitions
        if str(p.topic_partition) == partition
        for one in p.open
    ]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some(10)
def test_open_transactions_and_last_stable_offsets_are_those_of_the_brokers(coordinators, name, moment):
    root = coordinators(name)
    truth = json.loads((root / "oracle" / f"transactions-{moment}.json").read_text())

    result = transactions(root / "snapshots" / MOMENTS[moment], all=True)

    found = by_partition(result)
    ends = re.findall(r"(\S+)=(\d+)", truth["read_committed ends"])
    assert len(ends) >= 3
    for partition, end in ends:
        assert found[partition].last_stable_offset == int(end), partition
        told = truth.get(f"describe-producers {partition}")
        if told is not None:
            rows = [line.split() for line in told.splitlines()[1:]]
            wanted = {int(row[0]): int(row[5]) for row in rows if row[5] != "None"}
            assert {one.open.producer_id: one.open.first_offset for one in found[partition].open} == wanted
    states = dict(re.findall(r"^(\S+)\s+\d+\s+\d+\s+(\w+)", truth.get("list", ""), re.MULTILINE))
    for one in result.body.partitions:
        for each in one.open:
            state = states.get(str(each.judgement.transactional_id))
            assert state in {None, each.judgement.coordinator_state}


@pytest.mark.parametrize("name", RECORDINGS)
def test_each_act_is_named_and_none_is_invented(coordinators, name):
    result = transactions(coordinators(name) / "snapshots" / "03-prepared", open=True)

    verdicts = {
        (str(p.topic_partition), one.judgement.transactional_id): str(one.judgement.verdict)
        for p in result.body.partitions
        for one in p.open
    }
    (prepared,) = (who for (partition, who), verdict in verdicts.items() if partition == "on-2-0")
    wanted = {
        ("orders-0", "running"): "in-time",
        ("orders-1", "never-added"): "hanging",
        ("on-2-0", prepared): "prepared",
    }
    timeline = json.loads((coordinators(name) / "incident.json").read_text())["timeline"]
    # 4.1 answers OUT_OF_ORDER_SEQUENCE_NUMBER: each transaction has an epoch of its own, which begins with sequence 0.
    if any(
        "raw Produce" in one["event"] and "orders-2" in one["event"] and not one["data"]["error"] for one in timeline
    ):
        wanted["orders-2", "late"] = "hanging"
    assert (("orders-2", "late") in wanted) is (name in {"transactions-3.5", "transactions-3.9"})
    assert verdicts == wanted
    assert not any(one.torn for one in result.body.partitions)
    assert result.answer.state == "hanging"
    assert result.exit_code == 1
    assert "HANGING TRANSACTION" in result.answer.headline


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some(2)
def test_the_line_that_ends_a_transaction_is_that_which_ended_it(coordinators, name):
    root = coordinators(name)
    result = transactions(root / "snapshots" / "03-prepared", root / "logs")

    ((hanging, ending), *_) = open_in(result, "orders-1")
    (step,) = (one for one in result.answer.now if one.startswith("End by hand the transaction of orders-1"))
    assert step.commands[0].startswith(f"{ABORT} --topic orders --partition 1 --")
    assert "(" not in step.commands[0]
    run_by_operator = json.loads((root / "incident.json").read_text())["timeline"]
    if name == "transactions-2.8":
        command = f"{ABORT} --topic orders --partition 1 --producer-id {hanging.open.producer_id} --producer-epoch 0 --coordinator-epoch 0"
        assert ending.to_end_it == f"{command} (with the script of Kafka 3.0 or later, since 2.8.1 came without it)"
        ((_, unknown), *_) = open_in(transactions(root / "snapshots" / "03-prepared"), "orders-1")
        assert (
            unknown.to_end_it
            == f"{ABORT} --topic orders --partition 1 --start-offset 19 (with brokers before 3.0: {command.partition(' 1 ')[2]})"
        )
    else:
        assert ending.to_end_it == f"{ABORT} --topic orders --partition 1 --start-offset {hanging.open.first_offset}"
        (call,) = (one["event"] for one in run_by_operator if "abort --topic orders --partition 1" in one["event"])
        assert call.endswith(ending.to_end_it.partition(" abort ")[2])
        after = transactions(root / "snapshots" / "99-final", topics=frozenset({"orders"}), partitions=frozenset({1}))
        assert after.body.partitions == ()


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some(2)
def test_no_abort_is_named_where_a_commit_was_decided(coordinators, name):
    root = coordinators(name)
    for moment in MOMENTS.values():
        result = transactions(root / "snapshots" / moment)
        for partition in result.body.partitions:
            for one in partition.open:
                words = result.body.ending(partition, one).to_end_it
                state = one.judgement.coordinator_state
                if state in {"PrepareCommit", "CompleteCommit"} or one.judgement.verdict == "prepared":
                    assert "abort" not in words
                elif one.judgement.verdict == "hanging":
                    assert words.startswith(ABORT)


@pytest.mark.parametrize("name", ["transactions-2.8", "transactions-3.9", "transactions-4.1"])
@pytest.mark.some(2)
def test_a_marker_that_an_unclean_election_took_is_proven_by_an_earlier_snapshot(coordinators, name):
    snapshots = coordinators(name) / "snapshots"
    alone = transactions(snapshots / "07-torn-live", topics=frozenset({"torn"}))
    compared = transactions(
        snapshots / "07-torn-live", before=(snapshots / "05-one-alone",), topics=frozenset({"torn"})
    )

    assert {(one.judgement.verdict, one.judgement.confidence) for one, _ in open_in(alone, "torn-0")} == {
        ("torn", "likely")
    }
    found = open_in(compared, "torn-0")
    assert {(one.judgement.verdict, one.judgement.confidence) for one, _ in found} == {("torn", "proven")}
    ((one, ending), *_) = found
    assert (one.open.first_offset, one.open.last_offset, one.open.records) == (10, 13, 4)
    assert one.judgement.lost_marker.offset == 14
    assert "hides the 4 records at offsets 10..13" in ending.to_end_it
    assert compared.body.partitions[0].last_stable_offset == 10


def test_a_replica_that_only_lags_is_not_torn(coordinators):
    result = transactions(coordinators("transactions-3.9") / "snapshots" / "05-one-alone", topics=frozenset({"torn"}))

    ((one, _),) = open_in(result, "torn-0")
    assert (one.judgement.verdict, one.judgement.confidence) == ("in-time", "proven")
    assert "from which this replica will copy it" in one.judgement.reason
    # What it lags by is on one broker alone, which is graver than the transaction.
    assert result.answer.headline.startswith("ONLY BROKER 1 HOLDS 2 committed records of 1 partition")
    assert result.answer.headline.endswith("; none hangs.")


def test_a_leader_without_the_marker_is_torn_before_the_old_leader_returns(coordinators):
    result = transactions(
        coordinators("transactions-3.9") / "snapshots" / "06-old-leader-down", topics=frozenset({"torn"})
    )

    found = {p.replica.place.state.broker_id: p for p in result.body.partitions}
    assert found.keys() == {2}
    assert (found[2].leads, found[2].open[0].judgement.verdict) == (True, "torn")


@pytest.mark.parametrize(
    ("name", "now", "before", "torn"),
    [
        ("consumer-ahead-4.x", "99-final", "02-leader-killed", {("derived-0", 30, 35, "abort", 19)}),
        (
            "unclean-election-2.8",
            "99-final",
            "02-all-down-broker-1-was-alone",
            {("payments-0", 44, 46, "abort", 45), ("payments-1", 36, 38, "abort", 36)},
        ),
    ],
)
@pytest.mark.some(1)
def test_records_that_are_lost_with_their_marker_kept_are_torn(incident, name, now, before, torn):
    snapshots = incident(name) / "snapshots"

    result = transactions(snapshots / now, before=(snapshots / before,))

    assert {
        (str(p.topic_partition), one.first_offset, one.last_offset, one.marker.kind.value, one.marker.offset)
        for p in result.body.partitions
        for one in p.torn
    } == torn
    assert result.answer.state == "torn"
    # An abort marker alone is ordinary: without the snapshot nothing is claimed.
    assert transactions(snapshots / now).body.partitions == ()


def test_a_transaction_that_one_partition_commits_and_another_aborts_is_torn(coordinators):
    root = coordinators("split-3.9")
    result = transactions(root / "snapshots" / "99-final", root / "logs")

    [torn] = [(str(one.topic_partition), each) for one in result.body.partitions for each in one.torn]
    assert torn[0] == "on-2-0"
    assert (torn[1].first_offset, torn[1].last_offset, torn[1].records, torn[1].marker.kind.value) == (
        15,
        19,
        5,
        "abort",
    )
    assert (str(torn[1].committed_in), torn[1].commit_offset, torn[1].transactional_id) == ("on-1-0", 17, "half-0")
    assert (result.answer.state, [one.code for one in result.findings]) == ("torn", ["KF605"])
    before = transactions(root / "snapshots" / "99-final", root / "logs", at_ms=torn[1].marker.time_ms - 1)
    assert not any(one.torn for one in before.body.partitions)
    # The hanging transactions of on-1-0 and orders-0 were ended by the lines that were printed.
    assert not any(one.open for one in result.body.partitions)
    ends = [
        json.loads((root / "oracle" / f"transactions-{at}.json").read_text())["read_committed ends"]
        for at in ("before", "after-abort")
    ]
    assert ["on-1-0=14" in ends[0], "on-1-0=20" in ends[1]] == [True, True]


def test_a_marker_that_was_sent_twice_is_not_torn(coordinators):
    result = transactions(coordinators("transactions-3.5") / "snapshots" / "04-prepared-ended-live", all=True)

    (replica,) = (one for one in result.body.partitions if str(one.topic_partition) == "on-1-0")
    assert len(replica.replica.lone) == 1
    assert replica.torn == ()


def test_the_history_of_an_id_is_what_the_coordinator_wrote(coordinators):
    snapshots = coordinators("transactions-3.9") / "snapshots"

    result = transactions(snapshots / "99-final", transactional_ids=frozenset({"slow"}))

    steps = [
        (state.status, [str(one) for one in state.partitions], state.producer_epoch) for state in result.body.history
    ]
    assert steps == [(0, [], 0), (1, ["on-1-0"], 0), (3, ["on-1-0"], 1), (5, [], 1)]


def test_what_is_asked_of_the_past_leaves_out_what_came_later(coordinators):
    root = coordinators("transactions-3.9")
    truth = json.loads((root / "oracle" / "transactions-hanging.json").read_text())

    result = transactions(root / "snapshots" / "99-final", at_ms=truth["t_ms"], all=True)

    found = by_partition(result)
    for partition, end in re.findall(r"(\S+)=(\d+)", truth["read_committed ends"]):
        assert found[partition].last_stable_offset == int(end), partition


@pytest.mark.parametrize("kept", [1, 2])
def test_nothing_open_is_calm_only_with_the_whole_log_of_the_coordinators(coordinators, tmp_path, kept):
    root = coordinators("transactions-2.8")
    copied(root / "snapshots" / "01-none-open-live", tmp_path / "copy")
    calm = transactions(tmp_path / "copy", root / "logs")
    assert (calm.answer.state, calm.exit_code) == ("none-open", 0)
    for directory in tmp_path.rglob(f"__transaction_state-{kept}"):
        shutil.rmtree(directory)

    result = transactions(tmp_path / "copy", root / "logs")

    assert (result.answer.state, result.exit_code) == ("unknown", 3)
    assert "__transaction_state" in " ".join(result.answer.unknown)


def test_a_partition_of_the_coordinators_alone_is_not_taken_for_all_of_them(coordinators):
    alone = coordinators("transactions-2.8") / "snapshots" / "99-final" / "broker-1" / "__transaction_state-0"

    result = transactions(alone)

    assert (result.answer.state, result.exit_code) == ("unknown", 3)


def test_a_producer_that_no_partition_here_knows_is_unknown(coordinators, tmp_path):
    copied(coordinators("transactions-4.1") / "snapshots" / "02-hanging-live", tmp_path / "copy")
    for number in range(3):
        for directory in tmp_path.rglob(f"__transaction_state-{number}"):
            shutil.rmtree(directory)

    result = transactions(tmp_path / "copy")

    assert {one.judgement.verdict for p in result.body.partitions for one in p.open} == {"unknown"}
    assert (result.answer.state, result.exit_code) == (
        "maybe-at-risk",
        1,
    )  # its replicas are gone, by their checkpoints
    assert "partition 0, 1 and 2 of __transaction_state" in result.body.partitions[0].open[0].judgement.reason


def test_a_transaction_whose_first_batch_retention_took_stands_in_the_producer_snapshot(coordinators, tmp_path):
    source = coordinators("transactions-3.9") / "snapshots" / "99-final"
    copied(source, tmp_path / "copy")
    whole = transactions(tmp_path / "copy", topics=frozenset({"orders"}), partitions=frozenset({0}))
    ((before, _), *_) = open_in(whole, "orders-0")
    for broker in (1, 2):
        folder = tmp_path / "copy" / f"broker-{broker}" / "orders-0"
        (snapshot,) = folder.glob("*.snapshot")
        end = int(snapshot.stem)
        for file in folder.glob("00000000000000000000.*"):
            file.unlink()
        (folder / f"{end:020d}.log").touch()

    result = transactions(tmp_path / "copy", topics=frozenset({"orders"}), partitions=frozenset({0}))

    ((after, _), *_) = open_in(result, "orders-0")
    assert (after.open.producer_id, after.open.first_offset) == (before.open.producer_id, before.open.first_offset)
    assert after.open.records is Absent.UNKNOWN
    assert result.body.partitions[0].last_stable_offset == end  # a consumer begins at the log start


def test_a_clean_start_without_producer_snapshots_forgets_what_is_open(coordinators, tmp_path, capsys):
    copied(coordinators("transactions-3.9") / "snapshots" / "99-final", tmp_path / "copy")
    for snapshot in (tmp_path / "copy" / "broker-1" / "orders-0").glob("*.snapshot"):
        snapshot.unlink()

    result = transactions(tmp_path / "copy", topics=frozenset({"orders"}), partitions=frozenset({0}))

    found = {
        one.replica.place.state.broker_id: result.body.after_start[
            one.replica.place.state.input, one.replica.place.path
        ]
        for one in result.body.partitions
    }
    assert {one.last_stable_offset for one in result.body.partitions} == {25}
    assert found == {1: result.body.partitions[0].replica.log_end_offset, 2: 25}
    assert run_line(["transactions", str(tmp_path / "copy"), "-t", "orders", "-p", "0"]) == 0
    assert "a start forgets what is open here" in capsys.readouterr().out


def test_damage_is_never_calm(coordinators, tmp_path):
    copied(coordinators("transactions-2.8") / "snapshots" / "01-none-open-live", tmp_path / "copy")
    for log in tmp_path.rglob("orders-0/00000000000000000000.log"):
        content = bytearray(log.read_bytes())
        content[100] ^= 8
        log.write_bytes(content)

    result = transactions(tmp_path / "copy")

    assert result.exit_code == 3
    assert result.problems


def test_wrong_names_are_refused(coordinators):
    snapshot = coordinators("transactions-3.9") / "snapshots" / "02-hanging-live"
    with pytest.raises(UsageError, match=r"no coordinator knows transactional id lat .*did you mean late"):
        transactions(snapshot, transactional_ids=frozenset({"lat"}))
    with pytest.raises(UsageError, match="no partition of topic order is"):
        transactions(snapshot, topics=frozenset({"order"}))
    with pytest.raises(UsageError, match=r"no partition 77 of the wanted topics .*there is 0, 1, 2"):
        transactions(snapshot, topics=frozenset({"orders"}), partitions=frozenset({77}))
    with pytest.raises(UsageError, match=r"no transaction of producer 77 .*there is .*1000"):
        transactions(snapshot, producer_ids=frozenset({77}))
    assert transactions(snapshot, producer_ids=frozenset({1000}), all=True).body.partitions


def test_several_clusters_are_refused(coordinators):
    with pytest.raises(InputsRefused, match="of 2 clusters"):
        transactions(
            *(coordinators(name) / "snapshots" / "02-hanging-live" for name in ("transactions-3.9", "transactions-4.1"))
        )


def test_the_document_lists_replicas_with_open_transactions_only_where_that_is_asked(coordinators, capsys):
    snapshot = str(coordinators("transactions-3.9") / "snapshots" / "02-hanging-live")
    listed = {}
    for option in ("--open", "--all"):
        assert run_line(["transactions", snapshot, option, "--format", "json"]) == 1
        listed[option] = json.loads(capsys.readouterr().out)["partitions"]

    assert all(one["open"] for one in listed["--open"])
    assert len(listed["--all"]) > len(listed["--open"]) == 6


def test_a_log_that_ends_below_its_checkpoints_is_no_proof_that_nothing_is_open(coordinators, tmp_path):
    root = coordinators("transactions-3.9")
    copied(root / "snapshots" / "99-final", tmp_path / "copy")
    assert transactions(tmp_path / "copy").answer.state == "torn"
    for log in (tmp_path / "copy").glob("broker-*/torn-0/*.log"):
        log.unlink()

    result = transactions(tmp_path / "copy")

    assert (result.answer.state, result.exit_code) == ("unknown", 3)
    assert any("the logs of torn-0 held at their ends" in words for words in result.answer.unknown)


def test_a_partition_without_its_directory_is_named(coordinators, tmp_path):
    root = coordinators("transactions-3.9")
    copied(root / "snapshots" / "99-final", tmp_path / "copy")
    for directory in (tmp_path / "copy").glob("broker-*/torn-0"):
        shutil.rmtree(directory)

    whole, one = transactions(tmp_path / "copy"), transactions(tmp_path / "copy" / "broker-1")

    for result in (whole, one):
        assert (result.answer.state, result.exit_code) == ("unknown", 3)
        assert any("torn-0: no log of theirs" in words for words in result.answer.unknown)
    assert transactions(tmp_path / "copy", topics=frozenset({"orders"})).answer.state == "in-time"


def test_an_id_is_refused_where_the_metadata_know_no_topic_of_the_coordinators(incident):
    final = incident("unclean-election-4.x") / "snapshots" / "99-final"
    assert transactions(final).answer.state == "none-open"

    with pytest.raises(UsageError, match="no coordinator knows transactional id pay-17"):
        transactions(final, transactional_ids=frozenset({"pay-17"}))


def test_the_log_of_a_broker_that_is_not_elected_next_does_not_show_what_is_open(incident):
    """At the end all brokers are down: the ELR is broker 1."""
    final = incident("power-loss-4.x") / "snapshots" / "99-final"

    outside = transactions(final / "broker-2", final / "controller-100")
    eligible = transactions(final / "broker-1", final / "controller-100")

    assert (outside.answer.state, outside.exit_code) == ("unknown", 3)
    assert any("it has no leader, and broker 1 of its ELR is not" in one for one in outside.answer.unknown)
    assert (eligible.answer.state, eligible.answer.unknown) == ("none-open", ())


def test_a_broker_s_own_metadata_log_does_not_show_who_led_after_it_stopped(incident):
    """Broker 1 was killed while it led orders-0, and broker 2 led on."""
    before = incident("unclean-election-4.x") / "snapshots" / "02-old-leader-killed" / "broker-1"
    whole = incident("unclean-election-4.x") / "snapshots" / "01-before-live"

    alone = transactions(before, topics=frozenset({"orders"}))
    everything = transactions(whole, topics=frozenset({"orders"}))

    assert (alone.answer.state, alone.exit_code) == ("unknown", 3)
    assert any("orders-0" in one and "may have been elected since" in one for one in alone.answer.unknown)
    assert any("no partition of __transaction_state is shown to be here" in one for one in alone.answer.unknown)
    assert (everything.answer.state, everything.answer.unknown) == ("none-open", ())


@pytest.mark.slow
def test_what_the_leader_in_a_later_epoch_does_not_hold_holds_no_consumer_back(incident, tmp_path):
    """The old leader is down, with a transaction that the new one never got, and of which its coordinator no longer knows."""
    snapshots = incident("consumer-ahead-4.x") / "snapshots"
    root = copied(snapshots / "03-old-leader-down-live", tmp_path / "cluster")
    for later in sorted((snapshots / "99-final").glob("broker-*/__transaction_state-*")):
        here = root / later.parent.name / later.name
        shutil.rmtree(here)
        copied(later, here)
    before = transactions(root, topics=frozenset({"derived"}))
    batch = build_record_batch(19, [(1_795_242_900_000, b"k", b"v")], partition_leader_epoch=1)
    log, held = (root / f"broker-{number}" / "derived-0" / f"{0:020}.log" for number in (2, 1))
    log.write_bytes(log.read_bytes() + encode_record_batch(batch))

    after = transactions(root, topics=frozenset({"derived"}))

    # Without a batch of the new leader's epoch its log may be an earlier copy.
    assert ("torn", "at-risk") == (before.answer.state, after.answer.state)
    ((one, _),) = open_in(after, "derived-0")
    assert (one.judgement.verdict, one.judgement.confidence) == ("in-time", "likely")
    assert "which leads in leader epoch 1, does not hold it" in one.judgement.reason
    assert not any("kafka-transactions" in one for one in after.answer.now)

    damaged, at = bytearray(held.read_bytes()), one.open.citation.span.position
    damaged[at + 80] ^= 1
    log.write_bytes(damaged + encode_record_batch(replace(batch, base_offset=one.open.last_offset + 1)))
    unread = transactions(root, topics=frozenset({"derived"}))

    ((one, _),) = open_in(unread, "derived-0")  # in what can't be read of the leader's log, it may be held
    assert (unread.answer.state, one.judgement.verdict) == ("torn", "torn")


def test_a_transaction_in_several_partitions_is_one(coordinators, monkeypatch):
    """The coordinator ends it in all of them; the recordings have each in one."""

    def in_two_partitions(judged, **known):
        places = [one.replica.place for one in judged]
        moved = [place._replace(topic_partition=place.topic_partition._replace(partition=7)) for place in places]
        others = [
            replace(one, replica=replace(one.replica, place=place)) for one, place in zip(judged, moved, strict=True)
        ]
        return JudgedTransactions(judged=(*judged, *others), **known)

    monkeypatch.setattr("kforensics.commands.transactions.JudgedTransactions", in_two_partitions)
    snapshot = coordinators("transactions-3.9") / "snapshots" / "05-one-alone"
    one, with_hanging = (
        transactions(snapshot, topics=topics).answer.headline for topics in (frozenset({"torn"}), frozenset())
    )

    assert "1 transaction of torn-0 and torn-7 is open and in time" in one
    assert with_hanging.endswith("; 2 in time.")
