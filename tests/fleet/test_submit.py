"""The other ways into Spark, for real: `spark-submit --py-files`, and Spark Connect; run with `pytest -m slow tests/fleet/test_submit.py`.

Spark Connect needs `pip install 'pyspark[connect]'`, which development does not; without it that test is left out.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import kforensics
from kforensics.commands.comparing import compare
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.fleet.session import find_java
from tests.builders.cases import case_of

pytestmark = [pytest.mark.slow, pytest.mark.spark]

WHERE_IT_COMES_FROM = """
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
import kforensics

session = SparkSession.builder.getOrCreate()

@udf("string")
def look(_):
    import kforensics
    return kforensics.__file__

rows = session.range(0, 2, 1, 2).select(look("id").alias("place")).collect()
print("PLACES", kforensics.__file__, *{row.place for row in rows})
"""


@pytest.fixture
def snapshot(incident):
    return incident("unclean-election-4.x") / "snapshots" / "03-old-leader-down-live"


@pytest.fixture
def spark_home():
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture
def environment(spark_home):
    return {
        **os.environ,
        "SPARK_HOME": str(spark_home),
        "JAVA_HOME": str(find_java()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }


@pytest.fixture
def package(tmp_path):
    """The package as a zip, and nothing else of it on the way to the interpreter."""
    root = Path(kforensics.__file__).parent
    target = tmp_path / "kforensics.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(root.parent))
    return target


def submit(spark_home, environment, tmp_path, package, program, *arguments):
    script = tmp_path / "run.py"
    script.write_text(program)
    # Executors as processes of their own: the package must reach them through Spark.
    command = [str(spark_home / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]"]
    command += ["--conf", "spark.driver.host=127.0.0.1", "--py-files", str(package), str(script), *arguments]
    return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_submitted_with_the_package_as_a_zip(spark_home, environment, tmp_path, package, snapshot):
    looked = submit(spark_home, environment, tmp_path, package, WHERE_IT_COMES_FROM)
    places = next(line for line in looked.stdout.splitlines() if line.startswith("PLACES")).split()[1:]
    assert all("kforensics.zip" in place for place in places)

    run = "from kforensics.cli.app import main\nmain()\n"
    arguments = ["fleet", "audit", str(snapshot), "--out", str(tmp_path / "tables"), "--format"]
    answer = submit(spark_home, environment, tmp_path, package, run, *arguments, "json")

    assert 1 == answer.returncode, answer.stderr[-2_000:]
    assert_same(json.loads(answer.stdout[answer.stdout.index("{") :]), snapshot)
    page = [sys.executable, "-m", "kforensics", "fleet", "report", str(tmp_path / "tables"), "--format", "html"]
    shown = subprocess.run(
        page, env={**environment, "PYTHONPATH": str(package)}, capture_output=True, text=True, check=False
    )
    assert shown.stdout.startswith("<!doctype html>")


@pytest.fixture
def server(spark_home, environment, tmp_path):
    """The address of a server of Spark Connect, started as a process."""
    pytest.importorskip("grpc")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [str(spark_home / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["--conf", f"spark.connect.grpc.binding.port={port}"]
    command += ["--conf", "spark.connect.grpc.binding.address=127.0.0.1", "spark-internal"]
    log = tmp_path / "server.log"
    with log.open("wb") as target:
        process = subprocess.Popen(command, env=environment, stdout=target, stderr=target, start_new_session=True)
    deadline = time.monotonic() + 240
    while "Spark Connect server started" not in log.read_text(errors="replace"):
        assert process.poll() is None, log.read_text(errors="replace")[-2_000:]
        assert time.monotonic() < deadline
        time.sleep(0.5)
    yield f"sc://127.0.0.1:{port}"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


CONNECTED = """
import sys
from pyspark.sql import SparkSession
from kforensics.fleet.datasource import register

session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
register(session)
disks = session.read.format("kforensics").option("level", "batches").load(sys.argv[2])
row = disks.where("topic = 'orders' and partition = 0 and last_offset >= 60").selectExpr("count(*) n", "sum(record_count) r").first()
print("FOUND", row.n, row.r)
session.stop()
"""


def test_spark_connect(server, snapshot, environment, tmp_path):
    looked = subprocess.run(
        [sys.executable, "-c", CONNECTED, server, str(snapshot / "broker-2")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "FOUND" in looked.stdout, looked.stderr[-2_000:]
    assert "FOUND 0" not in looked.stdout

    audit = [sys.executable, "-m", "kforensics", "fleet", "audit", str(snapshot), "--master", server]
    answer = subprocess.run(
        [*audit, "--out", str(tmp_path / "tables"), "--format", "json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 1 == answer.returncode, answer.stderr[-2_000:]
    assert_same(json.loads(answer.stdout), snapshot)


def assert_same(document, snapshot):
    expected = compare(case_of(find_inputs([snapshot], with_server_logs=True)))
    assert sorted(one.statement for one in expected.findings) == sorted(
        one["statement"] for one in document["findings"] if not one["code"].startswith("KF4")
    )
    assert [] == document["problems"]
