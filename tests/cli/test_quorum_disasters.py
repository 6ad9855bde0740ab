"""Disasters of metadata quorums that real brokers made: what every command says of the disks before the start that does the harm, and after it."""

import json
import shutil

import pytest

from kforensics.cli.app import run
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.log import read_metadata_log
from tests.builders.directories import copied
from tests.builders.metadata_logs import metadata_batch, metadata_record

CALM = {"nothing-lost", "agree", "behind", "same-ends", "starts-unchanged", "starts-and-repairs", "complete", "sound"}
NOW = ("--now", "2026-11-26T23:00:00Z")
COMMANDS = ("metadata", "diff", "explain", "predict", "verify", "triage")
OF_TOPICS = {
    "groups": (),
    "transactions": (),
    "trace": ("--topic", "payments", "--offset", "3"),
    "salvage": ("--what", "lost", "-o"),
}
"""Commands that are asked about other subjects, with what they need."""
SET_BACK = ("only-controller-emptied", "majority-emptied", "voter-restored", "brokers-newer")
FORGOTTEN = {
    "only-controller-emptied": ["orders", "payments"],
    "majority-emptied": ["orders", "payments"],
    "voter-restored": ["payments"],
    "brokers-newer": ["payments"],
}


@pytest.fixture
def say(capsys):
    def call(name, *arguments):
        code = run([name, *map(str, arguments), *(NOW if name == "predict" else ()), "--format", "json"])
        return int(code), json.loads(capsys.readouterr().out)

    return call


@pytest.mark.parametrize("command", [*COMMANDS, "ls"])
@pytest.mark.parametrize("name", [*SET_BACK, "dynamic-half-done"])
@pytest.mark.some(12)
def test_no_command_is_calm_before_the_start(quorums, say, name, command):
    code, document = say(command, quorums(name) / "before")
    answer = document["answer"]

    assert code in {1, 3}
    assert answer["state"] not in CALM
    said = "lack" if name in SET_BACK else "where controller.quorum.voters is still in their settings"
    assert said in answer["headline"]
    assert any(one.startswith("Start no node of this cluster as it is") for one in answer["now"])
    assert "Start broker" not in json.dumps(answer)
    assert 1 == answer["headline"].count("A start forgets")


def test_a_log_that_the_same_starts_delete_keeps_nothing(quorums, say):
    _, document = say("predict", quorums("brokers-newer") / "before")
    answer = document["answer"]
    losing = [one for one in document["logs"] if one["records_lost"]]

    assert [("payments-0", []), ("payments-0", [])] == [(one["path"], one["held_by"]) for one in losing]
    assert "discards 12 records of 2 logs: 12 committed, 12 kept in no other log given." in answer["headline"]
    assert any(one.startswith("Copy 1 directory of broker 1 before it starts: the 6 records") for one in answer["now"])
    assert not any("which holds what payments-0" in one for one in answer["now"])
    _, document = say("predict", quorums("brokers-newer") / "after")
    assert "0 committed" not in document["answer"]["headline"]


@pytest.mark.parametrize("name", SET_BACK)
def test_what_is_forgotten_before_the_start_is_what_brokers_set_aside_after_it(quorums, say, name):
    root = quorums(name)
    truth = json.loads((root / "truth.json").read_text())
    _, document = say("metadata", root / "before")
    quorum = document["quorum"]

    assert FORGOTTEN[name] == quorum["forgotten"]["topics"]
    aside = {
        (node, one.partition(".")[0])
        for node, names in truth["directories"]["after"].items()
        for one in names
        if one.endswith(("-stray", "-delete"))
    }
    predicted = {(f"broker-{one['node']}", each) for one in quorum["brokers"] for each in one["directories"]}
    # An emptied majority wrote as much in the same leader epoch before the others came: they kept what they had.
    assert predicted == aside or (name == "majority-emptied" and not aside)
    words = "then delete" if name == "brokers-newer" else "to -stray"
    assert words in document["answer"]["headline"]
    # The way back that is advised was gone by real brokers: all topics are served, with all bytes.
    assert {"orders", "payments"} == {one for one, leader in truth["mended"]["leaders"].items() if leader >= 0}
    assert {253, 277} == set(truth["mended"]["bytes"].values())


@pytest.mark.parametrize("name", ["only-controller-emptied", "voter-restored", "brokers-newer"])
@pytest.mark.some(2)
def test_records_set_aside_are_the_subject_after_the_start_and_salvage_takes_them(quorums, say, tmp_path, name):
    root = quorums(name)
    code, document = say("explain", root / "after")
    answer, losses = document["answer"], document["losses"]

    assert (1, "maybe-lost") == (code, answer["state"])
    assert set(FORGOTTEN[name]) == {one["topic"] for one in losses}
    assert 6 * len(FORGOTTEN[name]) == sum(one["records"] for one in losses)
    assert {"metadata-set-back"} == {one["cause"] for one in losses}
    assert "a metadata quorum that was begun anew or put back" in answer["headline"]
    assert "No input holds metadata that names them." in answer["headline"]
    assert any(one.startswith("Look for metadata that names these topics") for one in answer["now"])
    _, document = say("explain", root / "after", "--before", root / "before")
    answer = document["answer"]
    assert f"Metadata that names them is at {root / 'before'}/broker-" in answer["headline"]
    assert any(one.startswith("To bring the topics back, on copies of all disks") for one in answer["now"])
    _, saved = say("salvage", root / "after", "--what", "lost", "-o", tmp_path / "out")
    assert 6 * len(FORGOTTEN[name]) == sum(one["records"] for one in saved["partitions"])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", [*SET_BACK, "dynamic-half-done"])
@pytest.mark.some(10)
def test_no_command_is_calm_after_the_start(quorums, say, name, command):
    code, document = say(command, quorums(name) / "after")

    assert code in {1, 3}
    assert document["answer"]["state"] not in CALM


@pytest.mark.parametrize("command", OF_TOPICS)
@pytest.mark.parametrize("name", [*SET_BACK, "dynamic-half-done"])
@pytest.mark.some(6)
def test_whatever_else_is_asked_what_a_start_does_stands_first(quorums, say, tmp_path, name, command):
    given = (*OF_TOPICS[command], *((tmp_path / "out",) if command == "salvage" else ()))
    code, document = say(command, quorums(name) / "before", *given)
    answer = document["answer"]

    assert code in {1, 3}
    assert answer["state"] not in {*CALM, "no-setback", "none-open", "present", "saved"}
    assert 1 == answer["headline"].count("A start forgets")
    assert "PRESENT: 1 matching record of payments-0" in answer["headline"] or command != "trace"
    assert any(one.startswith("Start no node of this cluster as it is") for one in answer["now"])


@pytest.mark.parametrize("command", OF_TOPICS)
@pytest.mark.parametrize("name", ["only-controller-emptied", "majority-emptied", "voter-restored", "dynamic-half-done"])
@pytest.mark.some(5)
def test_whatever_else_is_asked_no_command_is_calm_after_the_start(quorums, say, tmp_path, name, command):
    given = (*OF_TOPICS[command], *((tmp_path / "out",) if command == "salvage" else ()))
    code, document = say(command, quorums(name) / "after", *given)

    assert code in {1, 3}
    assert document["answer"]["state"] not in {*CALM, "no-setback", "none-open", "present", "saved"}


@pytest.mark.parametrize("command", ["diff", "verify", "metadata"])
def test_what_a_quorum_has_set_aside_stands_first_with_the_copy_that_keeps_it(quorums, say, command):
    _, document = say(command, quorums("brokers-newer") / "after")
    answer = document["answer"]

    assert answer["headline"].startswith(
        "6 records of payments-0 that were possibly committed are in -delete directories only, which brokers remove"
    )
    assert answer["now"][0].startswith("Copy these 2 directories before any broker starts")


@pytest.mark.parametrize("command", [*COMMANDS, "ls"])
@pytest.mark.parametrize("name", ["majority-emptied", "only-controller-emptied", "voter-restored"])
@pytest.mark.some(6)
def test_logs_of_two_quorums_within_one_epoch_are_no_truncation_to_come(quorums, say, name, command):
    code, document = say(command, quorums(name) / "after")
    answer = document["answer"]

    assert code in {1, 3}
    assert answer["state"] not in CALM
    assert "hold records of two metadata quorums" in answer["headline"]
    assert "never committed" not in answer["headline"]
    if command == "predict":
        assert "stray" not in {log["becomes"] for log in document["logs"] if not log["path"].endswith("-stray")}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.some(1)
def test_a_change_to_dynamic_voters_that_was_left_half_done_elects_nobody(quorums, say, moment):
    root = quorums("dynamic-half-done")
    paths = [root / moment, *sorted((root / "settings").iterdir())]
    for command in ("diff", "explain", "predict"):
        code, document = say(command, *paths)
        answer = document["answer"]
        assert code in {1, 3}
        assert "No controller can be elected: controllers 102 and 103 are no voters any more" in answer["headline"]
        assert "forgets" not in answer["headline"]
        assert "Kafka has" not in answer["headline"]
    # Nobody was: the brokers kept everything.
    truth = json.loads((root / "truth.json").read_text())
    assert truth["directories"]["before"]["broker-1"] == truth["directories"]["after"]["broker-1"]
    _, document = say("metadata", root / "after")
    assert (True, [102, 103]) == (document["quorum"]["is_stuck"], document["quorum"]["voters"])


@pytest.mark.parametrize(
    ("name", "flag", "ids"),
    [
        ("voter-restored", "", ()),
        ("dynamic-half-done", " --no-initial-controllers", ("controller 102 as vrswEP_5zTEqo9b7z7-jog",)),
    ],
)
def test_where_no_controller_is_left_the_longest_copy_and_the_way_back_are_named(quorums, say, name, flag, ids):
    before = quorums(name) / "before"
    brokers = [before / "broker-1", before / "broker-2"]
    _, document = say("metadata", *brokers)
    unknown = document["answer"]["unknown"]

    assert any("broker-2/__cluster_metadata-0 is the longest copy given" in one for one in unknown)
    (step,) = [one for one in unknown if "kafka-storage.sh format" in one]
    assert step.rstrip("`").endswith(f"--config controller.properties{flag}")
    assert "--standalone and --initial-controllers (3.9 and later) begin a quorum that forgets all topics" in step
    assert all(one in step for one in ids)
    # A start is not calm about what controllers may hold that nobody gave.
    _, document = say("predict", *brokers)
    assert any("brokers set aside, or delete, what the metadata" in one for one in document["answer"]["unknown"])
    _, document = say("metadata", before)
    assert not any("is the longest copy given" in one for one in document["answer"]["unknown"])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.some(2)
def test_after_two_quorums_wrote_one_log_both_ways_on_are_offered_and_the_former_metadata_is_copied(
    quorums, say, command
):
    root = quorums("majority-emptied")
    given = [root / "after"] if command == "metadata" else [root / "after", root / "logs"]
    code, document = say(command, *given)
    answer = document["answer"]
    source = root / "after" / "broker-2" / "__cluster_metadata-0"

    assert code == 1
    assert any(one.startswith("To go on with that of controllers 102 and 103") for one in answer["now"])
    (back,) = [one for one in answer["now"] if one.startswith("To go on with the former metadata")]
    # The log of controller 101 is longer, and has records of the new quorum from 37 on.
    assert f"give each controller {source}, which reaches to offset 48." in back
    (copies,) = [one for one in answer["now"] if one.startswith("Copy the metadata logs of all nodes")]
    assert copies.index(f"cp -a {source}") < copies.index("controller-102")
    assert 5 == copies.count("cp -a ")
    assert "odd one" not in answer["headline"]
    assert not any("Empty and delete no replica of __cluster_metadata" in one for one in answer["now"])
    assert "4.4.0" not in json.dumps(answer)


def test_nodes_that_a_new_quorum_does_not_know_run_the_release_that_they_registered_with_before(quorums, say):
    _, document = say("predict", quorums("majority-emptied") / "after")

    assert ("4.1.0", "metadata-log") == (document["kafka"], document["kafka_source"])


def test_what_a_voter_discards_for_a_quorum_that_began_anew_is_no_uncommitted_tail(quorums, say):
    root = quorums("majority-emptied")
    _, document = say("explain", root / "after", root / "logs")

    (truncation,) = document["truncations"]
    assert ("metadata-set-back", "likely") == (truncation["cause"], truncation["confidence"])


def test_records_of_metadata_are_not_saved_as_lost_ones(quorums, say, tmp_path):
    root = quorums("majority-emptied")
    code, document = say(
        "salvage", root / "after", "--before", root / "before", "--what", "lost", "-o", tmp_path / "out"
    )

    assert code == 1
    assert [] == document["partitions"]
    assert "hold records of two metadata quorums" in document["answer"]["headline"]


@pytest.mark.parametrize("command", ["metadata", "explain"])
def test_a_quorum_that_began_anew_in_an_earlier_epoch_than_the_brokers_know_is_not_taken_for_the_former(
    quorums, say, tmp_path, command
):
    """As real brokers of 4.1 with snapshots stood beside a controller of the first epoch: none of them followed it."""
    root = copied(quorums("only-controller-emptied") / "before", tmp_path / "before")
    shutil.rmtree(root / "controller-100")
    copied(quorums("only-controller-emptied") / "after" / "controller-100", root / "controller-100")
    for log in root.glob("broker-*/__cluster_metadata-0"):
        (found,) = find_metadata_logs(find_inputs([log.parent]))
        segment = log / f"{0:020d}.log"
        end = read_metadata_log(found).end_offset
        segment.write_bytes(segment.read_bytes() + metadata_batch(end, [metadata_record("NoOpRecord", {})], epoch=2))
    code, document = say(command, root)
    answer = document["answer"]

    assert code in {1, 3}
    assert "Controller 100, the only voter, lacks metadata that was committed" in answer["headline"]
    assert "A start forgets topics orders and payments (2 partitions). Brokers 1 and 2 rename" in answer["headline"]
    assert any("Give controller 100 this metadata log first" in one for one in answer["now"])


def test_a_link_in_place_of_a_metadata_log_is_no_emptied_controller(quorums, say, tmp_path):
    copied(quorums("only-controller-emptied") / "before", tmp_path / "before")
    (tmp_path / "before" / "controller-100" / "__cluster_metadata-0").symlink_to(tmp_path)
    code, document = say("diff", tmp_path / "before")

    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "A start forgets" not in document["answer"]["headline"]


def test_an_emptied_controller_is_no_broker_without_logs(quorums, say):
    _, document = say("predict", quorums("majority-emptied") / "before")

    assert "No log is on the disk" not in document["answer"]["headline"]


def test_of_a_quorum_that_begins_in_the_same_epoch_it_is_open_what_becomes_of_each_log(quorums, say):
    code, document = say("predict", quorums("only-controller-emptied") / "before")

    assert code == 1
    assert "rename 4 directories to -stray, unless they mix both logs." in document["answer"]["headline"]
    assert "stray" not in {log["becomes"] for log in document["logs"]}, "it depends on when they first fetch"
    _, document = say("predict", quorums("voter-restored") / "before")
    assert "mix both logs" not in document["answer"]["headline"]


@pytest.mark.parametrize(
    ("edit_of", "words"),
    [
        ("quorum-state", "its copy of the metadata has leader epoch 900, which no voter knows"),
        ("snapshot", "its snapshot of the metadata ends at 5000, and the logs of all voters at or below"),
        ("settings", "its settings name voters 9, and the metadata names 100"),
        ("nothing", ""),
    ],
)
def test_a_broker_that_can_not_follow_the_controllers_as_it_is_is_not_known_to_start(
    quorums, say, tmp_path, edit_of, words
):
    root = copied(quorums("only-controller-emptied") / "before", tmp_path / "before")
    shutil.rmtree(root / "controller-100" / "__cluster_metadata-0", ignore_errors=True)
    log = root / "broker-1" / "__cluster_metadata-0"
    copied(log, root / "controller-100" / "__cluster_metadata-0")
    paths = [root]
    if edit_of == "quorum-state":
        state = json.loads((log / "quorum-state").read_text())
        (log / "quorum-state").write_text(json.dumps({**state, "leaderEpoch": 900}))
    elif edit_of == "snapshot":
        shutil.copy(root / "broker-1" / "bootstrap.checkpoint", log / f"{5000:020d}-{2:010d}.checkpoint")
    elif edit_of == "settings":
        settings = tmp_path / "server.properties"
        settings.write_text(
            f"process.roles=broker\nnode.id=1\ncontroller.quorum.voters=9@h:1\nlog.dirs={root / 'broker-1'}\n"
        )
        paths.append(settings)
    _, document = say("predict", *paths)
    (start,) = [one for one in document["starts"] if document["inputs"][one["input"]]["broker_id"] == 1]

    assert (start["outcome"] is None) == bool(words)
    assert words in (start["reason"] or "")
    assert "A release of kforensics" not in json.dumps(document["answer"])


@pytest.fixture
def beyond(incident, tmp_path):
    """A function that gives a cluster at rest, with records in the copy of the metadata log of a broker, or of a controller that is no voter, that no voter has."""
    source = incident("benign-rolling-restart-4.x") / "snapshots" / "99-final"

    def build(name, fields, node=1):
        root = copied(source, tmp_path / "cluster")
        if node != 1:
            observer = copied(root / "controller-100", root / f"controller-{node}") / "meta.properties"
            observer.chmod(0o644)
            observer.write_text(observer.read_text().replace("node.id=100", f"node.id={node}"))
        of_voter = root / "controller-100" / "__cluster_metadata-0"
        (history,) = map(read_metadata_log, find_metadata_logs(find_inputs([root / "controller-100"])))
        (orders,) = history.topic_ids["orders-ok"]
        of_topic = {"topic_id": orders} if name in {"PartitionChangeRecord", "RemoveTopicRecord"} else {}
        record = metadata_record(name, {**of_topic, **fields})
        (copy,) = root.glob(f"*-{node}/__cluster_metadata-0")
        shutil.rmtree(copy)
        shutil.copytree(of_voter, copy)
        (segment,) = copy.glob("*.log")
        segment.chmod(0o644)
        segment.write_bytes(
            segment.read_bytes() + metadata_batch(history.end_offset, [record], epoch=history.last_epoch)
        )
        return root

    return build


@pytest.mark.parametrize("command", [*COMMANDS, "ls", "trace", "groups", "transactions"])
@pytest.mark.parametrize(
    ("node", "record", "fields", "words"),
    [
        (
            1,
            "PartitionChangeRecord",
            {"partition_id": 0, "isr": [2], "leader": 2},
            "the last leader or in-sync replicas of 1 partition.",
        ),
        (200, "RemoveTopicRecord", {}, "that topic orders-ok was deleted, and makes it anew."),
    ],
)
@pytest.mark.some(4)
def test_what_no_voter_has_is_in_doubt_in_every_command(beyond, say, command, node, record, fields, words):
    root = beyond(record, fields, node)
    more = ("--topic", "orders-ok", "--offset", "3") if command == "trace" else ()
    code, document = say(command, root, *more)
    answer = document["answer"]

    assert code in {1, 3}
    assert answer["state"] not in CALM
    assert f"The metadata log of node {node} reaches beyond those of all voters" in answer["headline"]
    assert f"If they did, a start forgets {words}" in answer["headline"]
    assert "-stray" not in answer["headline"]
    assert any(one.startswith("If controller 100 was copied before the others") for one in answer["now"])
    assert "was committed. Its log ends" not in answer["headline"]


@pytest.mark.parametrize(
    ("record", "fields", "words"),
    [
        (
            "ConfigRecord",
            {"resource_type": 2, "resource_name": "orders-ok", "name": "retention.ms", "value": "1000"},
            "1 configuration.",
        ),
        (
            "AccessControlEntryRecord",
            {"id": "AAAAAAAAAAAAAAAAAAAABw", "resource_type": 2, "resource_name": "orders-ok", "pattern_type": 3},
            "1 ACL.",
        ),
        (
            "ProducerIdsRecord",
            {"broker_id": 1, "broker_epoch": 9, "next_producer_id": 99_000},
            "which producer ids were given out: 4000..98999 are given out again",
        ),
        (
            "FeatureLevelRecord",
            {"name": "group.version", "feature_level": 2},
            "group.version 2, which is 1 then.",
        ),
    ],
)
@pytest.mark.some(1)
def test_each_kind_of_metadata_that_is_forgotten_is_named(beyond, say, record, fields, words):
    root = beyond(record, fields)
    for command in ("metadata", "diff"):
        code, document = say(command, root)

        assert (code, document["answer"]["state"]) == (3, "unknown")
        assert f"If they did, a start forgets {words}" in document["answer"]["headline"]


@pytest.mark.parametrize("command", ["metadata", "diff", "explain", "verify"])
@pytest.mark.some(1)
def test_a_copy_that_was_made_a_moment_later_is_no_alarm(beyond, say, command):
    code, document = say(command, beyond("NoOpRecord", {}))

    assert code == 0
    assert "voters" not in document["answer"]["headline"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.some(2)
def test_an_election_that_logs_know_and_no_voter_was_committed(fixtures, say, tmp_path, command):
    root = copied(fixtures / "unclean-election", tmp_path / "cluster")
    (history,) = map(read_metadata_log, find_metadata_logs(find_inputs([root / "controller-100"])))
    rows = history.batches[history.batches["base_offset"] == 40]
    (segment,) = (root / "controller-100" / "__cluster_metadata-0").glob("*.log")
    segment.chmod(0o644)
    segment.write_bytes(segment.read_bytes()[: int(rows["position"][0])])
    for one in segment.parent.glob("*index"):
        one.unlink()
    _, document = say(command, root)
    headline = document["answer"]["headline"]

    assert (
        "Its log ends at or below offset 40, and the log of payments-1 on broker 3 has leader epoch 2, of offset 87."
        in headline
    )
    assert "A start forgets the last leader or in-sync replicas of 6 partitions. An election can lose then" in headline
    assert "Either the voters" not in headline


@pytest.mark.parametrize("command", [*COMMANDS, "groups", "transactions"])
@pytest.mark.parametrize("others", [(), ("controller-101",)])
@pytest.mark.some(5)
def test_an_emptied_voter_among_others_that_are_not_given_leaves_open_what_the_quorum_goes_on_with(
    quorums, say, command, others
):
    before = quorums("majority-emptied") / "before"
    code, document = say(command, *(before / one for one in ("controller-102", "broker-1", "broker-2", *others)))
    answer = document["answer"]

    assert (code, answer["state"]) == (3, "unknown")
    assert "Controller 102, one of 3 voters, lacks metadata that was committed." in answer["headline"]
    assert "Whether 1 more voter lacks it is not known: with it the quorum can go on." in answer["headline"]
    assert any(one.startswith("Give the log directories of the other 2 voters") for one in answer["now"])
    assert "a majority" not in answer["headline"]


@pytest.mark.parametrize("command", ["metadata", "diff", "explain", "verify", "groups"])
@pytest.mark.some(2)
def test_an_emptied_voter_that_a_majority_outvotes_is_no_alarm(quorums, say, tmp_path, command):
    before = copied(quorums("majority-emptied") / "before", tmp_path / "before")
    for emptied in (before / "controller-103",):
        shutil.rmtree(emptied / "__cluster_metadata-0", ignore_errors=True)
        shutil.copytree(before / "controller-101" / "__cluster_metadata-0", emptied / "__cluster_metadata-0")
    _, document = say(command, before)

    assert "lack" not in document["answer"]["headline"]
    assert not any("Start no node" in one for one in document["answer"]["now"])
