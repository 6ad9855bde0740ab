"""The commands of a screen, pasted into a shell as they stand."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kforensics.cli.app import run
from kforensics.words import command_line

ROOT = Path(__file__).parents[2]
ODD = "the disks' copy of \"broker\" $1; it's here"
UNSHOWN = "two\nlines\t\x1b[31mof a 'name'\\ \udcff"
"""Characters that no screen shows, and a byte that is no UTF-8."""


@pytest.fixture(params=[ODD, UNSHOWN], ids=["odd", "unshown"])
def odd_place(tmp_path, request):
    place = tmp_path / request.param
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
        ["bash", "-eu", "-c", f'PATH="{tmp_path}:$PATH"; {asked}'],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=True,
    )
    assert done.stdout == f"diff\n{odd_place}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_quoted_word_is_read_by_each_shell_as_it_was(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    words = [ODD, UNSHOWN, "", "plain", "é ü\u202e"]
    (tmp_path / "words").write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n')
    (tmp_path / "words").chmod(0o755)

    done = subprocess.run(
        [shell, "-c", f"./words {command_line(words)}"], capture_output=True, check=True, cwd=tmp_path
    )

    assert done.stdout.split(b"\0")[:-1] == [os.fsencode(one) for one in words]


def test_a_script_of_steps_says_which_shell_reads_it(tmp_path, monkeypatch, capsys):
    for name, shell in (("plain", "#!/bin/sh"), (UNSHOWN, "#!/usr/bin/env bash")):
        place = tmp_path / name
        shutil.copytree(ROOT / "fixtures" / "unclean-election", place)
        script = tmp_path / f"of {name[:3]}" / "steps"
        script.parent.mkdir()
        assert run(["triage", str(place), "--steps", str(script)]) == 1
        assert script.read_text().startswith(f"{shell}\n")
        checked = subprocess.run(["bash", "-n", str(script)], capture_output=True, check=False)
        assert checked.returncode == 0
