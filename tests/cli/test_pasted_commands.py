"""The commands of a screen, pasted into a shell as they stand."""

import argparse
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from kforensics.ask.questions import options_of
from kforensics.cli.app import run
from kforensics.words import command_line
from tests.conftest import RECORDINGS

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
@pytest.mark.some(2)
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


@pytest.mark.some(1)
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


NARROWED = ("triage", "explain", "diff", "predict")
SUBJECTS = ("cluster", "topics", "partitions", "is_stopped", "keep_going")


def asked_by(words):
    """What a command line asks, without running it: the options that say what it is about."""
    command, *rest = words
    parser = argparse.ArgumentParser(exit_on_error=False)
    fields = []
    for one in options_of(command):
        flags = one.option.flags
        if not flags:
            parser.add_argument(one.field, nargs="*")
        elif one.kind is bool:
            parser.add_argument(*flags, dest=one.field, action="store_true")
        else:
            parser.add_argument(*flags, dest=one.field, action="append")
        fields.append(one.field)
    found, odd = parser.parse_known_intermixed_args(rest)
    assert not odd, words
    return command, {one: getattr(found, one) for one in fields}


def check_narrowed(arguments, root, capsys, monkeypatch):
    """Hold every command on the screens of four questions against what these were asked."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("SAFE", "/elsewhere")
    met = 0
    for name in NARROWED:
        takes = {one.field for one in options_of(name)}
        options = [one for field, *one in arguments if field in takes]
        own = asked_by([name, *(word for one in options for word in one)])[1]
        run([name, *(word for one in options for word in one)])
        for line in pasted(capsys.readouterr().out):
            command, *words = shlex.split(line.replace("$SAFE", "/elsewhere").replace('"${SAFE:?}"', "/elsewhere"))
            if command != "kforensics":
                continue
            met += 1
            asked, given = asked_by(words)
            shared = {one.field for one in options_of(asked)}
            for field in SUBJECTS:
                if field in shared and field in own:
                    assert given[field] == own[field], line
            assert {*given["paths"]} <= {*own["paths"]} | {str(one) for one in root.rglob("*")}, line
            # What is at risk is at risk of what is there now.
            if "before" in shared and given["before"] != own.get("before"):
                assert (asked, given["what"], given["before"]) == ("salvage", ["at-risk"], None), line
    return met


@pytest.mark.parametrize("name", [pytest.param(one, marks=pytest.mark.slow) for one in sorted(RECORDINGS)])
def test_commands_on_screens_of_recordings_ask_of_the_same_subjects(name, incident, capsys, monkeypatch):
    root = incident(name)
    last, earlier = _moments(root)
    logs = [("paths", str(root / "logs"))] if (root / "logs").is_dir() else []
    plain = [("paths", str(one)) for one in last] + logs
    before = [("before", "--before", str(earlier))] if earlier else []
    check_narrowed([*plain, *before, ("is_stopped", "--stopped")], root, capsys, monkeypatch)
    topic = _topic(last)
    check_narrowed(
        [*plain, *before, ("topics", "--topic", topic), ("keep_going", "--keep-going")], root, capsys, monkeypatch
    )


def test_commands_on_screens_ask_of_the_same_subjects(incident, capsys, monkeypatch):
    root = incident("last-standing-3.3")
    last, earlier = _moments(root)
    cluster = next(
        line.partition("=")[2].strip().replace("\\", "")
        for line in next(last[0].rglob("meta.properties")).read_text().splitlines()
        if line.startswith("cluster.id")
    )
    asked = [("paths", str(last[0])), ("before", "--before", str(earlier)), ("cluster", "--cluster", cluster)]
    topics = [("topics", "--topic", _topic(last)), ("is_stopped", "--stopped")]

    assert check_narrowed([*asked, *topics], root, capsys, monkeypatch)


def _moments(root):
    """The newest state of a recording, and an earlier one."""
    snapshots = sorted(one for one in (root / "snapshots").iterdir() if one.is_dir())
    return snapshots[-1:], snapshots[-2] if len(snapshots) > 1 else None


def _topic(places):
    found = Counter(one.name.rpartition("-")[0] for one in places[0].rglob("*-[0-9]") if not one.name.startswith("__"))
    return found.most_common(1)[0][0]
