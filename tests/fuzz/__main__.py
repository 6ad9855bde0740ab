"""Fuzz decoders and commands.

    python -m tests.fuzz --runs 1000000                    every decoder, mutated recordings, by a seed
    python -m tests.fuzz segment zstd --engine atheris     coverage-guided (pip install atheris); the corpus grows in --work
    python -m tests.fuzz --commands --runs 2000            every command over mutated data directories

Prints one line a target. Stops a target at the first defect, keeps its input in --work, and then exits with 1.
"""

import argparse
import hashlib
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import gettempdir
from types import FrameType

from tests.fuzz.corpus import CORPUS, seeds
from tests.fuzz.mutation import mutations
from tests.fuzz.targets import TARGETS, attempt

SECONDS_PER_MEBIBYTE = 1.0
MEMORY = 64 << 20
"""Bytes of memory above which, beside four times its length, an input is a defect."""


class Hung(BaseException):
    """A decoder that needed more than a second for each mebibyte, and at least a second."""


def guarded(target: str, data: bytes) -> bool:
    """Run with the promised bounds of time and memory; whether the decoder took the input."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Processor time: on a busy machine a wall clock would blame the decoder for its neighbours.
    signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_MEBIBYTE * max(len(data) / (1 << 20), 1.0))
    try:
        taken = attempt(target, data)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if grown > MEMORY + 4 * len(data):
        raise MemoryError(f"{grown:,} bytes for an input of {len(data):,}")
    return taken


def _hung(_number: int, _frame: FrameType | None) -> None:
    raise Hung


def run_mutations(target: str, *, seed: int, count: int, seconds: float, work: Path) -> bool:
    """Run a target over mutated inputs, as many as asked for or as the time allows; whether it held."""
    signal.signal(signal.SIGPROF, _hung)
    inputs = seeds(target)
    for data in [*inputs, *inputs]:  # what is loaded and cached at first is no input's doing
        attempt(target, data)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    taken = done = 0
    slowest = 0.0
    for data in mutations(seed, inputs):
        if done == count or time.perf_counter() - started > seconds:
            break
        begun = time.process_time()
        try:
            try:
                taken += guarded(target, data)
            except Hung:  # once may be the machine's doing
                taken += guarded(target, data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, its input is kept
            path = _keep(work, target, data)
            sys.stdout.write(
                f"{target}: {type(error).__name__}: {error} after {done:,} executions, seed {seed}: {path}\n"
            )
            return False
        slowest = max(slowest, time.process_time() - begun)
        done += 1
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024
    sys.stdout.write(
        f"{target}: {done:,} executions, {taken:,} taken as valid, {time.perf_counter() - started:.0f} s, "
        f"slowest {slowest * 1000:.0f} ms, peak memory grown by {grown:.0f} MiB, seed {seed}\n"
    )
    sys.stdout.flush()
    return True


def _keep(work: Path, target: str, data: bytes) -> Path:
    work.mkdir(parents=True, exist_ok=True)
    path = work / f"defect-{target}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


def run_atheris(target: str, *, count: int, work: Path) -> bool:
    """Run a target under libFuzzer in a process of its own, since it never returns."""
    corpus = work / f"corpus-{target}"
    corpus.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.coverage_guided", target, str(corpus), str(CORPUS / target)]
    command += [
        f"-runs={count}",
        "-max_len=4096",
        "-timeout=1200",  # of the wall clock, which other work on the machine moves, too
        "-rss_limit_mb=2048",
        f"-artifact_prefix={work}/defect-{target}-",
        "-verbosity=1",
    ]
    started = time.perf_counter()
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = result.stderr.splitlines()
    last = next((line for line in reversed(lines) if "cov:" in line), "")
    coverage = last[last.find("cov:") :].split(" corp")[0] if last else "?"
    done = next((line for line in reversed(lines) if line.startswith("Done")), "no runs completed")
    sys.stdout.write(f"{target}: {done}; {coverage}; {time.perf_counter() - started:.0f} s with atheris\n")
    sys.stdout.flush()
    if result.returncode:
        sys.stdout.write("\n".join(lines[-40:]) + "\n")
    return result.returncode == 0


def main() -> int:
    """Run what was asked for; 1 where a defect was found."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", help="decoders or commands; all of them where none is named")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="go on to the next target after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=["mutate", "atheris"], default="mutate")
    parser.add_argument("--commands", action="store_true", help="commands in place of decoders")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(gettempdir()) / "kforensics-fuzz",
        help="where inputs that break something are kept",
    )
    options = parser.parse_args()
    held = True
    if options.commands:
        from tests.fuzz.commands import run_command_fuzz

        return 0 if run_command_fuzz(options.targets, seed=options.seed, count=options.runs, work=options.work) else 1
    for target in options.targets or TARGETS:
        if options.engine == "atheris":
            held &= run_atheris(target, count=options.runs, work=options.work)
        else:
            held &= run_mutations(
                target, seed=options.seed, count=options.runs, seconds=options.seconds, work=options.work
            )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
