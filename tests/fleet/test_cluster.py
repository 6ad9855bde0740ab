"""A standalone master and two workers as processes, one of which is killed midway; run with `pytest -m slow tests/fleet/test_cluster.py`."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kforensics.fleet.session import find_java
from tests.benchmarks.fleet import generate

pytestmark = [pytest.mark.slow, pytest.mark.spark]

PARTITIONS = 240
REPLICA_LENGTH = 1_000_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def cluster(tmp_path):
    """The master's address, and the two workers, each a process group of its own."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(find_java()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    port, started = free_port(), []

    def start(name, *arguments):
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]]
        with (tmp_path / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        started.append(process)
        return process

    start("master", "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port()))
    master = f"spark://127.0.0.1:{port}"
    workers = [
        start(
            f"worker-{number}",
            "worker.Worker",
            *("--host", "127.0.0.1", "--cores", "1", "--memory", "1g"),
            *("--webui-port", str(free_port()), "--work-dir", str(tmp_path / f"work-{number}"), master),
        )
        for number in (1, 2)
    ]
    deadline = time.monotonic() + 120
    while (tmp_path / "master.log").read_text().count("Registering worker") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    yield master, workers
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_cluster_that_loses_a_worker_judges_everything(cluster, tmp_path):
    master, workers = cluster
    fleet = tmp_path / "fleet"
    generate(fleet, PARTITIONS, replica_length=REPLICA_LENGTH, records=4, replicas=3)
    kforensics = str(Path(sys.executable).with_name("kforensics"))
    expected = json.loads(
        subprocess.run([kforensics, "diff", "--format", "json", str(fleet)], capture_output=True, check=False).stdout
    )
    command = [kforensics, "fleet", "audit", str(fleet), "--out", str(tmp_path / "tables"), "--master", master]
    settings = ["--spark-conf", "spark.executor.memory=512m", "--spark-conf", "spark.driver.host=127.0.0.1"]

    audit = subprocess.Popen([*command, *settings, "--format", "json"], stdout=subprocess.PIPE)
    state = tmp_path / "tables" / "state"
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
