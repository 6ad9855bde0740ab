"""Of which cluster a node is, and which brokers a partition is assigned to: as files say it, else as the inventory does, else nobody knows."""

import json

import pytest

from kforensics.ask.model import Ask
from kforensics.commands.comparing import compare
from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.evidence.discovery.inputs import FoundInput, find_inputs
from kforensics.findings.answers.fleet import fleet_answer
from kforensics.findings.answers.model import State
from kforensics.findings.rules.directories import MISNAMED
from kforensics.fleet.facts import JoinedKnowledge
from kforensics.fleet.knowledge import Fleet, cluster_of_inputs, gather_knowledge
from kforensics.fleet.sources import find_sources, read_assignments, read_sources
from kforensics.fleet.summary import summarise
from kforensics.fleet.tables import WorkTables
from kforensics.units import TopicPartition
from tests.builders.cases import case_of
from tests.builders.coordinators import batch, write_log
from tests.builders.directories import CLUSTER, copied, log_dir

DESCRIBED = """\
Topic: orders\tTopicId: pLHbKEz0TSuXbJZ1Zs0q0w\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: segment.bytes=1000
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 2,1
\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,1\tIsr:
"""
REASSIGNED = """\
Current partition replica assignment
{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","any"]},{"topic":"orders","partition":1,"replicas":[2,1]}]}

Proposed partition reassignment configuration
{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[7]}]}
"""
ZNODES = (
    '/brokers/topics/orders {"version":1,"partitions":{"0":[1,2],"1":[2,1]}}\n/brokers/topics/orders/partitions null\n'
)
OF_BOTH = {TopicPartition("orders", 0): (1, 2), TopicPartition("orders", 1): (2, 1)}


def node(place, number, *, cluster=True, partitions=("orders-0", "orders-1")):
    """A node whose replicas hold the same records."""
    log_dir(place, number, partitions=())
    (place / "replication-offset-checkpoint").unlink()
    if not cluster:
        (place / "meta.properties").write_text(f"version=0\nbroker.id={number}\n")
    for name in partitions:
        write_log(place, name, (0, b"".join(batch(at, [(b"k", b"v")]) for at in range(5))))
    return place


@pytest.mark.parametrize(
    "text",
    [
        DESCRIBED,
        REASSIGNED,
        ZNODES,
        json.dumps({"/brokers/topics/orders": {"partitions": {"0": [1, 2], "1": [2, 1]}}}),
        json.dumps({"/brokers/topics/orders": json.dumps({"partitions": {"0": [1, 2], "1": [2, 1]}})}),
    ],
)
def test_assignments_are_read_as_the_tools_of_kafka_write_them(tmp_path, text):
    (tmp_path / "topics").write_text(text)

    assert OF_BOTH == read_assignments(tmp_path / "topics")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        '{"partitions": 5}',
        '{"partitions": [{"topic": "orders", "partition": 0, "replicas": []}]}',
        '/brokers/topics/orders {"partitions": {"0": [1]',
        DESCRIBED + "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,3\tIsr: 1\n",
        '{"version":1,"partitions":{"0":[1]}}',
    ],
)
def test_what_assigns_nothing_or_two_things_is_refused(tmp_path, text):
    (tmp_path / "topics").write_text(text)

    with pytest.raises(
        EvidenceUnreadable, match=r"topics: .*(assigned to brokers|expected what kafka-topics --describe prints)"
    ):
        read_assignments(tmp_path / "topics")


def test_a_fleet_with_zookeeper_has_a_green_night_where_its_inventory_names_the_assignment(audit_here, tmp_path):
    for number in (1, 2):
        node(tmp_path / f"broker-{number}", number)
    (tmp_path / "topics.txt").write_text(DESCRIBED)
    (tmp_path / "nodes.yaml").write_text("nodes: [broker-1, broker-2]\nassignments: topics.txt\n")

    without = summarise(audit_here(tmp_path / "broker-1", tmp_path / "broker-2"), most=9)
    assert State.UNKNOWN is fleet_answer(without).state
    options = Ask(is_stopped=True)
    tables = audit_here(tmp_path / "nodes.yaml", options=options)
    assert State.AGREE is fleet_answer(summarise(tables, most=9)).state
    assert [[1, 2], [2, 1]] == sorted(row["assigned"] for row in tables.rows("partitions"))

    (tmp_path / "topics.txt").write_text(DESCRIBED.replace("Replicas: 1,2", "Replicas: 1,2,3"))
    assert State.UNKNOWN is fleet_answer(summarise(audit_here(tmp_path / "nodes.yaml", options=options), most=9)).state


def test_what_the_inventory_assigns_and_no_disk_holds_is_missing(audit_here, tmp_path):
    node(tmp_path / "broker-1", 1)
    node(tmp_path / "broker-2", 2, partitions=("orders-0",))
    (tmp_path / "topics.json").write_text(
        json.dumps(
            {
                "partitions": [
                    {"topic": topic, "partition": number, "replicas": [1, 2]}
                    for topic, number in (("orders", 0), ("orders", 1), ("gone", 0))
                ]
            }
        )
    )
    (tmp_path / "nodes.csv").write_text("location,assignments\nbroker-1,\nbroker-2,\n,topics.json\n")

    tables = audit_here(tmp_path / "nodes.csv")

    missing = {(row["topic"], row["partition"]): row["missing"] for row in tables.rows("partitions")}
    assert {("orders", 0): [], ("orders", 1): [2], ("gone", 0): [1, 2]} == missing
    assert 3 == sum(row["code"] == "KF403" for row in tables.rows("findings"))
    assert State.AGREE is not fleet_answer(summarise(tables, most=9)).state


def test_a_node_without_a_cluster_is_booked_into_none(audit_here, tmp_path):
    node(tmp_path / "broker-1", 1)
    node(tmp_path / "broker-2", 2, cluster=False, partitions=("orders-0", "payments-0"))

    tables = audit_here(tmp_path / "broker-1", tmp_path / "broker-2")

    assert [(1, CLUSTER), (2, None)] == sorted((row["node_id"], row["cluster_id"]) for row in tables.rows("nodes"))
    of_replicas = {(row["node_id"], row["cluster_id"]) for row in tables.rows("replicas")}
    assert {(1, CLUSTER), (2, None)} == of_replicas
    booked = {f"{row['topic']}-{row['partition']}": row["cluster_id"] for row in tables.rows("partitions")}
    assert {"orders-0": CLUSTER, "orders-1": CLUSTER, "payments-0": None} == booked
    (unknown,) = [row for row in tables.rows("findings") if row["code"] == "KF409"]
    assert ("warning", None) == (unknown["severity"], unknown["cluster_id"])
    assert f"the cluster of node 2 is not known: it is judged as of cluster {CLUSTER}" in unknown["statement"]
    assert all(row["finding_id"].split("/")[1] == "-" for row in tables.rows("findings") if row["topic"] == "payments")


def test_two_clusters_without_ids_are_kept_apart_by_the_inventory(audit_here, tmp_path):
    for name in ("a", "b"):
        for number in (1, 2):
            node(tmp_path / name / f"broker-{number}", number, cluster=False)
    other = tmp_path / "b" / "broker-2" / "orders-0" / f"{0:020}.log"
    other.write_bytes(batch(0, [(b"other", b"v")]))
    (tmp_path / "nodes.yaml").write_text(
        json.dumps({"nodes": [{"location": f"{name}/broker-{n}", "cluster": name} for name in "ab" for n in (1, 2)]})
    )

    tables = audit_here(tmp_path / "nodes.yaml")

    verdicts = {
        (row["cluster_id"], row["topic"], row["partition"]): row["replicas"] for row in tables.rows("partitions")
    }
    assert {(name, "orders", number): 2 for name in "ab" for number in (0, 1)} == verdicts
    differing = {row["cluster_id"] for row in tables.rows("partitions") if row["verdict_rank"] > 1}
    assert {"b"} == differing
    assert not any(row["code"] in {"KF409", "KF508"} for row in tables.rows("findings"))
    merged = audit_here(tmp_path / "a", tmp_path / "b")
    assert {"KF409", "KF508"} <= {row["code"] for row in merged.rows("findings")}


def test_each_cluster_is_looked_at_once_however_many_there_are(tmp_path, monkeypatch):
    walked = []
    walk = FoundInput.walk

    def walk_and_count(self, **more):
        walked.append(self.root)
        return walk(self, **more)

    monkeypatch.setattr(FoundInput, "walk", walk_and_count)

    def counted(clusters):
        place = tmp_path / f"of-{clusters}"
        for number in range(clusters):
            node(place / f"cluster-{number}", 1, cluster=False)
            properties = f"version=0\nbroker.id=1\ncluster.id=cluster-{number}\n"
            (place / f"cluster-{number}" / "meta.properties").write_text(properties)
        inputs = find_sources(read_sources([str(place / "*")])).inputs
        walked.clear()
        clusters_of = cluster_of_inputs(inputs)
        fleet = Fleet(
            inputs=inputs, clusters=clusters_of, tasks=(), totals=(), assignments={}, tables=WorkTables(tmp_path)
        )
        found = [JoinedKnowledge(gather_knowledge(fleet, one).shared) for one in sorted(fleet.members)]
        assert [{1}] * clusters == [set(one.of(TopicPartition("orders", 0)).given) for one in found]
        return len(walked)

    assert counted(9) == 3 * counted(3)


def test_the_inventory_and_the_files_may_disagree_about_the_cluster(audit_here, tmp_path):
    node(tmp_path / "broker-1", 1)
    (tmp_path / "nodes.yaml").write_text("- {location: broker-1, cluster: other, node: 7}\n")

    statements = [row["statement"] for row in audit_here(tmp_path / "nodes.yaml").rows("findings")]

    assert any("gives cluster other for" in one and f"says {CLUSTER}" in one for one in statements)
    assert any("gives node 7 for" in one for one in statements)


def test_assignments_of_an_unknown_cluster_are_refused(audit_here, tmp_path):
    node(tmp_path / "broker-1", 1)
    (tmp_path / "topics.txt").write_text(DESCRIBED)
    (tmp_path / "nodes.yaml").write_text(
        "nodes: [broker-1]\nassignments: [{assignments: topics.txt, cluster: other}]\n"
    )

    with pytest.raises(UsageError, match="of cluster other, of which no node is given"):
        audit_here(tmp_path / "nodes.yaml")


def test_directories_whose_names_were_exchanged_are_no_calm_answer_of_an_audit_either(quorums, audit_here, tmp_path):
    cluster = tmp_path / "cluster"
    copied(quorums("only-controller-emptied") / "before", cluster)
    sound = summarise(audit_here(cluster), most=0)
    assert MISNAMED.code not in sound.findings_by_code
    assert "topic id" not in fleet_answer(sound).headline

    place = cluster / "broker-1"
    (place / "orders-0").rename(place / "payments-1")
    (place / "payments-0").rename(place / "orders-0")
    (place / "payments-1").rename(place / "payments-0")
    summary = summarise(audit_here(cluster), most=0)
    expected = compare(case_of(find_inputs([cluster], with_server_logs=True)), keep_quiet=True)

    def misnamed(findings):
        return sorted((one.statement, one.citations) for one in findings if one.code == MISNAMED.code)

    assert 2 == len(misnamed(summary.findings))
    assert misnamed(expected.findings) == misnamed(summary.findings)
    answer = fleet_answer(summary)
    assert answer.state is expected.answer.state
    assert answer.headline.partition(",")[0] == expected.answer.headline.partition(",")[0]
