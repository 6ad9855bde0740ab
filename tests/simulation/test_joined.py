"""Random histories through the whole tool: what `diff` and `explain` say of the directories is what happened in the simulator.

More of them, as KFORENSICS_SEEDS=10000 pytest tests/simulation/test_joined.py -n auto; one again, as KFORENSICS_SEED=4711.
"""

import os
import shutil

import pytest

from kforensics.protocol.truncation import ProtocolName
from kforensics.simulation.cluster import random_cluster
from tests.builders.repeating import times
from tests.simulation.joined import diff_against_truth, explain_against_truth, shortest_failure

SEEDS = int(os.environ.get("KFORENSICS_SEEDS", times(24, 1_000)))
ONE_SEED = os.environ.get("KFORENSICS_SEED")
SHARES = 8
OLD_PROTOCOLS = (ProtocolName.HW, ProtocolName.KIP_101, ProtocolName.KIP_279)


def fail_with_shortest(seed, protocol, directory):
    steps, wrong = shortest_failure(seed, protocol, directory / "shorter")
    listed = "\n".join(wrong[:10])
    pytest.fail(f"seed {seed} under {protocol}, already after {steps} steps:\n{listed}")


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.some(3)
def test_diff_and_explain_show_what_happened(share, tmp_path):
    seeds = [int(ONE_SEED)] if ONE_SEED and share == 0 else [] if ONE_SEED else range(share, SEEDS, SHARES)
    for seed in seeds:
        cluster = random_cluster(seed)
        wrong = diff_against_truth(cluster, tmp_path / f"diff-{seed}")
        wrong += explain_against_truth(cluster, tmp_path / f"explain-{seed}")
        if wrong:
            fail_with_shortest(seed, ProtocolName.KIP_595, tmp_path)
        for kind in ("diff", "explain"):
            shutil.rmtree(tmp_path / f"{kind}-{seed}")


@pytest.mark.parametrize(
    ("seed", "protocol"),
    [
        pytest.param(1607, ProtocolName.KIP_595, id="a high watermark written before a crash"),
        pytest.param(1402, ProtocolName.KIP_101, id="a hole where a cut took a batch whole"),
        pytest.param(5933, ProtocolName.KIP_101, id="a hole further up"),
    ],
)
def test_what_went_wrong_once(seed, protocol, tmp_path):
    assert diff_against_truth(random_cluster(seed, protocol=protocol), tmp_path / "diff") == []


@pytest.mark.parametrize("protocol", OLD_PROTOCOLS)
def test_diff_of_the_old_protocols(protocol, tmp_path):
    for seed in range(max(SEEDS // 10, 1)):
        wrong = diff_against_truth(random_cluster(seed, protocol=protocol), tmp_path / f"{seed}")
        assert not wrong, f"seed {seed} under {protocol}: {wrong}"
        shutil.rmtree(tmp_path / f"{seed}")


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        diff_against_truth(random_cluster(7), tmp_path / name)
    one, two = (
        {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two


def test_a_shorter_history_is_the_beginning_of_the_longer():
    longer, shorter = random_cluster(5), random_cluster(5, most_steps=8)
    for partition, simulated in shorter.partitions.items():
        first = simulated.registrations[0][1]
        assert first == longer.partitions[partition].registrations[0][1]
    assert shorter.now_ms <= longer.now_ms
