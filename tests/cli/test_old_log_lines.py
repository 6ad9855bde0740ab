"""Log lines of other clusters and nodes beside those of the broker: left out, and said to be, while the rest is judged."""

import json

import pytest

from kforensics.cli.app import run
from tests.builders.directories import CLUSTER
from tests.trust.hostile import sound_batch, write_partition

OLD, OLDER = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"


def life(cluster, day, node=1, version="3.1.0", *, is_stopped=True):
    time = f"[2026-03-{day:02} 10:00:00,000] INFO"
    lines = [
        f"{time} starting (kafka.server.KafkaServer)",
        f"{time} Cluster ID = {cluster} (kafka.server.KafkaServer)",
        f"{time} Kafka version: {version} (org.apache.kafka.common.utils.AppInfoParser)",
        f"{time} [KafkaServer id={node}] started (kafka.server.KafkaServer)",
    ]
    if is_stopped:
        lines.append(f"{time} [KafkaServer id={node}] shut down completed (kafka.server.KafkaServer)")
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture
def home(tmp_path):
    """A broker's directory with its log files beside it."""
    write_partition(tmp_path / "data", "t-0", sound_batch(0) + sound_batch(1))
    (tmp_path / "data" / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n")
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (tmp_path / "data" / name).write_text("0\n1\nt 0 2\n")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "server.log").write_text(life(CLUSTER, 9, is_stopped=False))
    return tmp_path


@pytest.fixture
def said(capsys):
    def call(*arguments):
        code = run([*map(str, arguments), "--format", "json"])
        return code, json.loads(capsys.readouterr().out)

    return call


LINES = {
    "predict": ("--now", "2023-11-15T00:00:00Z"),
    "diff": ("--replicas", "1"),
    "explain": (),
}


@pytest.mark.parametrize("command", LINES)
def test_lines_of_earlier_clusters_are_left_out_and_the_rest_is_judged(command, home, said):
    line = (command, home, *LINES[command])
    before, alone = said(*line)
    log = home / "logs" / "server.log"
    log.write_text(life(OLDER, 1, 7, "2.5.0") + life(OLD, 2, 8, "2.6.0") + log.read_text())
    (home / "logs" / "server.log.1").write_text(life(OLD, 3, 8, "2.7.0"))

    code, document = said(*line)

    assert (code, document["answer"]) == (before, alone["answer"])
    assert [(one["path"], "left out" in one["message"]) for one in document["problems"]] == [
        ("server.log", True),
        ("server.log.1", True),
    ]
    assert f"clusters {OLD} and {OLDER}" in document["problems"][0]["message"]


def test_log_files_of_another_cluster_that_are_named_are_refused_all_the_same(home, said, tmp_path):
    (home / "logs" / "server.log").write_text(life(OLD, 3))

    code, document = said("diff", home / "data", home / "logs")

    assert (code, document["schema"]) == (3, "kforensics/refusal/2")


def test_lines_of_other_nodes_take_nothing_from_a_prediction(home, said):
    line = ("predict", home, *LINES["predict"])
    alone = said(*line)[1]["answer"]
    state = "[2026-03-08 10:00:00,000] INFO [Broker id={}] {} (state.change.logger)\n"
    leads = "Leader t-0 starts at leader epoch 0 from offset 0 with high watermark 0 ISR [2] addingReplicas [] removingReplicas []. Previous leader epoch was -1."
    created = "[2026-03-08 10:00:00,000] INFO Created log for partition t-0 in /data/t-0 with properties {} (kafka.log.LogManager)\n"
    (home / "logs" / "state-change.log.1").write_text(state.format(2, leads) + created + state.format(3, leads))

    code, document = said(*line)

    assert document["answer"] == alone
    assert code == 0
    assert "lines of nodes 2 and 3 are in one file" in document["problems"][0]["message"]
