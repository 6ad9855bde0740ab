"""Evidence taken away from random histories of all four protocols: `explain` becomes unsure, never calm, and more evidence refines it.

More of them, as KFORENSICS_SEEDS=10000 pytest tests/simulation/test_less_explained.py -n auto; one again, as KFORENSICS_SEED=4711.
"""

import copy
import os
import shutil

import pytest

from kforensics.findings.answers.model import State
from kforensics.protocol.election import Acks
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.history.causes import CauseName
from kforensics.simulation.broker_files import write_broker_logs, write_cluster
from kforensics.simulation.cluster import SimulatedCluster
from kforensics.simulation.replica import Settings
from tests.builders.repeating import times
from tests.simulation.less_explained import (
    Inputs,
    contradictions,
    growing,
    with_less,
    write_history,
    wrong_statements,
)

SEEDS = int(os.environ.get("KFORENSICS_SEEDS", times(24, 1_000)))
ONE_SEED = os.environ.get("KFORENSICS_SEED")
SHARES = 4


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("protocol", list(ProtocolName))
@pytest.mark.some(5)
def test_explain_is_not_calm_without_proof(protocol, share, tmp_path):
    seeds = range(share, SEEDS // len(ProtocolName), SHARES)
    for seed in ([int(ONE_SEED)] if share == 0 else []) if ONE_SEED else seeds:
        directory = tmp_path / f"{seed}"
        history = write_history(seed, protocol, directory)
        inputs = with_less(history, directory, seed)
        wrong = wrong_statements(history, inputs.explained())
        if seed % 5 == 0:
            chain = [one.explained() for one in growing(history, directory, seed)]
            wrong += contradictions(chain)
            wrong += wrong_statements(history, chain[-1])
        assert not wrong, f"seed {seed} under {protocol}: {wrong[:5]}"
        shutil.rmtree(directory)


def test_a_truncated_log_of_a_broker_that_never_led_again_ends_no_calm(tmp_path):
    history = write_history(500080, ProtocolName.KIP_595, tmp_path)
    chain = [one.explained() for one in growing(history, tmp_path, 500080)]

    assert [] == contradictions(chain)
    assert {State.NOTHING_LOST, State.UNCOMMITTED_LOST} < {one.answer.state for one in chain}


def test_what_an_uncleanly_elected_leader_committed_is_not_called_uncommitted(tmp_path):
    history = write_history(500767, ProtocolName.KIP_595, tmp_path)

    assert [] == wrong_statements(history, with_less(history, tmp_path, 500767).explained())


def test_a_disk_that_was_put_back_is_a_cause_of_its_own_and_never_calm(tmp_path):
    cluster = SimulatedCluster.of_topic(
        (1, 2), partitions=1, replication_factor=2, protocol=ProtocolName.KIP_595, settings=Settings()
    )
    (partition,) = cluster.partitions
    simulated = cluster.partitions[partition]
    cluster.produce(partition, ["a", "b"], Acks.ALL)
    cluster.fetch(partition, 2)
    cluster.fetch(partition, 2)
    cluster.stop([2], "crash")
    cluster.checkpoint(1)
    saved = copy.deepcopy(simulated.replicas[1])
    cluster.produce(partition, ["c", "d", "e"], Acks.ALL)
    cluster.stop([1], "stop")
    write_cluster(cluster, tmp_path / "before")
    saved.is_running, saved.stopped_cleanly = False, True
    simulated.replicas[1] = saved
    cluster.start(1)
    cluster.start(2)
    cluster.produce(partition, ["f"], Acks.ALL)
    cluster.fetch(partition, 2)
    write_cluster(cluster, tmp_path / "now")
    write_broker_logs(cluster, tmp_path)
    now = tuple(sorted((tmp_path / "now").iterdir()))

    whole = Inputs((*now, tmp_path / "logs"), (tmp_path / "before",)).explained()
    (incident,) = (one for one in whole.incidents if one.partition == partition)

    assert {CauseName.DISK_RESTORED} == {one.cause for one in incident.losses}
    assert State.LOST is whole.answer.state
    assert "put back to an earlier state" in whole.answer.headline
    assert State.UNKNOWN is Inputs((*now, tmp_path / "logs")).explained().answer.state
    assert State.UNKNOWN is Inputs(now).explained().answer.state
