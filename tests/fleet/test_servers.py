"""A fleet on object storage, sources and tables, against servers of its interfaces; run with `pytest -m slow tests/fleet/test_servers.py`.

Each server is a program on the path, and its test is left out where it is not: `moto_server` (`pip install 'moto[server]'`), `s3rver` and `azurite-blob`
(`npm install -g s3rver azurite`), `fake-gcs-server` (`go install github.com/fsouza/fake-gcs-server@latest`). HDFS is a name node and a data node of
Hadoop's own: `HADOOP_LIBS` names the directory into which `mvn dependency:copy-dependencies` of a project put `org.apache.hadoop:hadoop-client-runtime` and
`hadoop-client-minicluster` (3.4.1); pyarrow's client needs `libhdfs.so`, else `pip install hdfs-native fsspec` does.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.fs
import pytest

from kforensics.cli.app import run
from kforensics.commands.comparing import compare
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.fleet.storage import StoragePath, parse_location
from tests.builders.cases import case_of

pytestmark = [pytest.mark.slow, pytest.mark.spark]

SECRET = b64encode(b"a secret key that nothing may show").decode()


@dataclass(frozen=True)
class Server:
    """A program that answers as a storage does."""

    program: str
    arguments: Callable[[int, Path], list[str]]
    root: str | Callable[[int], str]
    options: Callable[[int], dict[str, str]]
    environment: dict[str, str]
    secret: str = SECRET
    is_up: Callable[[Path], bool] = lambda _: True

    def root_at(self, port: int) -> str:
        return self.root if isinstance(self.root, str) else self.root(port)


def _s3(port: int, key: str = SECRET) -> dict[str, str]:
    return {
        "region": "us-east-1",
        "scheme": "http",
        "endpoint_override": f"127.0.0.1:{port}",
        "access_key": "S3RVER",
        "secret_key": key,
        "allow_bucket_creation": "true",
    }


def _azure(port: int) -> dict[str, str]:
    place = f"127.0.0.1:{port}"
    return {
        "account_name": "account",
        "account_key": SECRET,
        **{
            f"{kind}_storage_{name}": value
            for kind in ("blob", "dfs")
            for name, value in (("authority", place), ("scheme", "http"))
        },
    }


SERVERS = {
    "moto": Server(
        program="moto_server",
        arguments=lambda port, _: ["-H", "127.0.0.1", "-p", str(port)],
        root="s3a://copies",
        options=_s3,
        environment={},
    ),
    "s3rver": Server(
        program="s3rver",
        # It knows one pair of keys.
        arguments=lambda port, folder: ["-d", str(folder), "-a", "127.0.0.1", "-p", str(port)],
        root="s3://copies",
        options=lambda port: _s3(port, "S3RVER"),
        # It makes tokens with a cipher that newer versions of Node.js keep for old programs.
        environment={"NODE_OPTIONS": "--openssl-legacy-provider"},
        secret="secret_key",
    ),
    "azurite": Server(
        program="azurite-blob",
        arguments=lambda port, folder: ["-s", "-l", str(folder), "--blobPort", str(port), "--skipApiVersionCheck"],
        root="abfss://copies@account.dfs.core.windows.net",
        options=_azure,
        environment={"AZURITE_ACCOUNTS": f"account:{SECRET}"},
    ),
    "fake-gcs": Server(
        program="fake-gcs-server",
        arguments=lambda port, _: ["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)],
        root="gs://copies",
        options=lambda port: {
            "endpoint_override": f"127.0.0.1:{port}",
            "scheme": "http",
            "access_token": SECRET,
            "project_id": "project",
        },
        environment={},
    ),
    "hdfs": Server(
        program="java",
        arguments=lambda port, folder: [
            *("-cp", f"{os.environ['HADOOP_LIBS']}/*", "org.apache.hadoop.test.MiniDFSClusterManager", "-format"),
            *("-datanodes", "1", "-nnport", str(port), "-writeDetails", str(folder / "details")),
            *("-D", f"hdfs.minidfs.basedir={folder}"),
        ],
        root=lambda port: f"hdfs://127.0.0.1:{port}/copies",
        options=lambda _: {"replication": "1"},
        environment={},
        is_up=lambda folder: (folder / "details").exists(),
    ),
}


@pytest.fixture(scope="session")
def environment() -> Iterator[None]:
    """What the workers of Spark take over: they are forked by a session that starts after this."""
    # Some servers keep bodies with the chunks of checksums behind them.
    given = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}
    before = dict(os.environ)
    os.environ.update(given)
    yield
    os.environ.clear()
    os.environ.update(before)


@contextmanager
def running(server: Server, folder: Path) -> Iterator[int]:
    """The port at which a server answers, as long as it is needed."""
    program = shutil.which(server.program)
    if program is None or (server.program == "java" and "HADOOP_LIBS" not in os.environ):
        pytest.skip(f"{server.program} is not installed, or HADOOP_LIBS not set")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    folder.mkdir()
    with (folder.parent / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *server.arguments(port, folder)],
            env={**os.environ, **server.environment},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 120
        while not (_answers(port) and server.is_up(folder)):
            assert process.poll() is None, (folder.parent / "server.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def put(filesystem: Any, below: str, place: Path) -> None:
    """Write a directory to storage, files alone: objects have no directories."""
    for folder, _, names in os.walk(place):
        for name in names:
            source = Path(folder, name)
            with filesystem.open_output_stream(f"{below}/{source.relative_to(place)}", compression=None) as stream:
                stream.write(source.read_bytes())


@pytest.mark.parametrize("name", SERVERS)
def test_a_fleet_on_a_server_of_storage(name, environment, spark, incident, plain, tmp_path, capsys):
    server = SERVERS[name]
    snapshot = incident("unclean-election-4.x") / "snapshots" / "03-old-leader-down-live"
    nodes = sorted(one for one in snapshot.iterdir() if one.is_dir())
    captures = tmp_path / "captures"
    captures.mkdir()
    for node in nodes:
        assert 0 == run(["capture", str(node), "-o", str(captures / f"{node.name}.kfc")])
    expected = compare(case_of(find_inputs([snapshot], with_server_logs=True)))
    capsys.readouterr()

    with running(server, tmp_path / "served") as port:
        options = server.options(port)
        place = server.root_at(port)
        root = parse_location(place, options)
        assert isinstance(root, StoragePath)
        filesystem, bucket = root.place()
        filesystem.create_dir(bucket)
        put(filesystem, f"{bucket}/fleet", snapshot)
        put(filesystem, f"{bucket}/captures", captures)
        given = [word for one, value in options.items() for word in ("--storage-option", f"{one}={value}")]
        shown = []

        def call(*words: str) -> tuple[int, str]:
            code = run(["fleet", *words, *given])
            out, errors = capsys.readouterr()
            shown.append(out + errors)
            return code, out

        history, page = f"{place}/history", tmp_path / "page.html"
        of_files = [f"{place}/fleet/{pattern}" for pattern in ("broker-*", "controller-100")]
        more = ("--format", "json", "--metrics", str(tmp_path / "metrics.prom"))
        first = call("audit", *of_files, "--history", history, "--audit-id", "one", *more)
        again = call("audit", *of_files, "--history", history, "--audit-id", "two", *more)
        repeated = call("audit", *of_files, "--history", history, "--audit-id", "two", *more)
        captured = call("audit", f"{place}/captures", "--out", f"{place}/of-captures", *more)
        report = call("report", history, "--since", "previous", "--format", "json")
        call("report", history, "--format", "html", "-o", str(page))
        trend = call("trend", history, "--format", "json")
        refused = call("audit", *of_files, "--out", f"{place}/of-captures")
        missing = call("audit", f"{place}/no-such-broker", "--out", f"{place}/nothing")
        objects = {
            one.path: filesystem.open_input_stream(one.path, compression=None).read()
            for one in filesystem.get_file_info(pyarrow.fs.FileSelector(bucket, recursive=True))
            if one.is_file and "/fleet/" not in one.path and "/captures/" not in one.path
        }

    assert [1, 1, 1, 1] == [code for code, _ in (first, again, repeated, captured)], [one[-900:] for one in shown[:4]]
    found = [json.loads(text) for _, text in (first, again, repeated, captured)]
    for document in found:
        assert sorted(one.statement for one in expected.findings) == sorted(
            one["statement"] for one in document["findings"] if not one["code"].startswith("KF4")
        )
        assert [] == document["problems"]
    assert [True, False, False] == [document["read_bytes"] > 0 for document in found[:3]]
    assert "two" == found[2]["audit_id"]
    assert 0 == report[0]
    assert {"unchanged"} == {one["change"] for one in json.loads(report[1])["changes"]} or not json.loads(report[1])[
        "changes"
    ]
    assert ["one", "two"] == [one["audit_id"] for one in json.loads(trend[1])["audits"]]
    assert [2, 3] == [refused[0], missing[0]]
    written = [one.read_bytes() for one in (page, tmp_path / "metrics.prom")]
    assert any("/history/" in one for one in objects)
    assert not [one for one in (*map(str.encode, shown), *written, *objects.values()) if server.secret.encode() in one]
    assert not [one for one in objects if "_work" in one or "_lock" in one]
