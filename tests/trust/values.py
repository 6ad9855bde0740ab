"""Every command over evidence whose values are odd and whose bytes are valid: times, offsets, epochs, ids and counts at the edges of what a field holds.

    python -m tests.trust.values --runs 200 [--seed 1] [--invocations 12] [--recording GLOB]

A run makes logs of such batches, or takes a recording of `fixtures/` (its last snapshot, an earlier one and its log files), or the captures of it, changes one to twelve values in it as
`tests.trust.value_changes` does, and asks commands about it in this process. Of each it demands an exit code from 0 to 3, no exception, documents that the
schemas allow, and evidence that is as it was. Prints each defect once, with the seed that makes it anew, and how many runs there were; exit code 1 where there was one.
"""

import argparse
import fnmatch
import functools
import hashlib
import json
import re
import resource
import shutil
import signal
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NamedTuple

from kforensics.source.capture_file import MARKER
from tests.builders.directories import copied, with_short_indexes
from tests.captures import take
from tests.conftest import ROOT
from tests.fuzz.captures import packed
from tests.fuzz.commands import invoke, small_tree
from tests.schemas import SchemaMismatch, validate_document, validate_lines
from tests.trust.made_values import made_tree
from tests.trust.value_changes import EDGES, FIRST_MS, LAST_MS, change_capture, change_something

FIXTURES = ROOT / "fixtures"
UNCLEAN = "unclean-election"
"""The recording that is no archive."""
MADE = "made"
"""No recording, but logs whose batches are at the edges."""

MOST_SECONDS = 60
MOST_MEMORY = 6 << 30
CAPTURED = 0.35
"""The share of runs that change a capture in place of directories."""

TIMES = ("0", "-1", "1700000000000", "1700000000000000", str(LAST_MS), str(LAST_MS + 1), str(FIRST_MS), "9223372036854775807", "0001-01-01", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00")  # fmt: skip


class Hung(BaseException):
    """A command that needed more than a minute of the processor."""


class Defect(NamedTuple):
    """What a command did that none may do, and where."""

    what: str
    arguments: tuple[str, ...]


class Evidence(NamedTuple):
    """The inputs of a run: directories or captures of now and of before, and log files."""

    now: tuple[Path, ...]
    before: tuple[Path, ...]
    logs: tuple[Path, ...]
    partitions: tuple[str, ...]

    @property
    def whole(self) -> tuple[Path, ...]:
        """All of now."""
        return (*self.now, *self.logs)


# ---------------------------------------------------------------- recordings


def recordings(pattern: str = "*") -> list[str]:
    """The names of recordings, by which `unpacked` finds them."""
    archives = [*(FIXTURES / "incidents").glob("*.tar.xz"), *(FIXTURES / "coordinators").glob("*.tar.xz")]
    archives += (FIXTURES / "compaction").glob("*.tar.xz")
    names = [MADE, UNCLEAN, *sorted(str(one.relative_to(FIXTURES)) for one in archives)]
    return [name for name in names if fnmatch.fnmatch(Path(name).name.removesuffix(".tar.xz"), pattern)]


@functools.cache
def unpacked(name: str, work: Path) -> Path:
    """A recording as `now`, `before` and `logs`, unpacked once."""
    target = work / Path(name).name.removesuffix(".tar.xz")
    if name == UNCLEAN:
        nodes = small_tree(target / "now")
        shutil.move(nodes / "logs", target / "logs")
        return target
    with TemporaryDirectory() as scratch, tarfile.open(FIXTURES / name) as archive:
        archive.extractall(scratch, filter="data")
        root = next(Path(scratch).rglob("snapshots")).parent
        snapshots = sorted(one for one in (root / "snapshots").iterdir() if one.is_dir())
        for node in snapshots[-1].iterdir():
            with_short_indexes(node, target / "now" / node.name)
        if len(snapshots) > 1:
            for node in snapshots[len(snapshots) // 2 - 1].iterdir():
                with_short_indexes(node, target / "before" / node.name)
        if (root / "logs").is_dir():
            copied(root / "logs", target / "logs")
    return target


@functools.cache
def captured(name: str, work: Path) -> Path:
    """The captures of the nodes of a recording, taken once."""
    source = unpacked(name, work)
    target = work / "captured" / source.name
    for folder in ("now", "before"):
        for node in sorted((source / folder).iterdir()) if (source / folder).is_dir() else ():
            (target / folder).mkdir(parents=True, exist_ok=True)
            take([node], target / folder / f"{node.name}.kfc", with_tail=len(node.name) % 2 == 0)
    if (source / "logs").is_dir():
        copied(source / "logs", target / "logs")
    return target


def evidence_in(tree: Path) -> Evidence:
    """What is in a tree."""
    found = [
        tuple(sorted((tree / name).iterdir())) if (tree / name).is_dir() else () for name in ("now", "before", "logs")
    ]
    partitions = {
        one.name for one in (tree / "now").rglob("*-*") if re.search(r"-[0-9]+($|\\.)", one.name) and one.is_dir()
    } or {"orders-0", "__cluster_metadata-0"}
    return Evidence(found[0], found[1], found[2], tuple(sorted(partitions)))


def changed_tree(random: Random, name: str, work: Path, target: Path) -> list[str]:
    """Make a changed copy of a recording, or logs of batches at the edges; return what was changed."""
    if name == MADE:
        return made_tree(random, target)
    if random.random() >= CAPTURED:
        copied(unpacked(name, work), target)
        return [change_something(random, target) for _ in range(random.choice((1, 2, 4, 8, 12)))]
    shutil.copytree(captured(name, work), target)
    files = sorted(target.rglob("*.kfc"))
    path = random.choice(files)
    parts, manifest = parts_of(path)
    done = [change_capture(random, parts, manifest) for _ in range(random.choice((1, 1, 2, 3)))]
    packed(parts, manifest, path, lambda _: None)
    return [f"{path.relative_to(target)}: {one}" for one in done]


def parts_of(path: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The parts of a capture by name, and its manifest."""
    with zipfile.ZipFile(path) as archive:
        parts = {one: archive.read(one) for one in archive.namelist()}
    manifest = json.loads(parts.pop("manifest.json"))
    del parts[MARKER]
    return parts, manifest


def _size(name: str) -> int:
    path = FIXTURES / name
    return path.stat().st_size if path.is_file() else 0


# ---------------------------------------------------------------- commands


def invocations(random: Random, given: Evidence, out: Path) -> Iterator[tuple[str, ...]]:
    """Every command in its forms over the evidence, in any order.

    Args:
        random: chooses offsets, times and partitions.
        given: the inputs.
        out: a directory in which outputs may be made.
    """
    now, whole = tuple(map(str, given.now)), tuple(map(str, given.whole))
    before = tuple(word for one in given.before for word in ("--before", str(one)))
    partition = random.choice(given.partitions)
    topic, _, number = partition.partition(".")[0].rpartition("-")
    offset = str(random.choice((0, 1, 5, 30, 40, *(edge for edge in EDGES if edge >= 0))))
    first, last = (random.choice(TIMES) for _ in range(2))
    kafka = random.choice(("0.11.0.0", "1.1.0", "2.8.0", "3.6.0", "3.9.0", "4.1.0", "4.3.0"))
    leader = str(random.choice((1, 2, 3)))
    at = ("-t", topic, "-p", number)
    json_ = ("--format", "json")
    made = iter(range(1000))
    key = out / "key"
    key.write_text("0123456789abcdef" * 2)

    def to(ending: str = "") -> tuple[str, str]:
        return "-o", str(out / f"out-{next(made)}{ending}")

    yield from (
        ("ls", *whole, *json_, "--files"), ("ls", *whole, "-v"), ("ls", *now, "--depth", "content", "--format", "jsonl"),
        ("dump", *now, "--records", "--show-payload", "--text", "--format", "jsonl"), ("dump", *now), ("dump", *now, "--records"),
        ("dump", *now, *json_), ("dump", *now, f"--from-time={first}", f"--to-time={last}", "--from-offset", offset),
        ("verify", *now, *json_), ("verify", *now), ("verify", *now, "--format", "sarif"), ("verify", *now, "--level", "headers"),
        ("diff", *whole, *json_), ("diff", *whole, "--show-records", "--show-payload", "--explain-steps"), ("diff", *now, *json_, "--depth", "tails"),
        ("diff", *now, *json_, "--leader", leader), ("diff", *now, "--protocol", random.choice(("hw", "kip-101", "kip-279", "kip-595"))),
        ("diff", *whole, "--brief"), ("diff", *now, "--format", "jsonl"), ("diff", *now, "--replicas", "1,2,3", "--stopped", "-v"),
        ("explain", *whole, *json_), ("explain", *now), ("explain", *now, *json_), ("explain", *whole, *before, *json_), ("explain", *whole, *before, "-v"),
        ("explain", *now, *before, *json_), ("explain", *whole, *before, "--format", "html", *to(".html")), ("explain", *whole, *before, "--brief"),
        ("explain", *whole, *before, "--depth", "tails", *json_), ("explain", *whole, *before, f"--since={first}", *json_), ("explain", *whole, f"--until={last}"),
        ("explain", *whole, "--log-timezone", random.choice(("+14:00", "-12:00", "Europe/Berlin"))), ("explain", *whole, "--stopped", "--format", "jsonl"),
        ("predict", *now, "--kafka", kafka, *json_), ("predict", *now, "--kafka", kafka, f"--now={last}"), ("predict", *now, "--kafka", kafka, "--ways-out", *json_),
        ("predict", *now, "--order", "--kafka", "3.9.0", *json_), ("predict", *now, "--kafka", kafka, "--depth", "tails", f"--now={first}"),
        ("groups", *whole, "--history", *json_), ("groups", *now, "--history", "--expired"), ("groups", *now, *before, *json_), ("groups", *now, f"--at={last}"),
        ("transactions", *now, "--all", *json_), ("transactions", *now, "--all"), ("transactions", *now, *before, *json_), ("transactions", *now, f"--at={first}"),
        ("salvage", *whole, "--what", "all", *to(), *json_), ("salvage", *whole, *before, "--what", "lost", *to(), *json_), ("salvage", *now, "--what", "at-risk", *to()),
        ("salvage", *now, "--what", "all", "--form", "parquet", *to(), *json_), ("salvage", *now, "--what", "all", "--form", "segments", *to(), *json_),
        ("salvage", *now, "--what", "all", "--form", random.choice(("kcat", "console")), *to()), ("salvage", *now, "--what", "all", *at, "--time", f"{first}..{last}", *to()),
        ("salvage", *now, "--what", "all", *at, "--offsets", f"{offset}..", *to(), "--with-aborted"),
        ("trace", *whole, *before, *at, "--offset", offset, *json_), ("trace", *whole, *at, "--offset", offset), ("trace", *now, "-t", topic, "--key", "k1", *before, *json_),
        ("trace", *whole, *before, "-t", topic, "--value", "1", "--show-payload"), ("trace", *now, *at, f"--time={first}..{last}", "--value-regex", ".", *json_),
        ("trace", *now, *before, "-t", topic, "--key", "k1", "--erasure"), ("trace", *whole, *before, *at, "--offset", offset, "--format", "html", *to(".html")),
        ("metadata", *now, *json_), ("metadata", *now), ("metadata", *now, "--topic", topic, *json_), ("metadata", *now, "--topic", topic, "--partition", number),
        ("metadata", *now, "--at", offset, *json_), ("metadata", *now, "--broker", leader), ("metadata", *now, "--format", "jsonl"),
        ("seal", *whole), ("capture", *now[:1], "--plan"), ("capture", *now[:1], *to(".kfc"), *json_), ("capture", *now[-1:], "--depth", "tails", *to(".kfc")),
        ("capture", *now[:1], "--redact-topics", "--redact-key", str(key), *to(".kfc")), ("capture", *now[-1:], "--all-batches", "--with-tail", *to(".kfc")),
        ("groups", *now, "--redact", "--redact-key", str(key), *json_), ("explain", *whole, *before, "--redact", "--redact-key", str(key), *json_),
    )  # fmt: skip


FOLLOWING = ("diff", "explain", "ls", "verify", "predict", "groups", "transactions", "metadata")
"""What is asked of a capture that a run has made."""


def chosen(random: Random, given: Evidence, out: Path, count: int) -> list[tuple[str, ...]]:
    """Some invocations: those of rare commands as likely as those of commands with many forms."""
    every = [one for one in invocations(random, given, out) if one[0] != "capture" or given.now[0].is_dir()]
    kinds = Counter(one[0] for one in every)
    weights = [random.random() ** (kinds[one[0]] ** 0.5) for one in every]
    ranked = sorted(range(len(every)), key=weights.__getitem__, reverse=True)
    return [every[at] for at in ranked[:count]]


def defect_of(arguments: Sequence[str]) -> Defect | None:
    """Run one command; what it did wrong, if anything."""
    tried = tuple(arguments)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        code, out, err = invoke([*arguments, "--jobs", "1"] if arguments[0] in _WITH_JOBS else list(arguments))
    except Hung:
        return Defect(f"{arguments[0]}: more than {MOST_SECONDS} s", tried)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
        return Defect(f"{arguments[0]}: {type(error).__name__}: {error}", tried)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if code not in {0, 1, 2, 3}:
        place = err.strip().splitlines()[-1] if err.strip() else ""
        return Defect(f"exit code {code}: {place}", tried)
    if "Traceback" in err or "not enough memory" in err:
        return Defect(f"{arguments[0]}: {err[-400:]}", tried)
    try:
        if out.strip() and "json" in arguments and code != 2:
            validate_document(out)
        elif out.strip() and "jsonl" in arguments:
            validate_lines(arguments[0], out)
    except (SchemaMismatch, ValueError) as error:
        return Defect(f"{arguments[0]}: {type(error).__name__}: {str(error)[:500]}", tried)
    return None


_WITH_JOBS = {
    "diff",
    "verify",
    "explain",
    "predict",
    "groups",
    "transactions",
    "salvage",
    "trace",
    "seal",
    "capture",
    "dump",
}


def digest(tree: Path) -> str:
    """The content, the names and the times of everything in a tree."""
    found = hashlib.sha256()
    for path in sorted(tree.rglob("*")):
        status = path.lstat()
        found.update(
            f"{path.relative_to(tree)} {status.st_mode} {status.st_size} {status.st_mtime_ns}\0".encode(
                "utf-8", "surrogateescape"
            )
        )
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


class Run(NamedTuple):
    """One run: what was changed, the commands that were run, and what was wrong."""

    changes: list[str]
    commands: list[str]
    defects: list[Defect]


def one_run(seed: int, names: Sequence[str], work: Path, *, count: int) -> Run:
    """Change a recording as the seed says and ask some commands about it."""
    random = Random(seed)
    name = min(random.choices(list(names), k=2), key=_size)  # small ones are asked more often, since they are quick
    with TemporaryDirectory(dir=work) as folder:
        tree, out = Path(folder) / "tree", Path(folder) / "out"
        out.mkdir()
        changes = [name, *changed_tree(random, name, work, tree)]
        before = digest(tree)
        commands, defects = [], []
        for arguments in chosen(random, evidence_in(tree), out, count):
            commands.append(arguments[0])
            found = defect_of(arguments)
            made = out / Path(arguments[arguments.index("-o") + 1]).name if "-o" in arguments else None
            if found is None and made is not None and made.suffix == ".kfc" and made.exists():
                follower: tuple[str, ...] = (random.choice(FOLLOWING), str(made), "--format", "json")
                follower = (*follower, "--kafka", "3.9.0") if follower[0] == "predict" else follower
                commands.append(follower[0])
                found = defect_of(follower)
            if found is not None:
                defects.append(found)
        if digest(tree) != before:
            defects.append(Defect("the evidence was changed", tuple(commands)))
        return Run(changes, commands, defects)


@contextmanager
def bounded() -> Iterator[None]:
    """Memory and, for each command, time of the processor are bounded: a range of 2^63 offsets must not be walked."""

    def hung(_number: int, _frame: FrameType | None) -> None:
        raise Hung

    held = signal.signal(signal.SIGPROF, hung)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGPROF, held)


def main(arguments: Sequence[str]) -> int:
    """Run as many as asked for and print the defects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--invocations", type=int, default=12)
    parser.add_argument("--recording", default="*")
    options = parser.parse_args(arguments)
    names = recordings(options.recording)
    seen: Counter[str] = Counter()
    commands: Counter[str] = Counter()
    started = time.monotonic()
    with bounded(), TemporaryDirectory(prefix="kforensics-values-") as work:
        for seed in range(options.seed, options.seed + options.runs):
            done = one_run(seed, names, Path(work), count=options.invocations)
            commands.update(done.commands)
            for one in done.defects:
                key = one.what[:160]
                seen[key] += 1
                if seen[key] == 1:
                    print(
                        f"seed {seed}: {one.what}\n    {' '.join(one.arguments)}\n    " + "\n    ".join(done.changes),
                        flush=True,
                    )
    print(
        f"{options.runs:,} runs from seed {options.seed}, {commands.total():,} commands ({', '.join(f'{name} {number}' for name, number in sorted(commands.items()))}), "
        f"{time.monotonic() - started:.0f} s: {len(seen)} defects"
    )
    return int(bool(seen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
