"""TAB in real shells, which ask the program itself; and an interrupt while it loads."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kforensics.ask.commands import FUNCTIONS as COMMANDS
from kforensics.cli.app import run
from tests.conftest import ROOT

GIVES_UP_AFTER_SECONDS = 30


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home directory with the program on the path and its completion installed for each shell that is there."""
    folder = tmp_path_factory.mktemp("home")
    program = folder / "bin" / "kforensics"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kforensics "$@"\n')
    program.chmod(0o755)
    (folder / "broker-17").mkdir()
    shutil.copytree(ROOT / "fixtures" / "unclean-election" / "broker-2", folder / "evidence" / "broker-2")
    for shell, words in (("bash", ("--norc",)), ("zsh", ("-f",)), ("fish", ())):
        if shutil.which(shell):
            command = [shell, *words, "-c", "kforensics --install-completion; true"]
            subprocess.run(command, env=_environment(folder), cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in {"LANG", "COVERAGE_PROCESS_START"}}
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    return {**kept, "HOME": str(home), "PATH": path, "PYTHONPATH": str(ROOT), "TERM": "dumb", "PS1": "> "}


def _typed(shell: str, text: str, expected: str, home: Path) -> str:
    """What a shell on a terminal shows, up to the words that are expected, once a line was begun there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(home)
        os.execvpe(shell, [shell, "-i"], _environment(home))
    shown = ""
    try:
        os.write(terminal, b"echo rea''dy\n")
        shown = _read(terminal, "ready")
        os.write(terminal, text.encode())
        shown = _read(terminal, expected)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    return shown


def _read(terminal: int, expected: str) -> str:
    shown = ""
    while expected not in shown and select.select([terminal], [], [], GIVES_UP_AFTER_SECONDS)[0]:
        shown += os.read(terminal, 1 << 16).decode(errors="replace")
    return shown


TYPED = (
    ("kforensics di\t", "kforensics diff"),
    ("kforensics predict --wi\t", "predict --without"),
    ("kforensics diff --depth ta\t", "--depth tails"),
    ("kforensics verify --format sa\t", "--format sarif"),
    ("kforensics ls brok\t", "ls broker-17/"),
    ("kforensics brok\t", "kforensics broker-17/"),
    ("kforensics diff evidence -t pay\t", "-t payments"),
    ("kforensics evidence --topic or\t", "--topic orders"),
    ("kforensics metadata evidence --broker \t", "--broker 2"),
)


@pytest.mark.parametrize("shell", ["bash", pytest.param("zsh", marks=pytest.mark.slow)])  # it takes seconds to begin
@pytest.mark.parametrize(("text", "expected"), TYPED)
@pytest.mark.some(3)
def test_tab_goes_on_with_the_line(home, shell, text, expected):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")

    # The file that Typer installs for zsh makes itself known at the first TAB, whatever the line is.
    shown = _typed(shell, f"kforensics \t\x15{text}" if shell == "zsh" else text, expected, home)

    assert expected in shown
    assert "Usage" not in shown


def _fish(home: Path, line: str) -> list[str]:
    done = subprocess.run(
        ["fish", "-c", f'complete -C "{line}"'],
        env=_environment(home),
        cwd=home,
        check=True,
        capture_output=True,
        text=True,
    )
    return [one.partition("\t")[0] for one in done.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
def test_fish_goes_on_with_the_line(home):
    assert _fish(home, "kforensics di") == ["diff"]
    assert _fish(home, "kforensics predict --wi") == ["--without"]
    assert _fish(home, "kforensics diff --depth ") == ["content", "tails"]
    assert _fish(home, "kforensics ls brok") == ["broker-17/"]
    assert _fish(home, "kforensics brok") == ["broker-17/"]
    assert {*_fish(home, "kforensics diff evidence -t ")} == {"__cluster_metadata", "orders", "payments"}
    assert _fish(home, "kforensics evidence -t orders -p ") == ["0", "1", "2", "3"]
    assert _fish(home, "kforensics metadata evidence --broker ") == ["2"]


def _answer(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], line: str) -> list[str]:
    monkeypatch.setenv("_KFORENSICS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    assert run([]) == 0
    return capfd.readouterr().out.split()


def test_every_command_is_offered(monkeypatch, capfd):
    assert {*COMMANDS, "help", "fleet"} == set(_answer(monkeypatch, capfd, "kforensics "))


def test_only_formats_that_the_command_has_are_offered(monkeypatch, capfd):
    offered = _answer(monkeypatch, capfd, "kforensics diff --format ")
    assert offered == ["text", "json", "jsonl", "html", "markdown", "brief", "csv"]
    assert _answer(monkeypatch, capfd, "kforensics verify . --format s") == ["sarif"]


BELOW = [
    ("kforensics diff {} -t ", ["__cluster_metadata", "orders", "payments"]),
    ("kforensics {} -t o", ["orders"]),
    ("kforensics ls {} --topic orders -p ", ["0", "1", "2", "3"]),
    ("kforensics diff {} --leader ", ["1", "2", "3", "100"]),
    ("kforensics diff -t ", []),
    ("kforensics diff no-such-place -t ", []),
]


@pytest.mark.parametrize(("line", "offered"), BELOW)
def test_names_below_the_paths_are_offered(monkeypatch, capfd, fixtures, line, offered):
    monkeypatch.chdir(fixtures)
    assert _answer(monkeypatch, capfd, line.format("unclean-election")) == offered


def _interrupted_by(module: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The program with a module that sends an interrupt while it is loaded."""
    (tmp_path / f"{module}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "kforensics", "diff", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_an_interrupt_while_the_program_loads_ends_it_as_the_signal_does(tmp_path):
    done = _interrupted_by("typer", tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_little_is_loaded_before_an_interrupt_is_taken():
    script = "import sys; sys.path.insert(0, sys.argv[1]); import kforensics; print({'typing', 'pathlib', 're'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-S", "-c", script, ROOT], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


def test_an_interrupt_while_a_command_loads_is_told_in_a_line(tmp_path):
    done = _interrupted_by("numpy", tmp_path)

    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "kforensics: stopped; nothing was concluded\n"
