"""`verify` and `diff` against the data directories of brokers that are being written to; opt-in, since it needs Kafka's own jars and a JDK.

    python -m tests.trust.live_soak --jars DIR --runs 1000             jars of Kafka 4.x, as `mvn dependency:copy-dependencies` fetches them
    python -m tests.trust.live_soak --jars DIR --latency-rounds 4      what readers cost producers: phases with and without them by turns
    python -m tests.trust.live_soak --jars DIR --captures 34 --latency-rounds 5 --reader capture   captures of the three brokers, and what they cost
    python -m tests.trust.live_soak --pom > pom.xml                    the pom for the jars

Three brokers with small segments and short retention, so that files roll, are renamed and vanish all the time. A run holds if it ends by
itself with exit code 0, 1 or 3, calls nothing damaged, and reports as problems only what changed or vanished while it was read. Logs of one partition that are read one after the
other while they grow look as if one of them had to be cut; such a run is counted as skewed, and holds only where the change of that very log was
reported, so that the answer claims nothing for certain. Captures of the three brokers are taken one after the other, seconds apart; `verify` reads those of
each round, and `diff` those of every fourth.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.trust.live_cluster import POM, Load, Sample, cluster, load

EXPECTED_PROBLEM = re.compile(
    r"of a capture: segments are reported|of one moment|changed while|changed after|vanished|no such file|deleted or renamed|can't be listed: No such file|grew|shrank"
)
COMMANDS = ("verify", "diff")


def judge(command: str, run: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """Whether a run held, and why not."""
    if run.returncode not in {0, 1, 3} or "Traceback" in run.stderr:
        return "defect", f"exit code {run.returncode}: {run.stderr[-500:]}"
    document = json.loads(run.stdout)
    if command == "verify":
        damaged = [one for one in document["files"] if one["state"] == "damaged"]
        if damaged:
            return "damaged", json.dumps(damaged[0])[:600]
    changed = {Path(one["path"]).parent.name for one in document["problems"]}
    grave = [one for one in document["findings"] if one["severity"] in {"critical", "error"}]
    is_hedged = run.returncode == 3 or document["answer"]["state"] in {"maybe-at-risk", "unknown"}
    if grave and is_hedged and all(f"{one['topic']}-{one['partition']}" in changed for one in grave):
        return "skewed", ""
    if grave:
        return "false alarm", f"{grave[0]['code']}: {grave[0]['statement']}"
    strange = [one for one in document["problems"] if not EXPECTED_PROBLEM.search(one["message"])]
    if strange:
        return "strange problem", json.dumps(strange[0])
    return ("problems", "") if document["problems"] else ("calm", "")


def read_once(command: str, folders: Sequence[Path], rate: str) -> subprocess.CompletedProcess[str]:
    """One command over the live directories."""
    arguments = [sys.executable, "-m", "kforensics", command, "--format", "json", "--read-rate", rate]
    return subprocess.run(
        [*arguments, *map(str, folders)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KFORENSICS_TRACEBACK": "1"},
    )


def capture_once(folders: Sequence[Path], root: Path, rate: str) -> list[subprocess.CompletedProcess[str]]:
    """A capture of each broker, one after the other, in place of those before."""
    runs = []
    for folder in folders:
        out = root / "captures" / f"{folder.name}.kfc"
        out.parent.mkdir(exist_ok=True)
        out.unlink(missing_ok=True)
        command = [sys.executable, "-m", "kforensics", "capture", str(folder), "-o", str(out), "--format", "json"]
        arguments = [*command, "--read-rate", rate]
        runs.append(subprocess.run(arguments, capture_output=True, text=True, check=False))
    return runs


def judge_captures(
    runs: Sequence[subprocess.CompletedProcess[str]], root: Path, rate: str, commands: Sequence[str]
) -> tuple[str, str]:
    """Whether captures held, and what `verify` and `diff` make of them."""
    for run in runs:
        if run.returncode not in {0, 3}:
            return "defect", f"exit code {run.returncode}: {run.stderr[-500:]}"
        document = json.loads(run.stdout)
        strange = [one for one in document["problems"] if not EXPECTED_PROBLEM.search(one["message"])]
        if strange:
            return "strange problem", json.dumps(strange[0])
    for command in commands:
        read = read_once(command, [root / "captures"], rate)
        outcome, reason = judge(command, read)
        if outcome not in {"calm", "problems", "skewed"}:
            (root / f"{command}-of-captures.json").write_text(read.stdout)
            return f"{command}: {outcome}", reason
    return "held", ""


def soak_captures(folders: Sequence[Path], root: Path, rounds: int, rate: str) -> Counter[str]:
    """Capture all brokers again and again; each kind of outcome with its count of captures."""
    outcomes: Counter[str] = Counter()
    for number in range(rounds):
        outcome, reason = judge_captures(
            capture_once(folders, root, rate), root, rate, COMMANDS if number % 4 == 0 else COMMANDS[:1]
        )
        outcomes[f"capture: {outcome}"] += len(folders)
        if reason:
            _say(f"round {number}: {outcome}: {reason}")
    return outcomes


def soak(folders: Sequence[Path], root: Path, runs: int, rate: str) -> Counter[str]:
    """Run both commands by turns; each kind of outcome with its count."""
    outcomes: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    started = time.monotonic()
    for number in range(runs):
        command = COMMANDS[number % len(COMMANDS)]
        run = read_once(command, folders, rate)
        outcome, reason = judge(command, run)
        outcomes[f"{command}: {outcome}"] += 1
        if reason and shown[outcome] < 3:
            shown[outcome] += 1
            _say(f"run {number}, {command}: {outcome}: {reason}")
            (root / f"{outcome.replace(' ', '-')}-{number}.json").write_text(run.stdout)
        if number % 100 == 99:
            _say(f"{number + 1} runs in {time.monotonic() - started:.0f} s: {dict(sorted(outcomes.items()))}")
    return outcomes


def measure_latency(
    folders: Sequence[Path], producer: Load, rounds: int, seconds: float, read: Callable[[int], object]
) -> None:
    """Phases without and with readers by turns, so that whatever else the machine does falls on both."""
    samples: dict[bool, list[Sample]] = {False: [], True: []}
    medians: dict[bool, list[float]] = {False: [], True: []}
    reads = 0
    for _ in range(rounds):
        for with_readers in (False, True):
            begin = time.time()
            while with_readers and time.time() < begin + seconds:
                read(reads)
                reads += 1
            time.sleep(max(0.0, begin + seconds - time.time()))
            found = producer.samples(begin, time.time())
            samples[with_readers] += found
            medians[with_readers] += [statistics.median(one.latency_ms for one in found)] if found else []
            _say(_describe("with readers" if with_readers else "without readers", found))
    for with_readers, found in samples.items():
        _say("all " + _describe(f"with readers ({reads} runs)" if with_readers else "without readers", found))
        if of_phases := sorted(medians[with_readers]):
            _say(
                f"    p50 of {len(of_phases)} phases: {of_phases[0]:.1f} to {of_phases[-1]:.1f} ms, median {statistics.median(of_phases):.1f}"
            )


def _describe(name: str, samples: Sequence[Sample]) -> str:
    if len(samples) < 2:
        return f"{name}: {len(samples)} records"
    parts = statistics.quantiles((sample.latency_ms for sample in samples), n=1000)
    shown = ", ".join(
        f"{label} {parts[place]:.1f} ms" for label, place in (("p50", 499), ("p95", 949), ("p99", 989), ("p99.9", 998))
    )
    return f"{name}: {len(samples):,} records, {shown}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Start, read, and say what came of it; 1 where a run did not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", type=Path)
    parser.add_argument("--pom", action="store_true", help="print a pom that fetches the jars")
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--read-rate", default="50MB/s")
    parser.add_argument("--records-per-second", type=int, default=2_000)
    parser.add_argument("--latency-rounds", type=int, default=0, help="phases of each kind")
    parser.add_argument("--captures", type=int, default=0, help="rounds in which each broker is captured")
    parser.add_argument("--reader", choices=("commands", "capture"), default="commands", help="of --latency-rounds")
    parser.add_argument("--phase-seconds", type=float, default=10.0)
    parser.add_argument("--work", type=Path, help="a directory to keep; else a temporary one")
    options = parser.parse_args()
    if options.pom:
        sys.stdout.write(POM)
        return 0
    if options.jars is None:
        parser.error("--jars is needed")
    outcomes: Counter[str] = Counter()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the brokers are stopped, too
    with TemporaryDirectory() as temporary:
        root = (options.work or Path(temporary)).resolve()
        root.mkdir(parents=True, exist_ok=True)
        jars = options.jars.resolve()
        with cluster(jars, root) as folders, load(jars, root, options.records_per_second) as producer:
            rate = options.read_rate

            def read(number: int) -> object:
                if options.reader == "capture":
                    return capture_once(folders, root, rate)
                return read_once(COMMANDS[number % len(COMMANDS)], folders, rate)

            measure_latency(folders, producer, options.latency_rounds, options.phase_seconds, read)
            outcomes = soak_captures(folders, root, options.captures, rate)
            outcomes += soak(folders, root, options.runs, rate)
    held = all(name.endswith((": calm", ": problems", ": skewed", ": held")) for name in outcomes)
    if outcomes:
        _say(
            f"{outcomes.total()} runs: {dict(sorted(outcomes.items()))}: {'all held' if held else 'some did not hold'}"
        )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
