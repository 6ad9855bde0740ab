"""Every kind of a thing has what every kind needs: a row, words, a rule, a line in the docs, a caller, a recording."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import kforensics
from kforensics.ask.questions import options_of
from kforensics.commands.salvaging.outputs import FormName
from kforensics.damage import Absent
from kforensics.evidence.event_kinds import LOGGED_EVENTS, EventKind, words_of
from kforensics.evidence.file_kinds import FILE_KINDS
from kforensics.findings import gate
from kforensics.findings.concern import RISKS
from kforensics.findings.model import Severity
from kforensics.findings.rule import all_rules
from kforensics.findings.rules.causes import CAUSES
from kforensics.formats.log_lines.event import DECISIVE, FOLDED, LogEventKind
from kforensics.formats.log_lines.table import rows, sections, told_kinds
from kforensics.formats.segment.walk import Level
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import METADATA_VERSION_LEVELS
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.doubts import RISK_WORDS
from kforensics.reconcile.observed.leadership import Risk
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.render.events import sentence
from kforensics.units import TopicPartition
from tests.conftest import ROOT
from tests.mutants.catalogue import MUTANTS

PACKAGE = ROOT / "kforensics"
JSON_DOCS = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")

RECORDED_CAUSES = {
    CauseName.UNCLEAN_ELECTION: "fast-failover-2.x",
    CauseName.POWER_LOSS: "power-cut-2.8",
    CauseName.HIGH_WATERMARK: "hw-loss-0.10",
    CauseName.UNCOMMITTED_TAIL: "acks1-tail-1.1",
    CauseName.LAST_REPLICA_STANDING: "last-standing-3.3",
    CauseName.DAMAGE: "damaged-leader-2.8",
    CauseName.RECREATED_TOPIC: "reassignment-jbod-2.8",
}
MADE_CAUSES = {
    CauseName.RECOVERY,
    CauseName.DISK_REPLACED,
    CauseName.DISK_RESTORED,
    CauseName.METADATA_SET_BACK,
    CauseName.RETENTION,
    CauseName.UNKNOWN,
}
"""Of which no incident was recorded; `tests/reconcile/history/test_causes.py` makes them, and a recording of groups has that of retention."""

IN_METADATA_ONLY = {
    EventKind.PARTITION_CREATED,
    EventKind.LEADER_EPOCH_BUMP,
    EventKind.ELR_CHANGE,
    EventKind.DIRECTORY_CHANGE,
    EventKind.BROKER_CONTROLLED_SHUTDOWN,
    EventKind.BROKER_LOG_DIRS,
    EventKind.CONTROLLER_REGISTERED,
    EventKind.FEATURE_CHANGE,
    EventKind.SNAPSHOT,
    EventKind.TRANSACTION_ABORTED,
}
"""Events that no timeline has; `metadata` shows each with its fields."""

WITHOUT_AN_ENTRY = set(LogEventKind) - set(LOGGED_EVENTS) - told_kinds()
"""Lines that are read together with others: leaderships, truncations, topics, moves, versions, settings."""


@pytest.mark.parametrize("event", [event for event in EventKind if event not in IN_METADATA_ONLY])
def test_every_event_of_a_timeline_has_a_sentence(event):
    entry = TimelineEntry(kind=event, time_ms=0, broker_id=1, topic_partition=TopicPartition("orders", 0))
    names = "orders-0"
    plain = f"broker 1: {event.replace('-', ' ')} of orders-0"

    assert sentence(entry, names) != plain


def test_a_field_that_a_line_lacks_takes_its_words_along():
    entry = TimelineEntry(kind=EventKind.INVALID_RECORDS, time_ms=0, broker_id=1, detail={"position": 7})

    assert sentence(entry, "") == "broker 1 finds invalid records at byte 7"
    assert sentence(entry, "t-0") == "broker 1 finds invalid records of t-0 at byte 7"


def test_words_name_only_what_their_lines_may_have():
    for kind, row in LOGGED_EVENTS.items():
        assert set(re.findall(r"\{(\w+)\}", row.words)) <= {"broker", "names", *row.fields}, kind
        assert row.words in {"", words_of(row.event)}


def test_every_kind_of_line_has_a_text_and_a_use():
    assert [section.kind for section in sections()] == list(dict.fromkeys(section.kind for section in sections()))
    assert {section.kind for section in sections()} == set(LogEventKind)
    assert all(section.meaning.endswith(".") for section in sections())
    assert all(row.advice.endswith(".") for row in rows() if row.advice)
    assert set(LogEventKind) >= set(LOGGED_EVENTS) | FOLDED | DECISIVE


@pytest.mark.parametrize("kind", sorted(WITHOUT_AN_ENTRY))
def test_every_kind_of_line_without_an_entry_is_asked_for(kind):
    assert LogEventKind(kind).name in kinds_asked_for()


@cache
def kinds_asked_for() -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if "log_lines" not in path.parts)
    return {name for text in texts for name in re.findall(r"\b(?:LogEvent)?Kind\.([A-Z_0-9]+)\b", text)}


@pytest.mark.parametrize("event", EventKind)
def test_every_event_is_in_the_docs(event):
    assert f"| `{event}` |" in JSON_DOCS


@pytest.mark.parametrize(
    ("command", "option", "owner"),
    [
        ("fleet-report", "severity", Severity),
        ("fleet-audit", "fail_on", gate.FailOn),
        ("verify", "level", Level),
        ("salvage", "form", FormName),
        ("diff", "protocol", ProtocolName),
    ],
)
def test_an_option_that_is_listed_without_its_module_has_its_values(command, option, owner):
    """Help and completion list them without loading what they choose among."""
    (choices,) = [one.option.choices for one in options_of(command) if one.name == option]

    assert set(choices) == {one.value for one in owner}


def test_every_risk_of_an_election_has_words_in_diff_and_explain():
    assert set(Risk) == RISKS.keys() == RISK_WORDS.keys()


def test_every_cause_has_words_and_stands_in_the_docs():
    assert set(CAUSES) == set(CauseName)
    assert {cause for cause in CauseName if f"`{cause}`" not in JSON_DOCS} == set()
    assert {*RECORDED_CAUSES, *MADE_CAUSES} == set(CauseName)


@pytest.mark.parametrize("cause", sorted(RECORDED_CAUSES))
def test_every_cause_is_that_of_a_recording(incident, cause):
    root = incident(RECORDED_CAUSES[CauseName(cause)])
    *before, final = sorted((root / "snapshots").iterdir())
    result = kforensics.explain([final, root / "logs"], before=before, jobs=1)

    assert cause in _causes(result.body)


def _causes(explanation) -> set[CauseName]:
    incidents = explanation.incidents
    return {one.cause.name for incident in incidents for one in incident.truncations} | {
        one.cause for incident in incidents for one in incident.losses
    }


def test_the_newest_recording_has_a_known_metadata_version(incident):
    highest = 0
    for name in ("benign-rolling-restart-4.x", "min-isr-4.1", "unclean-election-4.x"):
        result = kforensics.metadata([incident(name) / "snapshots" / "99-final"])
        level = result.body.state.metadata_version
        assert not isinstance(level, Absent)
        assert level in METADATA_VERSION_LEVELS
        highest = max(highest, level)

    assert highest >= 30


def test_every_rule_is_stated_somewhere():
    text = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    names = dict(re.findall(r'^([A-Z_]+) = Rule\(\n?\s*"(KF\d+)"', text, re.MULTILINE))
    times = Counter(re.findall(r"\b[A-Z_]+\b", text))
    stated = {code for name, code in names.items() if times[name] > 1}
    of_damage = {kind.damage_code for kind in FILE_KINDS.values()}

    assert set(names.values()) == set(all_rules())
    assert set(all_rules()) - stated - of_damage == set()


def public_functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}


def test_every_rule_of_the_protocol_is_asked_by_who_reconciles_or_simulates():
    """From the callers outside of `protocol/` through what its own functions use."""
    rules = {name: path for path in (PACKAGE / "protocol").rglob("*.py") for name in public_functions(path)}
    uses: dict[str, set[str]] = {}
    for path in (PACKAGE / "protocol").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):  # of a class or not: methods of one name count together
                uses.setdefault(node.name, set()).update(_names(node))
    outside = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if "protocol" not in path.parts]
    named = re.compile(rf"\b({'|'.join(rules)})\b")
    reached = {name for text in outside if named.search(text) for name in _names(ast.parse(text)) if name in rules}
    left = list(reached)
    while left:
        for name in uses.get(left.pop(), ()):
            if name in uses and name not in reached:
                reached.add(name)
                left.append(name)

    assert set(rules) - reached == set()


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.file}: {one.name}")
def test_every_mutant_breaks_a_rule_that_is_there(mutant):
    text = (PACKAGE / mutant.file).read_text(encoding="utf-8")

    assert 1 == text.count(mutant.old)
    assert mutant.old != mutant.new
