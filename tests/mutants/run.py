"""Break one rule at a time and show that the tables of the models or the joined property test notice.

    python tests/mutants/run.py            all mutants, two at a time
    python tests/mutants/run.py epochs     those whose file or name holds the word

Exit code 1 where a mutant survives. The package is copied for each mutant; the working tree is not touched.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Mutant(NamedTuple):
    """One rule, broken: in `file`, `old` (which must occur once) becomes `new`."""

    name: str
    file: str
    old: str
    new: str


EPOCHS = "protocol/epochs.py"
TRUNCATION = "protocol/truncation.py"
VISIBILITY = "protocol/visibility.py"
ELECTION = "protocol/election.py"
RECOVERY = "protocol/recovery.py"
MODELS = "simulation/models.py"

MUTANTS = (
    Mutant(
        "the latest epoch is not known",
        EPOCHS,
        "if not epochs or requested > epochs[-1].leader_epoch:",
        "if not epochs or requested >= epochs[-1].leader_epoch:",
    ),
    Mutant(
        "an epoch ends where it begins",
        EPOCHS,
        "above = bisect_right(epochs, requested, key=_leader_epoch_of)",
        "above = max(bisect_right(epochs, requested - 1, key=_leader_epoch_of), 1)",
    ),
    Mutant(
        "the answer repeats the question",
        EPOCHS,
        "EpochEndOffset(epochs[above - 1].leader_epoch,",
        "EpochEndOffset(requested,",
    ),
    Mutant(
        "a cut keeps the epoch that starts at it",
        EPOCHS,
        "return tuple(entry for entry in epochs if entry.start_offset < truncate_to)",
        "return tuple(entry for entry in epochs if entry.start_offset <= truncate_to)",
    ),
    Mutant(
        "the log start keeps an epoch too many",
        EPOCHS,
        "epochs[gone].start_offset <= log_start_offset",
        "epochs[gone].start_offset < log_start_offset",
    ),
    Mutant(
        "a new epoch leaves what it contradicts",
        EPOCHS,
        "epochs[keep - 1].start_offset >= start_offset",
        "epochs[keep - 1].start_offset > start_offset",
    ),
    Mutant(
        "the leader's end alone decides",
        TRUNCATION,
        "target, done = min(own.end_offset, answer.end_offset), True",
        "target, done = answer.end_offset, True",
    ),
    Mutant(
        "the follower's end alone decides",
        TRUNCATION,
        "target, done = min(own.end_offset, answer.end_offset), True",
        "target, done = own.end_offset, True",
    ),
    Mutant(
        "one question is enough",
        TRUNCATION,
        "target, done = own.end_offset, False",
        "target, done = min(own.end_offset, answer.end_offset), True",
    ),
    Mutant(
        "a fetch does not compare epochs",
        TRUNCATION,
        "elif answer.leader_epoch != requested or answer.end_offset < before.log_end_offset:",
        "elif answer.end_offset < before.log_end_offset:",
    ),
    Mutant(
        "a fetch does not compare ends",
        TRUNCATION,
        "elif answer.leader_epoch != requested or answer.end_offset < before.log_end_offset:",
        "elif answer.leader_epoch != requested:",
    ),
    Mutant(
        "a leader does not enter its epoch",
        TRUNCATION,
        "    if not rules.enters_epoch_when_elected:\n        return leader\n",
        "    if new_epoch >= 0:\n        return leader\n",
    ),
    Mutant(
        "a cut forgets the epochs",
        TRUNCATION,
        "        epochs=truncate_from_end(log.epochs, truncate_to),\n        log_start_offset",
        "        epochs=log.epochs,\n        log_start_offset",
    ),
    Mutant(
        "a follower believes the leader's high watermark",
        VISIBILITY,
        "return min(log_end_offset, leader_high_watermark_in_answer)",
        "return leader_high_watermark_in_answer",
    ),
    Mutant(
        "one replica of the ISR is enough",
        VISIBILITY,
        "max(high_watermark, min(log_end_offsets, default=high_watermark))",
        "max(high_watermark, max(log_end_offsets, default=high_watermark))",
    ),
    Mutant(
        "the high watermark falls",
        VISIBILITY,
        "return max(high_watermark, min(log_end_offsets, default=high_watermark))",
        "return min(log_end_offsets, default=high_watermark)",
    ),
    Mutant(
        "min.insync.replicas is not asked",
        VISIBILITY,
        "if strict_min_isr and isr_size < min_insync_replicas:",
        "if strict_min_isr and isr_size < 0:",
    ),
    Mutant(
        "who lags joins the ISR",
        VISIBILITY,
        "return follower_log_end_offset >= high_watermark and reached_epoch",
        "return reached_epoch",
    ),
    Mutant(
        "whoever lives leads",
        ELECTION,
        "        if replica in live and replica in partition.isr:\n            return _elected(partition, replica, ElectionKind.CLEAN",
        "        if replica in live:\n            return _elected(partition, replica, ElectionKind.CLEAN",
    ),
    Mutant(
        "an unclean leader keeps the ISR",
        ELECTION,
        "if kind in {ElectionKind.ELIGIBLE, ElectionKind.LAST_KNOWN, ElectionKind.UNCLEAN}:",
        "if kind in {ElectionKind.ELIGIBLE}:",
    ),
    Mutant(
        "a leader changes within an epoch",
        ELECTION,
        "            leader_epoch=partition.leader_epoch + 1,\n            partition_epoch=partition.partition_epoch + 1,\n            eligible",
        "            leader_epoch=partition.leader_epoch,\n            partition_epoch=partition.partition_epoch + 1,\n            eligible",
    ),
    Mutant(
        "recovery goes on behind a bad batch",
        RECOVERY,
        "                kept = list(segments[: index + 1])\n                break\n",
        "",
    ),
    Mutant(
        "recovery begins a segment late",
        RECOVERY,
        "if base_offset <= recovery_point:",
        "if base_offset - 1 <= recovery_point:",
    ),
    Mutant(
        "kip-320 without the fence on fetches",
        MODELS,
        '"""Whether both are in the same epoch."""\n        return shares_epoch(leader, follower)',
        '"""Whether both are in the same epoch."""\n        return presumes(leader) and follows(follower, leader)',
    ),
    Mutant(
        "kip-320 without the fence on requests",
        MODELS,
        "return presumes(leader) and leader.replica.leader_epoch == leader_epoch",
        "return presumes(leader)",
    ),
    Mutant(
        "kip-320 lets followers join before the leader's epoch",
        MODELS,
        "return shares_epoch(leader, follower) and reaches and high_watermark_is_current(leader.replica)",
        "return shares_epoch(leader, follower) and reaches",
    ),
    Mutant(
        "a follower keeps what it should cut",
        MODELS,
        "            log=follower.log[:truncate_to],\n            high_watermark=min(truncate_to",
        "            log=follower.log,\n            high_watermark=min(truncate_to",
    ),
    Mutant(
        "kip-101 cuts an epoch early",
        MODELS,
        "if record.leader_epoch > last_epoch)",
        "if record.leader_epoch >= last_epoch)",
    ),
)

KILLERS = (
    ("tables", ("tests/simulation/test_explore.py", "-k", "not 3222")),
    (
        "histories",
        ("tests/simulation/test_promises.py", "tests/simulation/test_joined.py", "tests/simulation/test_scenarios.py"),
    ),
    ("rules", ("tests/protocol",)),
)


def main(words: list[str]) -> int:
    """Run the mutants and print a line for each."""
    chosen = [mutant for mutant in MUTANTS if all(word in f"{mutant.file} {mutant.name}" for word in words)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(judge, chosen))
    survivors = results.count(None)
    print(f"{len(results) - survivors} of {len(results)} mutants killed")
    return 1 if survivors or not results else 0


def judge(mutant: Mutant) -> str | None:
    """Which tests kill the mutant, none where it survives."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        ignored = shutil.ignore_patterns("__pycache__", "mutants", "incidents")
        for name in ("kforensics", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", copy)
        file = copy / "kforensics" / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            print(f"STALE     {mutant.file}: {mutant.name}: the text occurs {text.count(mutant.old)} times", flush=True)
            return None
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        killer = next((name for name, arguments in KILLERS if fails(copy, arguments)), None)
    seconds = time.monotonic() - started
    verdict = "SURVIVES" if killer is None else f"killed by {killer}"
    print(f"{verdict:<20} {mutant.file}: {mutant.name} ({seconds:.0f} s)", flush=True)
    return killer


def fails(copy: Path, arguments: tuple[str, ...]) -> bool:
    """Whether the tests fail on the copy."""
    environment = os.environ | {"PYTHONPATH": str(copy), "KFORENSICS_SEEDS": "60", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False)
    if done.returncode not in {0, 1}:
        message = f"pytest could not run {arguments}: {done.stdout.decode()[-500:]}"
        raise RuntimeError(message)
    return done.returncode == 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
