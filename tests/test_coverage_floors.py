"""The judge of coverage fails where a part is below its floor, and says what was not run."""

import importlib.util
import json

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def judge():
    spec = importlib.util.spec_from_file_location("coverage_floors", ROOT / ".ci" / "coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def file(lines, covered, missing=()):
    summary = {"num_statements": lines, "covered_lines": covered, "num_branches": 0, "covered_branches": 0}
    summary["percent_covered"] = 100 * covered / lines
    return {"summary": summary, "missing_lines": list(missing), "missing_branches": []}


ALL = {
    "kforensics/formats/a.py": file(10, 10),
    "kforensics/formats/log_lines/scan.py": file(10, 10),
    "kforensics/protocol/b.py": file(10, 10),
    "kforensics/c.py": file(80, 76),
}


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ({}, 0, "kforensics/formats/ 100.00 %"),
        ({"kforensics/fleet/d.py": file(100, 0)}, 0, "kforensics/ 96.36 %"),
        ({"kforensics/formats/a.py": file(100, 99, [7])}, 1, "  kforensics/formats/a.py: lines [7]"),
        ({"kforensics/formats/log_lines/scan.py": file(10, 9, [7])}, 0, "kforensics/formats/ 100.00 %"),
        ({"kforensics/formats/log_lines/scan.py": file(10, 8, [7, 8])}, 1, "90 % is the floor"),
        ({"kforensics/e.py": file(20, 0)}, 1, "95 % is the floor"),
        ({"kforensics/protocol/b.py": file(1, 0)}, 1, "kforensics/protocol/: 0.00 %"),
    ],
)
def test_floors(judge, tmp_path, capsys, more, code, words):
    report = tmp_path / "coverage.json"
    report.write_text(json.dumps({"files": {**ALL, **more}}))

    assert code == judge.main([str(report)])
    assert words in capsys.readouterr().out


def test_a_part_of_which_nothing_was_run_is_below_its_floor(judge):
    assert judge.percent({}, "kforensics/formats/") == 0
