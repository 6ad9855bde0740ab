"""Two clusters of one cluster id, told from the disasters of one cluster that look like them."""

import json

import pytest

from kforensics.cli.app import run
from kforensics.errors import InputsRefused
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.metadata.compare import refuse_two_clusters
from kforensics.evidence.metadata.log import read_metadata_logs
from tests.builders.directories import CLUSTER, copied, log_dir
from tests.builders.metadata_logs import metadata_batch, metadata_record

IDS = {name: name * 22 for name in "ABCDEFGH"}
"""Directory ids, incarnations and topic ids."""


def registered(node, incarnation, directory, port):
    fields = {
        "broker_id": node,
        "incarnation_id": IDS[incarnation],
        "broker_epoch": 1,
        "end_points": [{"name": "PLAINTEXT", "host": "kafka", "port": port, "security_protocol": 0}],
        "features": [],
        "rack": None,
        "fenced": True,
        "log_dirs": [IDS[directory]] if directory else [],
    }
    return metadata_record("RegisterBrokerRecord", fields, None if directory else 0)


def topic(name, topic_id):
    return metadata_record("TopicRecord", {"name": name, "topic_id": IDS[topic_id]})


@pytest.fixture
def node(tmp_path):
    """A broker's directory with the metadata log that these records make, all of one time."""

    def make(number, directory, *values, time_ms=1_000):
        root = log_dir(tmp_path / f"b{number}", number, directory_id=IDS[directory] if directory else "", partitions=())
        folder = root / "__cluster_metadata-0"
        folder.mkdir()
        batches = [metadata_batch(at, [value], times_ms=[time_ms + at]) for at, value in enumerate(values)]
        (folder / f"{0:020}.log").write_bytes(b"".join(batches))
        return root

    return make


def is_refused(*roots):
    inputs = find_inputs(roots)
    try:
        refuse_two_clusters(read_metadata_logs(inputs), inputs)
    except InputsRefused as error:
        return "two clusters" in str(error) and {one.path for one in error.errors} == {str(root) for root in roots}
    return False


def test_each_log_names_another_disk_of_the_others_node(node):
    first = node(1, "A", registered(1, "A", "A", 9001), registered(2, "B", "B", 9002), topic("t", "A"))
    second = node(2, "C", registered(1, "C", "D", 9001), registered(2, "D", "C", 9002), topic("t", "B"), time_ms=9_000)

    assert is_refused(first, second)


def test_before_directories_had_ids_addresses_and_topics_tell(node):
    first = node(1, "", registered(1, "A", "", 9001), registered(2, "B", "", 9002), topic("t", "A"))
    second = node(2, "", registered(1, "C", "", 7001), registered(2, "D", "", 7002), topic("t", "B"), time_ms=9_000)

    assert is_refused(first, second)


def test_a_quorum_that_was_formatted_anew_is_of_the_same_cluster(node):
    old = (registered(1, "A", "A", 9001), registered(2, "B", "B", 9002), topic("t", "A"))
    first = node(1, "A", *old)
    # Node 2 came back with an empty disk and another log; broker 1 has not registered there yet, or has as what it is.
    alone = node(2, "C", registered(2, "D", "C", 9002), time_ms=9_000)
    assert not is_refused(first, alone)
    joined = node(3, "D", registered(1, "C", "A", 9001), registered(3, "E", "D", 9003), time_ms=9_000)
    assert not is_refused(first, joined)


def test_a_log_with_a_batch_in_common_or_a_topic_is_one_of_the_same_cluster(node):
    first = node(1, "A", registered(1, "A", "A", 9001), registered(2, "B", "B", 9002), topic("t", "A"))
    same = node(2, "C", registered(1, "A", "A", 9001), registered(2, "D", "D", 7002), topic("u", "B"))
    assert not is_refused(first, same)
    topics = node(3, "D", registered(1, "C", "D", 7001), registered(3, "D", "C", 7003), topic("t", "A"), time_ms=9_000)
    assert not is_refused(first, topics)


@pytest.mark.parametrize("line", ["diff", "explain", "predict", "metadata", "groups", "transactions"])
def test_nothing_is_compared_between_recordings_that_get_one_cluster_id(line, incident, tmp_path, capsys):
    roots = []
    for number, name in enumerate(("unclean-election-4.x", "silent-divergence-4.x"), 1):
        root = tmp_path / f"broker-{number}"
        root.mkdir()
        source = incident(name) / "snapshots" / "99-final" / root.name
        for one in ("__cluster_metadata-0", "__consumer_offsets-0"):
            if (source / one).exists():
                copied(source / one, root / one)
        kept = [each for each in (source / "meta.properties").read_text().splitlines() if "cluster.id" not in each]
        (root / "meta.properties").write_text("\n".join([*kept, f"cluster.id={CLUSTER}", ""]))
        roots.append(str(root))

    code = run([line, *roots, "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    assert (code, document["schema"]) == (3, "kforensics/refusal/2")
    assert all("has nothing in common with that of" in one["message"] for one in document["problems"])
    assert {one["path"] for one in document["inputs"]} == set(roots)
