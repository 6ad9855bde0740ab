"""The commands of a screen, pasted into a shell as they stand."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kforensics.cli.app import run

ROOT = Path(__file__).parents[2]
ODD = "the disks' copy of \"broker\" $1; it's here"


@pytest.fixture
def odd_place(tmp_path):
    place = tmp_path / ODD
    shutil.copytree(ROOT / "fixtures" / "unclean-election", place)
    return place


def pasted(screen):
    return [match[1] for match in re.finditer(r"^ *\$ (.+)$", screen, re.MULTILINE)]


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_a_copy_is_made_of_a_path_with_spaces_and_quotes(capsys, monkeypatch, odd_place, tmp_path, width):
    monkeypatch.setenv("COLUMNS", width)

    run(["diff", str(odd_place)])

    named, copied = pasted(capsys.readouterr().out)
    assert named.startswith("export SAFE=/")
    safe = tmp_path / "other disk"
    safe.mkdir()
    done = subprocess.run(["bash", "-u", "-c", copied], capture_output=True, text=True, check=False)
    assert "SAFE" in done.stderr
    done = subprocess.run(
        ["bash", "-eu", "-c", copied],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SAFE": str(safe)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    (copy,) = safe.iterdir()
    assert sorted(p.name for p in copy.iterdir()) == sorted(p.name for p in (odd_place / "broker-1").iterdir())


def test_the_next_question_can_be_pasted_too(capsys, odd_place, tmp_path):
    run(["predict", str(odd_place)])

    asked = pasted(capsys.readouterr().out)[-1]
    (tmp_path / "kforensics").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "kforensics").chmod(0o755)
    done = subprocess.run(
        ["bash", "-eu", "-c", f'PATH="{tmp_path}:$PATH"; {asked}'], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["diff", str(odd_place)]
