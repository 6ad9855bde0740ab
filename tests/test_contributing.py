"""The examples in CONTRIBUTING.md, followed to the letter in a copy of the package."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.builders.directories import log_dir
from tests.conftest import FIXTURES, ROOT

MOST_MODULES = 3
SECTIONS = re.findall(
    r"^### (.+?)\n(.*?)(?=^##)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
)
_STEP = re.compile(
    r"^(?:New `(?P<new>\S+)`|In `(?P<path>\S+)`, below `(?P<anchor>.+?)`):\n\n```diff\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

pytestmark = pytest.mark.process


class Step(NamedTuple):
    """One block of code: a new file, or lines below a line of one that is there."""

    path: str
    anchor: str | None
    code: str


def _added(block: str) -> str:
    assert all(line.startswith("+") for line in block.splitlines())
    return "".join(f"{line[1:]}\n" for line in block.splitlines())


def steps_of(text: str) -> list[Step]:
    return [
        Step(found["new"] or found["path"], found["anchor"], _added(found["code"])) for found in _STEP.finditer(text)
    ]


EXAMPLES = {title: steps for title, text in SECTIONS if (steps := steps_of(text))}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with all examples in it."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "kforensics", root / "kforensics", ignore=shutil.ignore_patterns("__pycache__"))
    for step in (step for steps in EXAMPLES.values() for step in steps):
        target = root / step.path
        if step.anchor is None:
            assert not target.exists()
            target.write_text(step.code, encoding="utf-8")
            continue
        text = target.read_text(encoding="utf-8")
        assert text.count(f"{step.anchor}\n") == 1, step
        target.write_text(text.replace(f"{step.anchor}\n", f"{step.anchor}\n{step.code}"), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """A broker's directory with what the examples know."""
    root = tmp_path_factory.mktemp("nodes")
    broker = log_dir(root / "broker-1")
    (broker / "orders-0" / f"{0:020d}.log").write_bytes(b"")
    (broker / "orders-0" / "replica-notes").write_text("42\n")
    logs = root / "logs" / "broker-1"
    logs.mkdir(parents=True)
    (logs / "server.log").write_text("[2024-05-01 12:00:00,000] WARN Disk nearly full: /disk-a (kafka.server.Disks)\n")
    return root


@pytest.fixture
def tool(package):
    def call(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(package), "COLUMNS": "200"}
        done = subprocess.run(
            [sys.executable, "-m", "kforensics", *map(str, arguments)],
            cwd=package,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in {0, 1, 3}, done.stderr
        return done.stdout

    return call


def test_every_example_touches_few_modules():
    touched = {title: {step.path for step in steps} for title, steps in EXAMPLES.items()}

    assert list(touched) == [
        "A format",
        "A log line",
        "A known bug",
        "An output format",
        "A finding",
        "An option",
        "A protocol version",
        "A command",
        "A field of a metadata record",
    ]
    assert {title: paths for title, paths in touched.items() if len(paths) > MOST_MODULES} == {}


def test_a_format_is_listed_printed_and_checked(tool, node):
    listed = json.loads(tool("ls", node / "broker-1", "--files", "--format", "json"))
    dumped = json.loads(tool("dump", node / "broker-1" / "orders-0" / "replica-notes", "--format", "json"))
    sound = json.loads(tool("verify", node / "broker-1", "--format", "json"))
    (node / "broker-1" / "orders-0" / "replica-notes").write_text("no number\n")
    damaged = json.loads(tool("verify", node / "broker-1", "--format", "json"))

    assert {one["kind"] for one in listed["files"] if one["path"].endswith("notes")} == {"replica-notes"}
    assert listed["unknown_files"] == []
    assert [one["offset"] for one in dumped["entries"]] == [42]
    assert [one["state"] for one in sound["files"] if one["kind"] == "replica-notes"] == ["intact"]
    assert [one["state"] for one in damaged["files"] if one["kind"] == "replica-notes"] == ["damaged"]
    assert "KF108" in {one["code"] for one in damaged["findings"]}


@pytest.mark.slow
def test_a_log_line_is_an_event_with_words(tool, node):
    paths = (node / "broker-1", node / "logs")
    (event,) = json.loads(tool("explain", *paths, "--format", "json"))["timeline"]

    assert (event["event"], event["detail"], event["quiet"]) == ("disk-nearly-full", {"directory": "/disk-a"}, False)
    assert "has little room left in /disk-a" in tool("explain", *paths, "-v")


@pytest.mark.slow
def test_a_known_bug_is_named_where_its_trace_is(tool):
    document = json.loads(tool("explain", FIXTURES / "unclean-election", "--format", "json"))

    assert "KAFKA-99999" in json.dumps(document["partitions"])


@pytest.mark.slow
def test_a_format_of_output_is_offered_and_written_by_all_commands(tool, node):
    assert "| orders-0 ||" in tool("ls", node / "broker-1", "--format", "wiki")
    assert "wiki for a wiki" in " ".join(tool("ls", "--help").split())
    for command in (
        ("diff", node / "broker-1"),
        ("explain", node / "broker-1"),
        ("verify", node / "broker-1"),
        ("simulate", "hw-loss"),
    ):
        assert tool(*command, "--format", "wiki").startswith("= ")


def test_a_finding_appears_with_its_meaning(tool, node):
    (found,) = json.loads(tool("ls", node / "broker-1", "--format", "json"))["findings"]

    assert (found["code"], found["statement"]) == ("KF599", "orders-0 has no high watermark")
    assert found["advice"] == "Look at the other replicas."


def printed(code, package):
    """What code prints that uses the library with the examples in it."""
    environment = os.environ | {"PYTHONPATH": str(package)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_an_option_is_taken_by_the_command_line_and_by_the_function(tool, node, package):
    listed = json.loads(tool("ls", node / "broker-1", "--only-topic", "payments", "--format", "json"))
    code = f"import kforensics; print(len(kforensics.ls({str(node)!r}, only_topic='orders').body.inventory.partitions))"

    assert [] == listed["partitions"]
    assert "1" == printed(code, package)
    assert "List this topic alone." in " ".join(tool("ls", "--help").split())


@pytest.mark.slow
def test_a_command_is_asked_everywhere_of_three_modules(tool, node, package):
    listed = json.loads(tool("count", node / "broker-1", "--format", "json"))
    code = f"import kforensics; print(kforensics.count({str(node)!r}).to_dict()['by_topic'], 'count' in kforensics.__all__)"
    schema = "from kforensics.render.json.schemas import schemas; print(schemas()['count']['properties']['by_topic'])"

    assert (listed["schema"], listed["by_topic"]) == ("kforensics/count/2", {"orders": 1})
    assert listed["answer"]["state"] == "complete"
    assert "{'orders': 1} True" == printed(code, package)
    assert "'type': 'integer'" in printed(schema, package)
    assert "orders: 1 directory" in tool("count", node / "broker-1")
    assert tool("count", node / "broker-1", "--format", "html").startswith("<!doctype html>")
    assert "Count the partitions of each topic" in " ".join(tool("count", "--help").split())
    assert "kforensics count evidence" in tool("count", "-h")
    assert "count: unknown 3, complete 0" in tool("help", "exit-codes")
    assert "  count  " in tool("help", "formats")


def test_the_examples_fit_the_style_of_the_package(package):
    steps = defaultdict(list)
    for one in (step for example in EXAMPLES.values() for step in example):
        steps[one.path].append(one)
    done = subprocess.run(
        [
            "ruff",
            "check",
            "--config",
            str(ROOT / "pyproject.toml"),
            "--no-cache",
            *sorted(path for path in steps if path.endswith(".py")),
        ],
        executable=str(Path(sys.executable).parent / "ruff"),
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_protocol_is_taken_and_is_possible_for_brokers_of_today(tool):
    def protocols(*arguments):
        document = json.loads(tool("diff", FIXTURES / "unclean-election", *arguments, "--format", "json"))
        return {str(one["protocol"]) for partition in document["partitions"] for one in partition["replicas"]}

    assert "kip-9999" in protocols("--protocol", "kip-9999")
    assert "kip-9999" in protocols()  # the newest is assumed, and held against the one before


@pytest.mark.slow
def test_a_field_of_a_metadata_record_is_decoded_and_seen(tool, package, tmp_path):
    code = (
        "import sys; from pathlib import Path; from tests.builders.metadata_logs import *;"
        "value = metadata_record('RegisterBrokerRecord', {'broker_id': 1, 'site': 'Oslo'});"
        "metadata_log(Path(sys.argv[1]), metadata_batch(0, [value]))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(package), str(ROOT)))}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=package, env=environment, check=True)

    document = json.loads(tool("metadata", tmp_path, "--format", "json"))

    assert [one["site"] for one in document["state"]["brokers"]] == ["Oslo"]
    assert "Oslo" in tool("dump", tmp_path, "--records")
