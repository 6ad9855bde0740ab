import subprocess
import sys

import pytest

import kforensics
from kforensics.errors import EvidenceNotFound


def test_diff_gives_what_the_command_prints(fixtures):
    result = kforensics.diff(fixtures / "unclean-election", jobs=1)

    assert () == result.problems
    assert {"KF201"} == {finding.code for finding in result.findings if finding.severity == "critical"}
    assert 7 == len(result.partitions) == len(result.reports)


def test_verify_finds_nothing_in_a_clean_node(fixtures):
    result = kforensics.verify(fixtures / "unclean-election" / "broker-2", jobs=1)

    assert () == tuple(result.problems)
    assert not [report for report in result.files if report.state in {"damaged", "unreadable"}]


def test_explain_tells_of_the_loss(fixtures):
    result = kforensics.explain(fixtures / "unclean-election", jobs=1)

    assert result.conclusion[0].startswith("56 records that were committed")


def test_nothing_there_is_an_error(tmp_path):
    with pytest.raises(EvidenceNotFound):
        kforensics.diff(tmp_path / "missing")
    with pytest.raises(ValueError, match="kip-1"):
        kforensics.diff(tmp_path, protocol="kip-1")


def test_importing_loads_nothing_heavy():
    code = "import sys, kforensics; print([m for m in ('numpy', 'rich', 'typer', 'construct', 'pyspark') if m in sys.modules])"

    assert "[]\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
