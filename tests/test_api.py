import ast
import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kforensics
from kforensics.ask.commands import COMMANDS, FUNCTIONS
from kforensics.ask.questions import each_path, options_of
from kforensics.cli.app import run
from kforensics.commands.result import Result
from kforensics.errors import EvidenceNotFound, UsageError
from tests.builders.directories import copied


def test_diff_gives_what_the_command_prints(fixtures):
    result = kforensics.diff(fixtures / "unclean-election", jobs=1)

    assert () == result.problems
    assert {"KF201"} == {finding.code for finding in result.findings if finding.severity == "critical"}
    assert 7 == len(result.body.partitions) == len(result.body.reports)


def test_verify_finds_nothing_in_a_clean_node(fixtures):
    result = kforensics.verify(fixtures / "unclean-election" / "broker-2", jobs=1)

    assert () == tuple(result.problems)
    assert not [report for report in result.body.files if report.state in {"damaged", "unreadable"}]


def test_explain_tells_of_the_loss(fixtures):
    result = kforensics.explain(fixtures / "unclean-election", jobs=1)

    assert result.body.conclusion[0].startswith("56 records that were committed")


def test_each_function_answers_as_the_command_prints(fixtures, tmp_path, capsys):
    node = fixtures / "unclean-election" / "broker-2"
    manifest = tmp_path / "manifest.jsonl"
    sealed = kforensics.seal(node, jobs=1)
    manifest.write_text(sealed.body.listed)
    results: dict[str, Result[Any]] = {
        "ls": kforensics.ls(node),
        "dump": kforensics.dump(node),
        "metadata": kforensics.metadata(node),
        "verify": kforensics.verify(node, jobs=1),
        f"seal --check {manifest}": kforensics.seal(node, check=manifest, jobs=1),
    }

    assert sealed.answer is not None
    assert ("complete", 0) == (sealed.answer.state, sealed.exit_code)
    for command, result in results.items():
        code = run([*command.split(), str(node), "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        assert (code, document["exit_code"]) == (result.exit_code, result.exit_code)
        assert result.answer is not None
        assert (document["answer"]["state"], document["answer"]["headline"]) == (
            result.answer.state,
            result.answer.headline,
        )


def test_content_can_be_read_again(fixtures):
    result = kforensics.dump(fixtures / "unclean-election" / "broker-2" / "orders-0", records=True)
    first = [len(list(file.items())) for file in result.body.files()]

    assert sum(first) > 100
    assert first == [len(list(file.items())) for file in result.body.files()]
    assert result.answer is not None
    assert "complete" == result.answer.state


def test_nothing_there_is_an_error(tmp_path):
    with pytest.raises(EvidenceNotFound):
        kforensics.diff(tmp_path / "missing")
    with pytest.raises(UsageError, match="kip-1"):
        kforensics.diff(tmp_path, protocol="kip-1")


def test_verify_gives_the_findings_of_the_command(fixtures, tmp_path, capsys):
    node = tmp_path / "broker-2"
    copied(fixtures / "unclean-election" / "broker-2", node)
    log = node / "orders-0" / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[200] ^= 1
    log.write_bytes(data)
    code = run(["verify", str(node), "--format", "json"])
    printed = json.loads(capsys.readouterr().out)["findings"]
    result = kforensics.verify(node, jobs=1)

    assert 1 == code
    assert [finding["code"] for finding in printed] == [finding.code for finding in result.findings]
    assert [finding["statement"] for finding in printed] == [finding.statement for finding in result.findings]
    assert "KF101" in {finding.code for finding in result.findings}


def test_paths_may_be_given_in_a_list(fixtures):
    nodes = [fixtures / "unclean-election" / "broker-2" / "orders-0", str(fixtures / "unclean-election" / "broker-3")]

    assert kforensics.verify(nodes, jobs=1).body.files == kforensics.verify(*nodes, jobs=1).body.files
    assert len(kforensics.diff(nodes, jobs=1).inputs) == 2
    assert [] == each_path(())
    assert [Path("a"), Path("b"), Path("c")] == each_path(("a", [Path("b"), "c"]))
    assert [Path("snapshot")] == each_path(("snapshot",))


def test_what_is_no_path_is_a_clear_error(tmp_path):
    wrong: tuple[Any, ...] = (b"/var/lib/kafka", 7, [7], [b"x"], None, [["a"]])
    for given in wrong:
        with pytest.raises(TypeError, match="a path is a str or os"):
            kforensics.diff(given)
    for command in (kforensics.diff, kforensics.verify, kforensics.explain):
        with pytest.raises(ValueError, match="no path is given"):
            command()
        with pytest.raises(ValueError, match="no path is given"):
            command([])
    with pytest.raises(TypeError, match="not int"):
        kforensics.explain(tmp_path, before=wrong[1])


def test_only_what_is_promised_is_listed():
    functions = {name for name in dir(kforensics) if name.islower() and name != "__version__"}

    assert {*FUNCTIONS} == functions == {name for name in COMMANDS if not name.startswith("fleet-")}
    assert all(issubclass(getattr(kforensics, name), Exception) for name in dir(kforensics) if name[0].isupper())
    with pytest.raises(AttributeError):
        getattr(kforensics, "nothing")  # noqa: B009 - mypy knows what there is


def test_importing_loads_nothing_heavy():
    code = "import sys, kforensics; print([m for m in ('numpy', 'rich', 'typer', 'construct', 'pyspark') if m in sys.modules])"

    assert "[]\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_what_the_examples_in_the_docs_import_is_there():
    root = Path(__file__).parents[1]
    blocks = {
        (page.name, block)
        for page in [root / "README.md", *(root / "docs").rglob("*.md")]
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    }
    assert len(blocks) > 1
    for page, block in sorted(blocks):
        imports: list[ast.stmt] = [
            node for node in ast.walk(ast.parse(block)) if isinstance(node, (ast.Import, ast.ImportFrom))
        ]
        exec(compile(ast.Module(body=imports, type_ignores=[]), page, "exec"), {})


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ls", {"depth": "content"}),
    ("verify", {"level": "crc", "jobs": 1}),
    ("diff", {"topics": "orders", "replicas": [1, 2, 3], "depth": "tails"}),
    ("explain", {"topics": ["orders"], "partitions": 0, "since": "2026-11-21"}),
    ("predict", {"kafka": "4.1.0", "now": "2026-12-01T00:00:00Z", "set": ["log.retention.ms=-1"]}),
    ("trace", {"topics": "orders", "offset": 60}),
    ("groups", {}),
    ("transactions", {"all": True}),
    ("metadata", {"topics": "orders", "partitions": 0, "at": 60}),
)


@pytest.mark.parametrize(("name", "options"), CALLS)
@pytest.mark.some(3)
def test_a_function_gives_the_document_of_its_command(name, options, fixtures, capsys):
    tree = fixtures / "unclean-election"
    words = [word for one in options_of(name) if one.name in options for word in _words(one, options[one.name])]
    code = run([name, str(tree), *words, "--format", "json"])
    printed = json.loads(capsys.readouterr().out)
    result = getattr(kforensics, name)(tree, **options)

    assert code == result.exit_code == printed["exit_code"]
    assert printed == {**result.to_dict(), "inputs": printed["inputs"]}
    assert printed["answer"]["headline"][:60] in repr(result)
    assert len(repr(result)) < 400
    assert html.escape(printed["answer"]["headline"]) in result._repr_html_()


def _words(one, value):
    if value is True:
        return one.option.flags[:1]
    if one.name == "replicas":
        return ("--replicas", ",".join(map(str, value)))
    return [
        word for each in (value if isinstance(value, list) else [value]) for word in (one.option.flags[0], str(each))
    ]


def test_a_string_is_one_topic_and_not_its_letters(fixtures):
    tree = fixtures / "unclean-election"

    assert {"orders"} == {one.partition.topic for one in kforensics.diff(tree, topics="orders", jobs=1).body.partitions}
    with pytest.raises(UsageError, match="topic order"):
        kforensics.diff(tree, topics="order", jobs=1)


def test_options_that_are_not_there_or_of_another_type_are_named(fixtures):
    tree = fixtures / "unclean-election"
    for given, words in (
        ({"topic": "orders"}, "did you mean topics"),
        ({"leader": "2"}, "of type int"),
        ({"jobs": True}, "int"),
    ):
        with pytest.raises(TypeError, match=words):
            kforensics.diff(tree, **given)
    with pytest.raises(UsageError, match="--show-payload needs --show-records"):
        kforensics.diff(tree, show_payload=True)
    with pytest.raises(UsageError, match="out of range"):
        kforensics.diff(tree, jobs=0)
    with pytest.raises(UsageError, match="--depth is one of tails, content, not half"):
        kforensics.diff(tree, depth="half")


def test_settings_are_given_as_a_mapping_or_as_words(fixtures):
    node = fixtures / "unclean-election" / "broker-1"
    by_words, by_names, without = (
        kforensics.predict(node, kafka="4.3", now=4_000_000_000_000, jobs=1, **given).to_dict()["answer"]
        for given in ({"set": "log.retention.ms=-1"}, {"set": {"log.retention.ms": "-1"}}, {})
    )
    assert by_words == by_names
    assert by_names != without


def test_a_manifest_and_its_check_say_the_same_each_time(fixtures, tmp_path):
    tree = fixtures / "unclean-election"
    sealed = kforensics.seal(tree / "broker-1" / "orders-0")
    (tmp_path / "manifest").write_text(sealed.body.listed)
    checked = kforensics.seal(tree / "broker-2" / "orders-0", check=tmp_path / "manifest")

    assert sealed.to_dict() == sealed.to_dict()
    assert "changed" in repr(checked)
    assert checked.to_dict()["differences"] == checked.to_dict()["differences"] != []


def test_rows_are_tables_in_which_what_is_absent_is_null(fixtures):
    tree = fixtures / "unclean-election"
    compared = kforensics.diff(tree, jobs=1)
    document = compared.to_dict()

    for kind in ("partitions", "findings"):
        table = compared.to_arrow(kind)
        assert len(document[kind]) == table.num_rows > 0
    assert [one["state"] for one in document["partitions"]] == compared.to_arrow("partitions")["state"].to_pylist()
    sealed = kforensics.seal(tree / "broker-1" / "orders-0")
    assert 0 < sealed.to_arrow("entries").num_rows
    for result in (compared, sealed, kforensics.dump(tree / "broker-1" / "orders-0")):
        with pytest.raises(ValueError, match="no rows 'nothing'; there are"):
            result.to_arrow("nothing")


@pytest.mark.parametrize("name", ["record", "records"])
def test_records_are_rows(name, fixtures):
    records = kforensics.dump(fixtures / "unclean-election" / "broker-1" / "orders-0", records=True).to_arrow(name)

    assert 103 == records.num_rows
    assert [*range(103)] == records["offset"].to_pylist()
    assert "key" not in records.schema.names  # payloads are shown where they are asked for alone


def test_batches_are_rows_with_numbers_or_null(fixtures):
    batches = kforensics.dump(fixtures / "unclean-election" / "broker-1" / "orders-0").to_arrow("batches")

    assert [0] == batches["base_offset"].to_pylist()[:1]
    assert ["int64", "int64", "null"] == [
        str(batches.schema.field(name).type) for name in ("base_offset", "partition_leader_epoch", "delete_horizon_ms")
    ]


def test_statements_are_the_findings(fixtures):
    compared = kforensics.diff(fixtures / "unclean-election", jobs=1)

    assert compared.to_arrow("findings") == compared.to_arrow("statements")
    assert {"KF201"} <= {*compared.to_arrow("statements")["code"].to_pylist()}


def test_leader_epochs_are_rows(fixtures):
    tree = fixtures / "unclean-election"
    epochs = kforensics.diff(tree, topics="orders", partitions=0, jobs=1).to_arrow("epochs").to_pylist()
    of_leader = [one for one in epochs if one["broker_id"] == 2]

    assert {("orders", 0)} == {(one["topic"], one["partition"]) for one in epochs}
    assert {(0, 0), (1, 60)} <= {(one["leader_epoch"], one["start_offset"]) for one in of_leader}
    assert {"batches", "checkpoint"} == {one["source"] for one in of_leader}
    assert {100} <= {*kforensics.metadata(tree).to_arrow("epochs")["node_id"].to_pylist()}


@pytest.mark.parametrize("name", ["explain", "metadata"])
def test_events_are_rows(name, fixtures):
    result = getattr(kforensics, name)(fixtures / "unclean-election")
    events = result.to_arrow("events")
    document = result.to_dict()

    assert [one["event"] for one in document.get("timeline", document.get("events"))] == events["event"].to_pylist()
    assert "unclean-election" in events["event"].to_pylist()
    assert str(events.schema.field("time_ms").type) == "int64"


def test_records_are_saved_and_evidence_is_taken_by_functions(fixtures, tmp_path):
    tree = fixtures / "unclean-election"
    saved = kforensics.salvage(tree, out=tmp_path / "out", what="at-risk", jobs=1)
    taken = kforensics.capture(tree / "broker-1", out=tmp_path / "broker-1.kfc", normal_priority=True)

    assert saved.to_dict()["exit_code"] == saved.exit_code
    assert (tmp_path / "out" / "manifest.json").is_file()
    assert ("complete", 0) == (taken.answer.state, taken.exit_code)
    assert "lost" == kforensics.simulate("hw-loss", protocol="hw").answer.state
    with pytest.raises(kforensics.UsageError, match="--seed needs --random"):
        kforensics.simulate("hw-loss", seed=3)
    with pytest.raises(UsageError, match="-o OUT is needed"):
        kforensics.salvage(tree)
