"""Every command over data directories of which some files were mutated, renamed, cut or exchanged."""

import math
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from kforensics.ask.commands import FUNCTIONS as COMMANDS
from kforensics.cli.app import run
from tests.fuzz.mutation import mutate

RECORDED = Path(__file__).parents[2] / "fixtures" / "unclean-election"
LARGEST_COPIED = 64 << 10
"""Preallocated indexes are left out: a megabyte of zeros teaches a fuzzer nothing."""

INVOCATIONS: dict[str, Sequence[Sequence[str]]] = {
    "ls": (["ls", "--format", "json", "--files"], ["ls", "-v"]),
    "dump": (["dump", "--records", "--show-payload", "--text", "--format", "jsonl"], ["dump"]),
    "diff": (["diff", "--jobs", "1", "--format", "json"], ["diff", "--jobs", "1", "--show-records", "--explain-steps"]),
    "verify": (["verify", "--jobs", "1", "--format", "json"], ["verify", "--jobs", "1"]),
    "explain": (["explain", "--format", "json"], ["explain"], ["explain", "--format", "html"]),
    "logs": (["logs", "--jobs", "1", "--format", "json"], ["logs", "--jobs", "1", "-v"]),
    "metadata": (["metadata", "--format", "json"], ["metadata"]),
    "groups": (["groups", "--jobs", "1", "--history", "--format", "json"], ["groups", "--jobs", "1", "--history"]),
    "transactions": (
        ["transactions", "--jobs", "1", "--all", "--format", "json"],
        ["transactions", "--jobs", "1", "--all"],
    ),
    "seal": (["seal", "--jobs", "1"],),
}
FORBIDDEN = frozenset(
    chr(code)
    for code in (*range(0x0A), *range(0x0B, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)
HOSTILE_NAMES = (
    "x\x1b[2J-0",
    "orders-0.\u202efdp",
    "a" * 200 + "-2147483647",
    "caf\udce9-1",
    "..-1",
    "=cmd-0",
    "-1",
    "orders-99999999999",
)
ALLOWED_CODES = frozenset({0, 1, 2, 3})
MOST_SECONDS = 10.0


class CommandDefect(Exception):  # noqa: N818 - named like what it is
    """A command that did what none may do."""


def small_tree(target: Path) -> Path:
    """A copy of a recorded cluster, small enough to be read in some milliseconds."""
    for path in sorted(RECORDED.rglob("*")):
        if path.is_file() and path.stat().st_size <= LARGEST_COPIED:
            copy = target / path.relative_to(RECORDED)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    logs = target / "logs" / "broker-1"
    logs.mkdir(parents=True)
    seeds = sorted((Path(__file__).parents[2] / "fixtures" / "fuzz" / "server-log").iterdir())
    own = re.findall(rb"cluster.id=(\S+)", (target / "broker-1" / "meta.properties").read_bytes())[0]
    lines = b"".join(path.read_bytes() for path in seeds)
    (logs / "server.log").write_bytes(
        re.sub(rb"((?:Cluster ID =|clusterId|in cluster) )[\w-]{22}", rb"\g<1>" + own, lines)
    )
    return target


def damage_tree(random: Random, tree: Path) -> None:
    """Some files mutated, and sometimes names, kinds and places too."""
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    contents = [path.read_bytes() for path in random.sample(files, min(8, len(files)))]
    for path in random.sample(files, min(random.choice((1, 2, 5, 20)), len(files))):
        path.write_bytes(mutate(random, [path.read_bytes(), *contents[: random.choice((0, 0, 8))]]))
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        path = random.choice(files)
        if not path.exists():
            continue
        match random.randrange(6):
            case 0:
                path.rename(path.with_name(random.choice(files).name))
            case 1:
                folder = path.parent
                folder.rename(folder.with_name(random.choice(HOSTILE_NAMES)))
            case 2:
                path.unlink()
                path.symlink_to(random.choice(["/etc/passwd", ".", "nowhere", "/dev/zero"]))
            case 3:
                path.unlink()
                os.mkfifo(path)
            case 4:
                path.unlink()
                path.mkdir()
            case _:
                path.unlink()


def available() -> list[str]:
    """The commands that take data directories and are there."""
    return [name for name in INVOCATIONS if name in COMMANDS]


def invoke(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command run in this process."""
    with _capture() as out, _capture() as err:  # files, since a command may write to the descriptor itself
        with redirect_stdout(out), redirect_stderr(err):
            code = run(arguments)
        return code, _read(out), _read(err)


def _capture() -> IO[str]:
    return TemporaryFile("w+", encoding="utf-8", errors="backslashreplace", newline="")


def _read(stream: IO[str]) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def check_command(arguments: Sequence[str], tree: Path, *, most_seconds: float = math.inf) -> None:
    """One command over a tree: no defect, no traceback, nothing that steers a terminal.

    Args:
        arguments: of the command, without its inputs.
        tree: each directory in it is an input.
        most_seconds: of the processor; the long run bounds them, the suite doesn't.
    """
    inputs = sorted(path for path in tree.iterdir() if path.is_dir())
    started = time.process_time()
    code, out, err = invoke([*arguments, *map(str, inputs)])
    seconds = time.process_time() - started
    if code not in ALLOWED_CODES or "Traceback" in err:
        raise CommandDefect(f"{' '.join(arguments)}: exit code {code}: {err[-800:]}")
    steering = FORBIDDEN & (set(out) | set(err))
    if steering:
        raise CommandDefect(f"{' '.join(arguments)}: wrote {sorted(map(ascii, steering))}")
    if seconds > most_seconds:
        raise CommandDefect(f"{' '.join(arguments)}: {seconds:.0f} s")


def damaged_trees(seed: int) -> Iterator[tuple[int, Path]]:
    """Damaged trees without end, each with the seed that makes it anew; a tree is gone when the next is asked for."""
    with TemporaryDirectory() as folder:
        sound = small_tree(Path(folder, "sound"))
        while True:
            tree = Path(folder, "tree")
            shutil.copytree(sound, tree)
            damage_tree(Random(seed), tree)
            yield seed, tree
            shutil.rmtree(tree)
            seed += 1


def run_command_fuzz(names: Sequence[str], *, seed: int, count: int, work: Path) -> bool:
    """Run commands over `count` damaged trees; whether all held. A tree that breaks one is kept."""
    done = 0
    started = time.perf_counter()
    chosen = [name for name in available() if not names or name in names]
    for tree_seed, tree in damaged_trees(seed):
        if tree_seed == seed + count:
            break
        for name in chosen:
            for arguments in INVOCATIONS[name]:
                try:
                    check_command(arguments, tree, most_seconds=MOST_SECONDS)
                except Exception as error:  # noqa: BLE001 - whatever it is, the tree is kept
                    kept = work / f"defect-command-{tree_seed}"
                    if not kept.exists():
                        shutil.copytree(tree, kept, symlinks=True, ignore=_special)
                    sys.stdout.write(f"seed {tree_seed}: {error}; the tree is in {kept}\n")
                    return False
                done += 1
    sys.stdout.write(
        f"{', '.join(chosen)}: {done:,} runs over {count:,} trees from seed {seed}, {time.perf_counter() - started:.0f} s\n"
    )
    return True


def _special(folder: str, names: list[str]) -> list[str]:
    return [
        name
        for name in names
        if not (Path(folder, name).is_file() or Path(folder, name).is_dir() or Path(folder, name).is_symlink())
    ]
