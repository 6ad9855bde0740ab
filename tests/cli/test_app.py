import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest
import typer
from typer.main import get_command

from kforensics import __version__
from kforensics.cli import app as app_module
from kforensics.cli.app import defect_words, error_words, run
from kforensics.cli.terminal import check_out, write_result
from kforensics.damage import Span
from kforensics.errors import BadChecksum, MissingExtra, NotADataDir, UsageError
from kforensics.exits import ExitCode

PROGRAM = [sys.executable, "-m", "kforensics"]


@pytest.fixture
def failing(monkeypatch):
    """A command `fail` that raises what it is given."""

    def install(error):
        def fail() -> None:
            raise error

        app = typer.Typer(no_args_is_help=True)
        app.callback()(lambda: None)
        app.command()(fail)
        monkeypatch.setattr(app_module, "application", lambda _: get_command(app))

    return install


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"kforensics {__version__}\n"


def test_no_command_shows_the_help(capsys):
    assert run([]) == ExitCode.USAGE
    assert "Usage: kforensics" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nonsense"], "kforensics: No such option: --nonsense"),
        (["ls"], "Missing argument"),
        (["ls", "--format", "xml", "."], "'xml' is not one of"),
        (["ls", "--format", "sarif", "."], "--format sarif is not offered by this command"),
        (["frobnicate"], "No such command 'frobnicate'"),
    ],
)
def test_wrong_usage_is_2_in_words(capsys, arguments, words):
    assert run(arguments) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


def test_an_error_says_what_where_and_why(capsys, failing):
    failing(NotADataDir("b\x1b[2J1", "not a data directory", ("it was written by Redpanda",)))

    assert run(["fail"]) == ExitCode.INCOMPLETE
    assert capsys.readouterr().err == (
        "kforensics: b\\x1b[2J1: not a data directory\n  likely: it was written by Redpanda\n"
    )


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UsageError("these do not go together"), 2, "kforensics: these do not go together"),
        (MissingExtra("sign", "a signature"), 2, "pip install 'kforensics[sign]'"),
        (BadChecksum(Span(8, 4), expected="1", found="2"), 3, "at byte 8, 4 bytes: expected 1, found 2"),
        (KeyboardInterrupt(), 130, "stopped"),
        (BrokenPipeError(), 141, ""),
        (ZeroDivisionError("x\x1b" + "y" * 1000), 4, "a defect in kforensics"),
        (RecursionError(), 4, "a defect in kforensics"),
        (MemoryError(), 3, "not enough memory"),
        (OSError(5, "Input/output error"), 4, "a defect in kforensics"),
    ],
)
def test_every_error_has_its_code_and_no_traceback(capsys, failing, error, code, words):
    failing(error)

    assert run(["fail"]) == code
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err
    assert "\x1b" not in err


def test_a_defect_is_one_line_and_names_the_place(capsys, monkeypatch, failing):
    failing(ValueError("boom"))

    assert run(["fail"]) == ExitCode.DEFECT
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("KFORENSICS_TRACEBACK", "1")
    assert run(["fail"]) == ExitCode.DEFECT
    assert "ValueError: boom" in capsys.readouterr().err

    with pytest.raises(TypeError) as caught:
        write_result(7)  # type: ignore[arg-type]
    assert "kforensics/cli/terminal.py:" in defect_words(caught.value)


def test_words_of_an_error_without_causes():
    assert error_words(NotADataDir("a", "an empty directory")) == "kforensics: a: an empty directory"


def test_an_output_file_is_new_and_outside_of_the_evidence(tmp_path):
    evidence = tmp_path / "broker-1"
    (evidence / "deep").mkdir(parents=True)
    (tmp_path / "taken").write_text("x")
    (tmp_path / "link").symlink_to(evidence)
    circle = tmp_path / "circle"
    circle.symlink_to(circle)

    check_out(None, [evidence])
    check_out(tmp_path / "new", [evidence, circle])
    for out, words in (
        (tmp_path / "taken", "exists"),
        (tmp_path / "nowhere" / "new", "no directory"),
        (circle / "new", "no directory"),
        (evidence / "new", "inside the evidence"),
        (evidence / "deep" / "new", "inside the evidence"),
        (tmp_path / "link" / "new", "inside the evidence"),
    ):
        with pytest.raises(UsageError, match=words):
            check_out(out, [evidence])

    write_result(["a", "b"], tmp_path / "new")
    assert (tmp_path / "new").read_text() == "ab"
    with pytest.raises(UsageError, match="can't be written"):
        write_result("c", tmp_path / "new")


def test_what_is_not_finished_is_no_output_file(tmp_path):
    def pieces():
        yield "a"
        raise UsageError("stopped")

    with pytest.raises(UsageError, match="stopped"):
        write_result(pieces(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_reader_that_goes_away_ends_it_quietly(fixtures):
    tree = fixtures / "unclean-election"
    with subprocess.Popen(
        [*PROGRAM, "ls", "--format", "json", "--files", tree], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()

        assert process.stderr.read() == b""
        assert process.wait() == ExitCode.PIPE_CLOSED


@pytest.mark.slow
def test_a_narrow_encoding_is_no_error(fixtures):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "60"}

    done = subprocess.run(
        [*PROGRAM, "ls", fixtures / "unclean-election"], capture_output=True, check=False, env=environment
    )

    assert done.returncode == 0
    assert done.stdout.isascii()


HEAVY = ("numpy", "construct", "crcmod", "jinja2", "cryptography", "pyarrow", "pyspark", "dateparser")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["verify", "--help"], ["fleet", "--help"]], ids=" ".join
)
@pytest.mark.some(1)
def test_the_help_loads_nothing_heavy(arguments):
    script = (
        f"import sys\nfrom kforensics.cli.app import run\nassert run({arguments}) == 0\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    loaded = set(done.stderr.split())
    assert {"kforensics", "typer"} <= loaded
    assert set() == loaded & set(HEAVY)


NOT_FOR_ENDS = (
    *("construct", "cramjam", "isal", "pdb", "rich", "multiprocessing", "concurrent"),
    *(
        "kforensics.cli.fleet",
        "kforensics.cli.own",
        "kforensics.commands.explain",
        "kforensics.render.screen",
        "kforensics.render.formats.page",
    ),
    *("kforensics.evidence.broker_logs", "kforensics.formats.log_lines", "kforensics.reconcile.timeline"),
    *("kforensics.evidence.metadata.log", "kforensics.evidence.group_commits", "kforensics.formats.messages"),
    *("kforensics.evidence.captured.reading", "kforensics.evidence.captured.reading"),
    "kforensics.formats.columns.record_stream",
    *("kforensics.formats.log.batches", "kforensics.reconcile.bugs"),
)
"""Modules that the comparison of the ends of logs has no use for, where there are only logs."""


@pytest.mark.slow
def test_comparing_the_ends_of_logs_loads_what_it_uses(fixtures):
    root = fixtures / "unclean-election"
    paths = [
        str(root / f"broker-{number}" / "orders-0") for number in (2, 3)
    ]  # nothing is truncated: no start is asked
    script = (
        "import sys\nfrom kforensics.cli.app import run\nrun(['diff', '--depth', 'tails', '--format', 'json', *sys.argv[1:]])\n"
        "print(*sys.modules, file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", script, *paths], capture_output=True, text=True, check=True)

    loaded = set(done.stderr.split())
    assert "kforensics.reconcile.replicas.partition" in loaded
    assert [] == [one for one in NOT_FOR_ENDS if one in loaded]


def test_the_grammar_of_log_lines_is_loaded_for_log_files_alone(fixtures, tmp_path):
    (tmp_path / "server.log").write_text(
        "[2024-05-01 12:00:00,123] INFO [KafkaServer id=7] started (kafka.server.KafkaServer)\n"
    )
    script = (
        "import sys\nfrom kforensics.cli.app import run\n"
        "for number, one in enumerate(sys.argv[1:]):\n"
        "    run(['explain', one, '--out', f'{sys.argv[0]}-{number}.json', '--format', 'json'])\n"
        "    print('kforensics.formats.log_lines.table' in sys.modules)"
    )
    (tmp_path / "script").write_text(script)

    command = [sys.executable, tmp_path / "script", fixtures / "unclean-election", tmp_path / "server.log"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "True"]


def test_the_installed_script_is_the_module(fixtures):
    module = subprocess.run(
        [*PROGRAM, "ls", "--format", "json", fixtures / "unclean-election"], capture_output=True, check=True
    )

    assert json.loads(module.stdout)["exit_code"] == 0


def test_the_entry_point_exits_with_the_code(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["kforensics", "--version"])

    with pytest.raises(SystemExit) as caught:
        app_module.main()

    assert caught.value.code == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")  # noqa: PTH110
@pytest.mark.parametrize("arguments", [["ls"], ["ls", "--format", "jsonl"], ["dump"], ["--help"], ["ls", "--help"]])
@pytest.mark.some(1)
def test_a_full_disk_behind_standard_output_is_no_defect(tmp_path, arguments):
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123
        done = subprocess.run([*PROGRAM, *arguments, str(tmp_path)], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith(b"kforensics: standard output can't be written: No space left on device")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")  # noqa: PTH110
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_inputs_that_are_refused_are_no_findings_where_that_can_not_be_written(monkeypatch, tmp_path, stream):
    with open("/dev/full", "w", encoding="utf-8", buffering=1) as full:  # noqa: PTH123
        monkeypatch.setattr(sys, stream, full)
        assert ExitCode.INCOMPLETE == run(["diff", "--format", "json", str(tmp_path / "mistyped")])
        monkeypatch.undo()
        with suppress(OSError):
            full.close()


def test_the_exit_code_is_true_where_standard_output_is_closed(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "argv", ["kforensics", "ls", str(tmp_path / "mistyped")])
    with pytest.raises(SystemExit) as caught:
        app_module.main()
    sys.stdout.close()

    assert ExitCode.INCOMPLETE == caught.value.code
