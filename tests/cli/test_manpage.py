import shutil
import subprocess

import pytest

from kforensics.cli import manpage
from kforensics.cli.app import application
from kforensics.findings.rule import all_rules
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def pages():
    return manpage.pages()


def test_pages_are_up_to_date(pages):
    stale = [name for name, text in pages.items() if not (ROOT / name).is_file() or (ROOT / name).read_text() != text]

    assert stale == []
    assert manpage.main(["--check"]) == 0


def test_every_command_and_option_has_words(pages):
    for name in application().commands:
        lines = pages[f"man/kforensics-{name}.1"].splitlines()
        empty = [lines[at - 1] for at, line in enumerate(lines) if not line]

        assert empty == []


def test_commands_of_a_command_have_pages_of_their_own(pages):
    for name in ("audit", "report", "scan"):
        assert f"\\fBkforensics fleet {name}\\fR" in pages["man/kforensics-fleet.1"]
        assert "\\fB\\-\\-format\\fR" in pages[f"man/kforensics-fleet-{name}.1"]
    assert "kforensics\\-fleet\\-audit (1)" in pages["man/kforensics-fleet.1"]


def test_every_code_is_on_the_page_of_findings():
    page = manpage.findings_page()

    assert all(f"## {code}: " in page for code in all_rules())


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_pages_are_sound():
    done = subprocess.run(
        ["mandoc", "-Tlint", *sorted(ROOT.glob("man/*.1"))], capture_output=True, text=True, check=False
    )

    assert done.stdout == ""


def test_stale_pages_are_reported_then_written(tmp_path, monkeypatch, capsys, pages):
    monkeypatch.setattr(manpage, "pages", lambda: pages)
    monkeypatch.setattr(manpage, "__file__", str(tmp_path / "kforensics" / "cli" / "manpage.py"))
    (tmp_path / "man").mkdir()
    (tmp_path / "man" / "kforensics-gone.1").write_text("")

    assert manpage.main(["--check"]) == 1
    assert "man/kforensics-gone.1 is not up to date" in capsys.readouterr().err
    assert manpage.main([]) == 0
    assert manpage.main(["--check"]) == 0
    assert not (tmp_path / "man" / "kforensics-gone.1").exists()


def test_text_is_never_taken_for_a_request():
    assert manpage._text(".log files").startswith("\\&.log")
    assert manpage._text("use --format json, -o") == "use \\-\\-format json, \\-o"
    assert manpage._text("a well-known \\ one") == "a well-known \\e one"
