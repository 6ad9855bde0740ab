"""What the documents promise of the tables is what is written."""

import re

from kforensics.fleet.schemas import EVIDENCE_TABLES, TABLES
from tests.conftest import ROOT


def test_every_column_is_told():
    told: dict[str, list[str]] = {}
    for line in (ROOT / "docs" / "fleet-tables.md").read_text().splitlines():
        if line.startswith("## "):
            columns = told.setdefault(line[3:], [])
        elif found := re.match(r"\| `(\w+)` \|", line):
            columns.append(found[1])

    assert {name: schema.names for name, schema in {**TABLES, **EVIDENCE_TABLES}.items()} == told
