"""The schemas that are shipped: each is one, says what the code says, and refuses what is not promised."""

import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from copy import deepcopy
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import kforensics
from kforensics import schema
from kforensics.ask.commands import FUNCTIONS as COMMANDS
from kforensics.cli.app import run
from kforensics.cli.fleet import fleet
from kforensics.damage import Absent
from kforensics.errors import EvidenceNotFound
from kforensics.evidence import record_lines
from kforensics.evidence.event_kinds import EventKind
from kforensics.render.json import document
from kforensics.render.json.document import refusal_document
from kforensics.render.json.schemas import REASONS, schemas
from kforensics.render.view import View
from tests.builders.directories import copied
from tests.conftest import ROOT
from tests.schemas import SchemaMismatch, accepts, registry, validate, validate_lines, validator

DOCUMENTS = tuple(name for name in schema.names() if name != "refusal" and not name.endswith("-line"))

# Fields that are there only sometimes.
OPTIONAL = frozenset(
    {
        *(
            "scenario",
            "scenarios",
            "protocols",
            "written",
            "model",
            "size",
            "complete",
            "distinct_states",
            "violation",
            "protocol",
            "outcome",
            "steps",
            "records",
            "absent",
            "answer",
            "depth",
            "erasure",
            "state",
            "seal",
            "files",
            "file",
            "problem",
            "ways_out",
            "order",
        ),
        *("key", "value", "headers", "control", "decoded", "api_key", "reason", "trailing_bytes", "commits"),
    }
)
FLIP = frozenset({"position", "bit", "found", "expected"})
"""Of a cause, only with a flipped bit."""

OPEN = frozenset({"absent", "detail", "fields", "properties", "features", "logs", "verdicts", "findings_by_code"})
"""Objects whose keys are names of the evidence, or which differ by kind."""


@pytest.mark.slow
def test_every_schema_is_one_and_all_references_lead_somewhere():
    for name in schema.names():
        one = schema.load(name)
        Draft202012Validator.check_schema(one)
        assert ("https://json-schema.org/draft/2020-12/schema", f"{name}.json") == (one["$schema"], one["$id"])
        resolver = registry().resolver(f"{name}.json")
        references = [value for key, value in _pairs(one) if key == "$ref"]
        assert all(isinstance(resolver.lookup(reference).contents, dict) for reference in references)
        with pytest.raises(LookupError, match="no schema"):
            schema.load(f"../schema/{name}")


def test_every_definition_is_used():
    for name in schema.names():
        one = schema.load(name)
        used = {reference.rpartition("/")[2] for key, reference in _pairs(one) if key == "$ref" and "#" in reference}
        assert {*one.get("$defs", ())} == used, name


def test_the_schemas_are_those_of_what_is_written():
    """A field, a member of an enumeration or a type that changes changes the schema, which is generated."""
    made = schemas()

    assert {*schema.names()} == {*made}
    assert [name for name in made if schema.load(name) != made[name]] == []
    kinds = made["explain"]["$defs"]["event-kind"]["enum"]
    assert [*EventKind] == kinds
    assert {"not-written", "unreadable", "unknown"} == {*Absent} - {Absent.NOT_APPLICABLE} == {*REASONS}


def test_a_reason_is_said_only_of_a_field_that_can_be_null():
    (loss,) = (one for one in schemas()["explain"]["$defs"].items() if one[0] == "loss-entry" or one[0] == "loss")

    assert "leader_epoch" in loss[1]["properties"]["absent"]["propertyNames"]["enum"]
    assert "records" not in loss[1]["properties"]["absent"]["propertyNames"]["enum"]


def test_every_command_has_one():
    commands = set(COMMANDS)
    audits = {
        f"fleet-{command.callback.__name__}"
        for command in fleet.registered_commands
        if command.callback and not command.name
    }

    assert set(DOCUMENTS) == commands | audits | {"seal-check", "fleet-comparison"}
    assert {f"kforensics/{name}/2" for name in DOCUMENTS} == {_told_schema(name) for name in DOCUMENTS}
    assert {f"{name}-line" for name in DOCUMENTS} == set(schema.names()) - set(DOCUMENTS) - {"refusal"}


def test_every_list_of_objects_is_lines():
    """Of a document without lines of its own: a new list has a type of its lines in the table."""
    for name, one in schemas().items():
        result = one.get("properties", {}).get("type", {}).get("enum", ())
        if "result" in result:
            (rest,) = (rule["then"] for rule in one["allOf"] if rule["if"]["properties"]["type"]["const"] == "result")
            lists = [field for field, told in rest["properties"].items() if _is_of_objects(told, one["$defs"])]
            assert lists == [], name


def _is_of_objects(told: Any, definitions: Any) -> bool:
    item = told.get("items") or {}
    item = definitions[item["$ref"].rpartition("/")[2]] if str(item.get("$ref", "")).startswith("#") else item
    return item.get("type") == "object" or any(_is_of_objects(one, definitions) for one in told.get("anyOf", ()))


def test_the_documentation_links_each():
    text = (ROOT / "docs" / "json.md").read_text()

    linked = re.findall(r"\]\(\.\./kforensics/schema/([a-z-]+)\.json\)", text)
    assert sorted(linked) == sorted(schema.names())


@pytest.fixture(scope="module")
def samples(tmp_path_factory, incident):
    """By schema, documents and lines that commands printed, each list in them cut to one element of each form."""
    tree, folder = ROOT / "fixtures" / "unclean-election", tmp_path_factory.mktemp("samples")
    damaged = folder / "damaged" / "orders-0"
    damaged.mkdir(parents=True)
    content = bytearray((tree / "broker-2" / "orders-0" / "00000000000000000000.log").read_bytes())
    content[200] ^= 8
    (damaged / "00000000000000000000.log").write_bytes(content)
    found: dict[str, list[Any]] = {}
    both = (
        ["ls", "--files", str(tree)],
        ["diff", str(tree)],
        ["explain", str(tree)],
        ["verify", str(tree), str(damaged)],
        ["metadata", str(tree)],
        ["dump", str(tree / "broker-1"), str(damaged)],
    )
    for name, *rest in both:
        for kind in ("json", "jsonl"):
            out = folder / f"{name}.{kind}"
            assert run([name, *rest, "--format", kind, "--out", str(out)]) in {0, 1}
            if kind == "json":
                found[name] = [_thinned(json.loads(out.read_text()))]
            else:
                found[f"{name}-line"] = _thinned([json.loads(line) for line in out.read_text().splitlines()])
    replaced = incident("disk-replaced-4.x") / "snapshots"
    earlier = ["--before", str(replaced / "01-before-live")]
    for number, rest in enumerate(([str(tree)], [str(replaced / "99-final"), *earlier])):
        out = folder / f"triage-{number}.json"
        assert run(["triage", *rest, "--format", "json", "--out", str(out)]) == 1
        found.setdefault("triage", []).append(_thinned(json.loads(out.read_text())))
    logs = incident("disk-replaced-4.x") / "logs"
    for number, rest in enumerate(([str(logs)], ["--line", "Fencing broker 2 because it is late."])):
        out = folder / f"logs-{number}.json"
        assert run(["logs", *rest, "--format", "json", "--out", str(out)]) in {0, 1}
        found.setdefault("logs", []).append(_thinned(json.loads(out.read_text())))
    records = folder / "records.jsonl"
    arguments = ["dump", "--records", "--show-payload", str(tree / "controller-100"), str(tree / "broker-1")]
    assert run([*arguments, "--format", "jsonl", "--out", str(records)]) == 0
    found["dump-line"] += _thinned([json.loads(line) for line in records.read_text().splitlines()])
    seal = folder / "seal.json"
    assert run(["seal", str(damaged), "--out", str(seal)]) == 0
    found["seal"] = [_thinned(json.loads(seal.read_text()))]
    (damaged / "more").touch()
    assert run(["seal", "--check", str(seal), "--format", "json", "--out", str(folder / "check.json")]) == 1
    found["seal-check"] = [_thinned(json.loads((folder / "check.json").read_text()))]
    found["capture"] = []
    for at, arguments in enumerate((["--out", str(folder / "node.kfc")], ["--plan"])):
        printed = io.StringIO()
        with redirect_stdout(printed):
            assert run(["capture", str(damaged), *arguments, "--normal-priority", "--format", "json"]) == 0
        found["capture"].append(_thinned(json.loads(printed.getvalue())))
        assert (found["capture"][at]["capture"] is not None) is (at == 0)
    found["predict"] = []
    failing = folder / "failing"
    copied(tree, failing)
    with (failing / "broker-1" / "orders-0" / "00000000000000000000.log").open("ab") as log:
        log.write(bytes(100))
    (failing / "broker-1" / ".kafka_cleanshutdown").touch()
    changed = failing / "broker-2" / "orders-1" / "00000000000000000000.log"
    content = bytearray(changed.read_bytes())
    content[9000] ^= 4
    changed.write_bytes(content)
    out = folder / "predict.json"
    assert run(["predict", str(failing), "--kafka", "4.1.0", "--format", "json", "--out", str(out)]) == 1
    found["predict"].append(_thinned(json.loads(out.read_text())))
    ahead = incident("consumer-ahead-4.x") / "snapshots"
    for name, *rest in (
        ["groups", str(ahead / "99-final"), "--history"],
        ["transactions", str(ahead / "03-old-leader-down-live"), "--transactional-id", "billing-copy", "--all"],
        ["transactions", str(ahead / "99-final"), "--before", str(ahead / "02-leader-killed")],
    ):
        for kind in ("json", "jsonl"):
            out = folder / f"{len(found)}-{len(found.get(name, ()))}.{kind}"
            assert run([name, *rest, "--format", kind, "--out", str(out)]) in {0, 1}
            if kind == "json":
                found.setdefault(name, []).append(_thinned(json.loads(out.read_text())))
            else:
                found.setdefault(f"{name}-line", []).extend(
                    _thinned([json.loads(line) for line in out.read_text().splitlines()])
                )
    with redirect_stdout(printed := io.StringIO()):
        rescue = ["salvage", str(failing), "--what", "all", "--topic", "orders", "-o", str(folder / "rescue")]
        assert run([*rescue, "--format", "json"]) == 0
    found["salvage"] = [_thinned(json.loads(printed.getvalue()))]
    out = folder / "ways.json"
    ways = ["predict", str(failing / "broker-1"), "--kafka", "4.1.0", "--ways-out", "--format", "json"]
    assert run([*ways, "--now", "2036-01-01T00:00:00Z", "--out", str(out)]) == 1
    found["predict"].append(_thinned(json.loads(out.read_text())))
    with redirect_stdout(printed := io.StringIO()):
        carving = ["salvage", "--carve", str(changed), "-o", str(folder / "carved"), "--format", "json"]
        assert run(carving) == 0
    found["salvage"].append(_thinned(json.loads(printed.getvalue())))
    found["trace"] = []
    for at, sought in enumerate(
        (["--offset", "0", "--show-payload"], ["--key", "never"], ["--key", "never", "--erasure"])
    ):
        out = folder / f"trace-{at}.json"
        tracing = ["trace", str(failing), "--topic", "orders", *sought, "--format", "json", "--out", str(out)]
        assert run(tracing) in {0, 1, 3}
        found["trace"].append(_thinned(json.loads(out.read_text())))
        lines = folder / f"trace-{at}.jsonl"
        assert run([*tracing[:-4], "--format", "jsonl", "--out", str(lines)]) in {0, 1, 3}
        found.setdefault("trace-line", []).extend(map(json.loads, lines.read_text().splitlines()))
    found["refusal"] = [
        json.loads(refusal_document(EvidenceNotFound("broker-9", "there is no such file or directory")))
    ]
    found["simulate"] = []
    explored = ["--explore", "hw", "--replicas", "2", "--max-log", "2", "--max-records", "2", "--max-epoch", "1"]
    for at, arguments in enumerate((["one-produce", "--protocol", "hw"], ["hw-loss"], explored, ["--list"])):
        out = folder / f"simulate-{at}.json"
        assert run(["simulate", *arguments, "--format", "json", "--out", str(out)]) in {0, 1}
        found["simulate"].append(_thinned(json.loads(out.read_text())))
    written = kforensics.ls(tree)
    for name in SAMPLED:
        if name.endswith("-line") and name not in found:
            for told in found[name.removesuffix("-line")]:
                lines = document.write_rows(written, View(), source=lambda *_, told=told: [json.dumps(told)])
                found.setdefault(name, []).extend(map(json.loads, lines))
    return found


SAMPLED = tuple(name for name in schema.names() if name != "common" and not name.startswith("fleet-"))


@pytest.mark.parametrize("name", SAMPLED)
def test_a_wrong_document_is_refused(samples, name):
    """Every object of what is printed: a field more, a field less, a value of another type."""
    seen: set[str] = set()
    refused = 0
    for sample in samples[name]:
        assert accepts(name)(sample)
        assert validator(name).is_valid(sample)
        whole = {"": sample}
        for holder, key, place in _places(whole, ""):
            if place in seen:
                continue
            seen.add(place)
            value = holder[key]
            for wrong in _wrong_values(key, value):
                holder[key] = wrong
                assert not accepts(name)(whole[""]), (place, wrong)
                assert not validator(name).is_valid(whole[""]), (place, wrong)
                refused += 1
            holder[key] = value
        validate(name, sample)
    assert refused > 10


def _wrong_values(key: Any, value: Any) -> Iterator[Any]:
    if not isinstance(value, list):
        yield [["neither"]]
    if isinstance(value, dict) and key not in OPEN:
        yield {**value, "no_such_field": 0}
        for field in value.keys() - OPTIONAL - (FLIP if key in {"cause", "flip"} else set()):
            yield {other: item for other, item in value.items() if other != field}


def _is_refused(name: str, document: Any) -> bool:
    with pytest.raises(SchemaMismatch):
        validate(name, document)
    return True


@pytest.mark.parametrize(
    ("name", "state", "foreign"),
    [
        ("diff", "maybe-at-risk", "nothing-lost"),
        ("explain", "maybe-lost", "repairable"),
        ("verify", "repairable", "agree"),
        ("ls", "complete", "lost"),
        ("predict", "loses", "Not a word"),
        ("groups", "set-back", "lost"),
        ("transactions", "prepared", "lost"),
        ("salvage", "gaps", "lost"),
        ("trace", "never-here", "gaps"),
    ],
)
def test_an_answer_has_the_states_of_its_command(samples, name, state, foreign):
    document = deepcopy(samples[name][0])
    answer = {"state": state, "headline": "One line.", "now": ["Do this."], "tell": [], "later": [], "unknown": []}

    validate(name, document | {"answer": answer})
    for wrong in ({**answer, "state": foreign}, {**answer, "now": "Do this."}, {**answer, "more": 1}, {"state": state}):
        assert _is_refused(name, document | {"answer": wrong})


def test_the_depth_is_one_of_two(samples):
    validate("diff", samples["diff"][0] | {"depth": "tails"})
    assert _is_refused("diff", samples["diff"][0] | {"depth": "deep"})


def test_what_a_command_prints_in_a_test_is_held_against_its_schema(fixtures, monkeypatch, capsys, tmp_path):
    tree = str(fixtures / "unclean-election" / "broker-1")
    assert run(["ls", tree, "--format", "json"]) == 0
    monkeypatch.setattr(document, "__version__", 1)

    with pytest.raises(SchemaMismatch, match=r"\$\.tool_version"):
        run(["ls", tree, "--format", "json"])
    with pytest.raises(SchemaMismatch, match=r"\$\.tool_version"):
        run(["ls", tree, "--format=json", "--out", str(tmp_path / "out")])
    with pytest.raises(SchemaMismatch, match=r"\$\.type"):
        validate_lines("ls", '{"type": "nothing"}\n')


def test_lines_that_go_to_the_descriptor_itself_are_held_too(fixtures, monkeypatch, capfd):
    tree = str(fixtures / "unclean-election" / "broker-1" / "orders-0")
    arguments = ["dump", tree, "--records", "--format", "jsonl"]
    assert run(arguments) == 0
    monkeypatch.setattr(record_lines, "NULL", b"-1.5")

    with pytest.raises(SchemaMismatch, match="dump-line"):
        run(arguments)


def _told_schema(name: str) -> str:
    one = schema.load(name)
    return str(one["properties"]["schema"]["const"])


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
        for item in value.values():
            yield from _pairs(item)
    elif isinstance(value, list):
        for item in value:
            yield from _pairs(item)


def _places(value: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    """Everything inside: the object or list that holds it, its key there, and its path and form; not inside of open objects."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        item = value[key]
        place = f"{path}.{key if isinstance(value, dict) else '[]'}"
        fields = sorted(item) if isinstance(item, dict) else type(item).__name__
        yield value, key, f"{place} {fields} {item.get('type') if isinstance(item, dict) else ''}"
        if isinstance(item, (dict, list)) and key not in OPEN:
            yield from _places(item, place)


def _thinned(value: Any) -> Any:
    """The value with one element of each form in its lists."""
    if isinstance(value, dict):
        return {key: _thinned(item) for key, item in value.items()}
    if isinstance(value, list):
        pairs = bool(value) and all(isinstance(item, (int, type(None))) for item in value)
        return value if pairs else list({_form(item): _thinned(item) for item in value}.values())
    return value


def _form(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((key, _form(item), item if key == "type" else None) for key, item in value.items())
    if isinstance(value, list):
        return frozenset(_form(item) for item in value)
    return type(value).__name__
