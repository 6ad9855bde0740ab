"""A standalone master and two workers as processes, one of which is killed midway; run with `pytest -m slow tests/fleet/test_cluster.py`."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kforensics.fleet.judge import STATE
from kforensics.fleet.tables import WORK
from tests.benchmarks.fleet import generate
from tests.fleet.standalone import standalone

pytestmark = [pytest.mark.slow, pytest.mark.spark]

PARTITIONS = 240
REPLICA_LENGTH = 1_000_000


@pytest.fixture
def cluster(tmp_path):
    """The master's address, and the two workers."""
    with standalone(tmp_path) as found:
        yield found


def test_a_cluster_that_loses_a_worker_judges_everything(cluster, tmp_path):
    master, workers = cluster
    fleet = tmp_path / "fleet"
    generate(fleet, PARTITIONS, replica_length=REPLICA_LENGTH, records=4, replicas=3)
    kforensics = str(Path(sys.executable).with_name("kforensics"))
    expected = json.loads(
        subprocess.run(
            [kforensics, "diff", "--format", "json", fleet.name], cwd=tmp_path, capture_output=True, check=False
        ).stdout
    )
    # Relative paths, as the documents have them: workers have another working directory.
    command = [kforensics, "fleet", "audit", fleet.name, "--out", "tables", "--master", master]
    settings = ["--spark-conf", "spark.executor.memory=512m", "--spark-conf", "spark.driver.host=127.0.0.1"]

    audit = subprocess.Popen([*command, *settings, "--format", "json"], stdout=subprocess.PIPE, cwd=tmp_path)
    state = tmp_path / "tables" / WORK / STATE
    deadline = time.monotonic() + 300
    while not (state.exists() and any(one.name.startswith("task-") for one in state.iterdir())):
        assert audit.poll() is None, "the audit ended before a worker could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(workers[0].pid, signal.SIGKILL)
    out, _ = audit.communicate(timeout=600)

    document = json.loads(out)
    assert 1 == audit.returncode
    assert PARTITIONS == document["partition_count"]
    assert [] == document["problems"]
    found = [one for one in document["findings"] if not one["code"].startswith("KF4")]
    assert sorted(map(json.dumps, expected["findings"])) == sorted(map(json.dumps, found))
