"""The same evidence and the same options give the same bytes, whatever the machine, its settings, and how many processes work."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.commands import damage_tree, invoke, small_tree

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"PYTHONHASHSEED": "random", "TZ": "Asia/Kolkata", "LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8"}


def outcomes(tree, options, environment):
    settings = {**os.environ, "SOURCE_DATE_EPOCH": "0", "COLUMNS": "80", **environment}
    command = [sys.executable, "-m", "tests.trust.all_commands", str(tree), *options]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=settings, cwd=ROOT)
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A recording with some damage, so that there are findings to be put in order."""
    tree = small_tree(tmp_path_factory.mktemp("reproducible") / "cluster")
    damage_tree(Random(3), tree)
    return tree


def test_surroundings_do_not_change_a_byte(tree):
    """Two processes, directories in another order, another place and language."""
    first = outcomes(tree, [], {"PYTHONHASHSEED": "0", "TZ": "UTC", "LANG": "C", "LC_ALL": "C"})

    again = outcomes(tree, ["--jobs", "2", "--shuffle", "7"], ELSEWHERE)

    assert [] == [command for command in first if first[command] != again[command]]
    assert any(code in {1, 3} for code, _, _ in first.values())


@pytest.mark.parametrize("command", ["verify", "diff", "ls"])
@pytest.mark.some(2)
def test_the_order_of_the_inputs_does_not_change_what_is_found(command, tree):
    inputs = [str(tree / name) for name in ("broker-1", "broker-2", "broker-3", "controller-100")]

    def found(paths):
        code, out, _ = invoke([command, "--format", "json", *paths])
        document = json.loads(out)
        return code, sorted(
            (one["code"], one["severity"], str(one["topic"]), str(one["partition"])) for one in document["findings"]
        )

    assert found(inputs) == found(inputs[::-1])


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2, 8])
@pytest.mark.parametrize("recording", ["unclean-election-4.x", "all-codecs-4.x", "mixed-magic-1.1", "power-cut-2.8"])
def test_recordings_give_the_same_bytes(recording, jobs, incident):
    for snapshot in sorted((incident(recording) / "snapshots").iterdir()):
        expected = outcomes(snapshot, [], {"PYTHONHASHSEED": "0", "TZ": "UTC", "LANG": "C"})
        for seed, zone, language in (("1", "Asia/Kolkata", "C"), ("random", "UTC", "tr_TR.UTF-8")):
            again = outcomes(snapshot, ["--jobs", str(jobs)], {"PYTHONHASHSEED": seed, "TZ": zone, "LANG": language})
            assert [] == [command for command in expected if expected[command] != again[command]]
