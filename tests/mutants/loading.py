"""Break one rule of a start at a time and show that recorded verdicts of Kafka's loaders, or tests of the node, notice.

    python -m tests.mutants.loading            all of them

Switches by version are turned over in place and held against the recorded verdicts; other rules are broken in a copy, as `tests.mutants.run` does.
Exit code 1 where one is not noticed.
"""

import json
import shutil
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kforensics.protocol.loading.versions import LoadingRules, loading_rules
from kforensics.protocol.versions import KafkaVersion
from tests.mutants.catalogue import Mutant
from tests.mutants.run import ROOT, fails
from tests.oracle.loading.judge import differences, predicted
from tests.oracle.loading.made import Case, edited_files, write_files

BY_TESTS = frozenset(
    {
        "renames_strays_before_load",
        "storage_exceptions_end_start",
        "io_errors_end_start",
        "survives_metadata_dir",
        "ignores_remote_index_cache",
        "truncates_snapshots",
        "knows_deletions",
        "wraps_bad_partitions",
    }
)
"""Switches of the node, and of a file that no recorded case has, which no recorded verdict of a loader shows: broken in the text, and held against the tests."""
NODE = "protocol/loading/node.py"
STARTS = "protocol/loading/starts.py"
RETENTION = "protocol/retention.py"
VERSIONS = "protocol/loading/versions.py"
TESTS = (
    "tests/protocol/loading/test_node.py",
    "tests/protocol/test_retention.py",
    "tests/protocol/loading/test_rules.py",
    "tests/cli/test_predict_node.py",
)
MUTANTS = (
    Mutant(
        "strays are renamed before duplicates in 3.7.0",
        "protocol/versions.py",
        "return version >= (3, 7, 1)",
        "return version >= (3, 7)",
    ),
    Mutant(
        "an I/O error takes the directory in 0.11",
        VERSIONS,
        "io_errors_end_start=version < (1, 0)",
        "io_errors_end_start=version < (0, 11)",
    ),
    Mutant("a storage exception takes the directory in 3.2.0", VERSIONS, "version < (3, 2, 1)", "version < (3, 2)"),
    Mutant("the index cache is no log before 3.5", VERSIONS, "version >= (3, 5)", "version >= (3, 3)"),
    Mutant(
        "a snapshot is truncated in 2.1",
        VERSIONS,
        "truncates_snapshots=version < (2, 1)",
        "truncates_snapshots=version < (2, 2)",
    ),
    Mutant(
        "no snapshot is truncated before 2.1",
        VERSIONS,
        "truncates_snapshots=version < (2, 1)",
        "truncates_snapshots=False",
    ),
    Mutant(
        "a node without its metadata log runs on in 3.7",
        VERSIONS,
        "survives_metadata_dir=version < (3, 7)",
        "survives_metadata_dir=version < (3, 8)",
    ),
    Mutant(
        "a node without its metadata log ends in 3.6",
        VERSIONS,
        "survives_metadata_dir=version < (3, 7)",
        "survives_metadata_dir=version < (3, 6)",
    ),
    Mutant(
        "a directory may end in -delete in 0.10.1",
        VERSIONS,
        "knows_deletions=version >= (0, 10, 2)",
        "knows_deletions=version >= (0, 10, 1)",
    ),
    Mutant(
        "a bad name is a KafkaException in 0.10.1",
        VERSIONS,
        "wraps_bad_partitions=version >= (0, 10, 2)",
        "wraps_bad_partitions=version >= (0, 10, 1)",
    ),
    Mutant("a missing meta.properties is accepted", NODE, "if not one.has_file:", "if False:"),
    Mutant("cluster ids may differ", NODE, "one.cluster_id != clusters[0].cluster_id", "False"),
    Mutant("node ids may differ", NODE, "one.node_id != expected:", "False:"),
    Mutant("a directory id may be there twice", NODE, "if one.directory_id in seen:", "if False:"),
    Mutant("a directory of another broker is registered", NODE, "other != node_id and", "False and"),
    Mutant("any level is read", NODE, "if least <= level <= newest:", "if True:"),
    Mutant(
        "strays are kept",
        NODE,
        "    if is_stray:\n        return Fate.STRAY",
        "    if is_stray:\n        return Fate.KEPT",
    ),
    Mutant("3.6 renames strays", NODE, "return Fate.DELETED if is_stray and", "return Fate.STRAY if is_stray and"),
    Mutant("a partition may be there twice", STARTS, "if name in seen:", "if False:"),
    Mutant("one failed directory of two ends the node", STARTS, "len(offline) == len(log_dirs)", "len(offline) >= 1"),
    Mutant(
        "retention goes above the high watermark", RETENTION, " and oldest.end_offset > high_watermark", " and False"
    ),
    Mutant(
        "the order of retention is that of 3.0 always",
        RETENTION,
        " if version >= (3, 0) else _BEFORE_3_0",
        "",
    ),
)


def recorded() -> list[dict[str, object]]:
    """The verdicts that are recorded."""
    folder = ROOT / "tests" / "protocol" / "loading"
    return [
        json.loads(line) for path in sorted(folder.glob("judged-*.jsonl")) for line in path.read_text().splitlines()
    ]


def turned_over(name: str, cases: list[dict[str, object]], work: Path) -> int:
    """In how many recorded verdicts a switch makes a difference."""

    def rules(version: KafkaVersion) -> LoadingRules:
        found = loading_rules(version)
        switched: Any = {name: not getattr(found, name)}
        return replace(found, **switched)

    noticed = 0
    with patch("tests.oracle.loading.judge.loading_rules", rules):
        for one in cases:
            case = Case(**one["case"])  # type: ignore[arg-type]
            folder = work / case.name
            shutil.rmtree(folder, ignore_errors=True)
            write_files(edited_files(case), folder)
            told = predicted(folder, case, str(one["kafka"]))
            noticed += "unpredictable" in told or bool(differences(told, one["loaded"]))  # type: ignore[arg-type]
    return noticed


def main() -> int:
    """Break everything once."""
    survivors = 0
    cases = recorded()
    switches = [one.name for one in fields(LoadingRules) if one.type == "bool" or one.type is bool]
    with tempfile.TemporaryDirectory() as work:
        for name in switches:
            if name in BY_TESTS:
                continue
            noticed = turned_over(name, cases, Path(work))
            survivors += not noticed
            print(
                f"{'noticed' if noticed else 'NOT NOTICED':<12} {name}: {noticed} of {len(cases)} verdicts differ",
                flush=True,
            )
    for mutant in MUTANTS:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "copy")
            for name in ("kforensics", "tests", "fixtures"):
                shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
            shutil.copy(ROOT / "pyproject.toml", copy)
            file = copy / "kforensics" / mutant.file
            text = file.read_text(encoding="utf-8")
            if text.count(mutant.old) != 1:
                print(f"{'stale':<12} {mutant.name}: the text occurs {text.count(mutant.old)} times", flush=True)
                survivors += 1
                continue
            file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
            is_noticed = fails(copy, TESTS)
            survivors += not is_noticed
            print(f"{'noticed' if is_noticed else 'NOT NOTICED':<12} {mutant.name}", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
