"""Evidence taken away from random histories of all four protocols: `diff` becomes unsure, never calm.

More of them, as KFORENSICS_SEEDS=10000 pytest tests/simulation/test_less_evidence.py -n auto; one again, as KFORENSICS_SEED=4711.
"""

import os
import shutil

import pytest

from kforensics.protocol.truncation import ProtocolName
from kforensics.simulation.cluster import random_cluster
from tests.builders.repeating import times
from tests.simulation.less_evidence import diff_with_less

SEEDS = int(os.environ.get("KFORENSICS_SEEDS", times(24, 1_000)))
ONE_SEED = os.environ.get("KFORENSICS_SEED")
SHARES = 4


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("protocol", list(ProtocolName))
@pytest.mark.some(5)
def test_diff_is_not_calm_without_proof(protocol, share, tmp_path):
    seeds = range(share, SEEDS // len(ProtocolName), SHARES)
    for seed in ([int(ONE_SEED)] if share == 0 else []) if ONE_SEED else seeds:
        directory = tmp_path / f"{seed}"
        wrong = diff_with_less(
            random_cluster(seed, protocol=protocol), directory, seed, protocol_is_told=bool(seed % 2)
        )
        assert not wrong, f"seed {seed} under {protocol}: {wrong[:5]}"
        shutil.rmtree(directory)


@pytest.mark.parametrize(
    ("seed", "protocol"),
    [
        (500021, ProtocolName.KIP_279),  # a high watermark from before the log was truncated and written again
        (500084, ProtocolName.HW),  # records that both hold behind others that differ
        (501418, ProtocolName.HW),  # records that two followers both hold behind others that differ
        (500441, ProtocolName.KIP_595),  # a log whose first segments are missing
    ],
)
def test_histories_that_were_told_wrong_once(seed, protocol, tmp_path):
    cluster = random_cluster(seed, protocol=protocol)

    assert [] == diff_with_less(cluster, tmp_path / "cluster", seed, protocol_is_told=bool(seed % 2))
