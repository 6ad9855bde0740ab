"""A new protocol, or a new member of another enum of the rules, fails here until each place has decided what it does."""

import ast
import re
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import pairwise

import pytest

from kforensics.ask.model import PROTOCOLS
from kforensics.protocol.truncation import LogState, ProtocolName, follower_truncation
from kforensics.protocol.versions import PROTOCOL_RULES, KafkaVersion, protocol_of, protocols_since
from kforensics.units import EpochEntry
from tests.conftest import ROOT

PACKAGE = ROOT / "kforensics"
DECIDES = {PACKAGE / "protocol" / "truncation.py", PACKAGE / "protocol" / "versions.py"}
"""Where followers of each protocol truncate, and what else differs: `PROTOCOL_RULES`."""


ENUMS = {
    name
    for path in (PACKAGE / "protocol").rglob("*.py")
    for name, one in vars(import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))).items()
    if isinstance(one, type) and issubclass(one, Enum) and one.__module__.startswith("kforensics.protocol")
}


@cache
def modules():
    """Those that name a member of the enums, parsed."""
    named = re.compile(rf"\b({'|'.join(ENUMS)})\.")
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    return {path: ast.parse(text) for path, text in texts.items() if named.search(text)}


def test_every_protocol_has_its_rules_in_the_order_of_releases():
    assert tuple(PROTOCOL_RULES) == tuple(ProtocolName)
    assert all(one.first_version < after.first_version for one, after in pairwise(PROTOCOL_RULES.values()))
    assert all(one.first_level < after.first_level for one, after in pairwise(PROTOCOL_RULES.values()))
    assert tuple(ProtocolName) == PROTOCOLS  # of the command line


@pytest.mark.parametrize("protocol", ProtocolName)
def test_brokers_have_every_protocol_from_its_first_release_on(protocol):
    rules = PROTOCOL_RULES[protocol]
    first = KafkaVersion(*(*rules.first_version, 0)[:2])
    assert protocol_of(first) is protocol
    assert protocol_of(rules.simulated_as) is protocol
    assert protocols_since(first)[-1] is protocol


@pytest.mark.parametrize("protocol", ProtocolName)
def test_followers_of_every_protocol_truncate(protocol):
    leader = LogState((EpochEntry(0, 0), EpochEntry(2, 5)), 0, 9, 5)
    follower = LogState((EpochEntry(0, 0), EpochEntry(1, 5)), 0, 8, 5)
    outcome = follower_truncation(follower, leader, protocol=protocol)
    assert (outcome.protocol, outcome.after.log_end_offset) == (protocol, 5)


def members(node):
    """Members of the enums of the rules that are named below a node."""
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id in ENUMS:
            yield one.value.id


def test_no_place_asks_for_one_protocol_by_name():
    """A protocol that is not named there would be swallowed: ask for what is so of it."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path, tree in modules().items()
        if path not in DECIDES
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare | ast.Match | ast.Dict | ast.Set) and ProtocolName.__name__ in members(node)
    ]
    assert found == []


def test_no_match_over_the_rules_has_a_case_for_all_others():
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Match) and any(True for one in node.cases for _ in members(one.pattern))
        if any(isinstance(one.pattern, ast.MatchAs) and one.pattern.pattern is None for one in node.cases)
    ]
    assert found == []
    assert {"ProtocolName", "StepKind", "Acks", "Fate", "StartResult", "TransactionStatus"} <= ENUMS
