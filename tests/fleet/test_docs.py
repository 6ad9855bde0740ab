"""What the documents promise of the tables is what is written."""

import re
from dataclasses import fields

from kforensics.findings.fleet_summary import (
    AuditComparison,
    AuditTrend,
    BrokerHealth,
    DiskDamage,
    FleetSummary,
    LeaderShare,
    TrendLine,
)
from kforensics.fleet.schemas import AUDIT_COLUMNS, AUDIT_TABLES, CHANGES, REPLACED, TABLES
from tests.conftest import ROOT


def test_every_column_is_documented():
    told: dict[str, list[str]] = {}
    for line in (ROOT / "docs" / "fleet-tables.md").read_text().splitlines():
        if line.startswith("## "):
            columns = told.setdefault(line[3:], [])
        elif found := re.match(r"\| `(\w+)` \|", line):
            columns.append(found[1])

    common = {name for name, _ in AUDIT_COLUMNS}
    own = {**TABLES, "changes": CHANGES}
    assert {
        name: [one for one in schema.names if one not in common or one in own.get(name, REPLACED).names]
        for name, schema in AUDIT_TABLES.items()
    } == told


def test_every_field_of_the_documents_is_documented():
    text = (ROOT / "docs" / "json.md").read_text()
    sections = dict(re.findall(r"^## (fleet [^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    told = {name: set(re.findall(r"`(\w+)`", body)) for name, body in sections.items()}

    own = {"inputs", "findings", "problems"}
    assert {one.name for one in fields(FleetSummary)} - told["fleet audit"] - own == {
        "worst",
        "judged",
        "comparison",
        "counts",
        "open_findings",  # of the metrics alone
        "quorums",  # of the answer alone
        "refused",  # likewise
    }
    assert {one.name for one in fields(AuditComparison)} <= told["fleet report --since"]
    assert {one.name for one in (*fields(AuditTrend), *fields(TrendLine))} - told["fleet trend"] == {"lines"}
    for part in (BrokerHealth, DiskDamage, LeaderShare):
        assert {one.name for one in fields(part)} <= told["fleet audit"]
