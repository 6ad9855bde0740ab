"""Evidence taken away from random histories of all four protocols: `explain` becomes unsure, never calm, and more evidence refines it.

More of them, as KFORENSICS_SEEDS=10000 pytest tests/simulation/test_less_explained.py -n auto; one again, as KFORENSICS_SEED=4711.
"""

import os
import shutil

import pytest

from kforensics.protocol.outcome import ProtocolName
from tests.simulation.less_explained import contradictions, growing, with_less, write_history, wrong_statements

SEEDS = int(os.environ.get("KFORENSICS_SEEDS", "60"))
ONE_SEED = os.environ.get("KFORENSICS_SEED")
SHARES = 4


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("protocol", list(ProtocolName))
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
