"""A standalone master of Spark and its workers as processes of this machine."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kforensics.fleet.session import find_java


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def standalone(
    folder: Path, *, workers: int = 2, patience: float = 240
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a master and workers of one core each, and end them with the work.

    Args:
        folder: of their logs.
        workers: how many.
        patience: seconds that they may take to find one another.

    Yields:
        The address of the master, and the workers, each a process group of its own.
    """
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

    def start(name: str, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        with (folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        started.append(process)
        return process

    try:
        start("master", "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port()))
        master = f"spark://127.0.0.1:{port}"
        own = [
            start(
                f"worker-{number}",
                "worker.Worker",
                *("--host", "127.0.0.1", "--cores", "1", "--memory", "1g"),
                *("--webui-port", str(free_port()), "--work-dir", str(folder / f"work-{number}"), master),
            )
            for number in range(workers)
        ]
        deadline = time.monotonic() + patience
        while (folder / "master.log").read_text().count("Registering worker") < workers:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        yield master, own
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
