"""What `capture` shows, and what it does not claim."""

import re

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied
from tests.conftest import FIXTURES

NODE = FIXTURES / "unclean-election" / "broker-1"


@pytest.fixture
def shown(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    def show(*options, source=NODE):
        code = run(["capture", str(source), "--normal-priority", *options])
        return code, " ".join(capsys.readouterr().out.split())

    return show


def test_the_figures_and_that_no_record_is_in_it(shown, tmp_path):
    code, words = shown("-o", str(tmp_path / "out.kfc"))

    assert 0 == code
    assert "has the evidence of node 1." in words
    assert "7 replicas, 6 segments with 73 rows of batches, 24 files byte for byte" in words
    assert "No key, value or header of a record of a topic of yours is in it." in words
    assert "records of users" not in words
    assert "changed" not in words


def test_with_records_it_says_so_and_no_more_that_there_are_none(shown, tmp_path):
    _, words = shown("-o", str(tmp_path / "out.kfc"), "--with-tail")

    assert "106 KB of batches with the records of users" in words
    assert "No key" not in words


def test_what_was_not_read_again_is_counted(shown, tmp_path, monkeypatch):
    monkeypatch.setattr("kforensics.commands.capturing.earlier_captures.SETTLED_NS", -(10**12))
    shown("-o", str(tmp_path / "first.kfc"))
    _, words = shown("-o", str(tmp_path / "second.kfc"), "--since", str(tmp_path / "first.kfc"))

    assert "6 segments of 106 KB did not change since the earlier capture and were not read again." in words


def test_records_without_names_that_were_left_out_are_counted(shown, tmp_path, monkeypatch):
    monkeypatch.setenv("KFORENSICS_REDACT_KEY", "k" * 32)
    copied(NODE, tmp_path / "broker-1")
    with (tmp_path / "broker-1" / "__cluster_metadata-0" / f"{0:020}.log").open("ab") as file:
        file.write(b"torn")
    _, words = shown("-o", str(tmp_path / "out.kfc"), "--redact", source=tmp_path / "broker-1")

    assert "1 record or line could not be written again without names, and was left out" in words


def test_a_plan_says_what_it_would_take_and_writes_nothing(shown, tmp_path):
    code, words = shown("--plan")

    assert 0 == code
    assert re.search(r"will take about \d+ s", words)
    assert "to read, at " in words
    assert [] == list(tmp_path.iterdir())


def test_verbose_lists_what_could_not_be_read(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    out = tmp_path / "out.kfc"

    assert 3 == run(
        ["capture", str(NODE), str(tmp_path / "missing"), "-o", str(out), "--normal-priority", "--keep-going", "-v"]
    )
    words = " ".join(capsys.readouterr().out.split())
    assert "out.kfc lacks 1 thing of node 1 that could not be read; the rest is in it." in words
    assert f"not read: {tmp_path}/missing: there is no such file or directory" in words
