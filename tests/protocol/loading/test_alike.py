"""Logs of which other versions make the same: what is said of that without playing their loads is what these come to."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kforensics.commands.loading import DirectoryOnDisk
from kforensics.damage import Absent
from kforensics.protocol.loading.alike import OtherRules
from kforensics.protocol.loading.disk import LoadOutcome, LoadSettings
from kforensics.protocol.loading.versions import distinct_rules, loading_rules
from kforensics.protocol.versions import KafkaVersion
from tests.oracle.loading.made import DAY_MS, NOW_MS, Case, edited_files, random_case, write_files

LINES = [[2, 100, epoch, -1, "plain", 1000] for epoch in (0, 0, 1, 1, 2, 2)]
LONG = [[2, 3000, 0, -1, "plain", 1000] for _ in range(8)]
CLEAN = Case(batches=LINES, rolls=[3], recovery_point=12)
KILLED = replace(CLEAN, clean=False, recovery_point=6)
FIRST, LAST, END = (f"{offset:020d}" for offset in (0, 6, 12))
NEWEST = KafkaVersion(3, 9, 1)
VERSIONS = tuple(one for one in distinct_rules() if one >= (0, 11))
"""One for each set of rules that such a log can be judged by."""


def directory_at(folder):
    """The directory as it lies there."""
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
    return DirectoryOnDisk(folder, files, frozenset(path.name for path in folder.iterdir() if not path.is_file()))


def load(folder, case, version):
    """The directory, and what its load comes to."""
    rules, disk = loading_rules(version), directory_at(folder)
    settings = LoadSettings(now_ms=NOW_MS, producer_expiration_ms=rules.default_producer_expiration_ms)
    at = {"recovery_point": case.recovery_point, "log_start_offset": case.log_start}
    return disk, disk.load(clean_shutdown=case.clean, settings=settings, rules=rules, **at)


def served(outcome):
    """What of a log is kept and served; nothing of one whose load throws."""
    if not isinstance(outcome, LoadOutcome) or isinstance(outcome.state, Absent):
        return None
    state, logs = outcome.state, [one for one in outcome.changes if ".log" in one.name]
    return state.log_start_offset, state.log_end_offset, state.last_stable_offset, state.epochs, logs


def alike_versions(folder, case):
    """The versions of which it is said that they make the same of the directory as the newest; that they do is held here."""
    disk, outcome = load(folder, case, NEWEST)
    found = []
    for version in VERSIONS if isinstance(outcome, LoadOutcome) else ():
        at = {"recovery_point": case.recovery_point, "log_start_offset": case.log_start}
        if disk.loads_alike(outcome, OtherRules.of([loading_rules(version)]), clean_shutdown=case.clean, **at):
            assert served(load(folder, case, version)[1]) == served(outcome) is not None
            found.append(version)
    return found


USUAL: dict[str, dict[str, Any]] = {
    "as it was left": {},
    "with entries in its index": {"batches": LONG, "rolls": []},
    "with producers": {"batches": [*LINES, [2, 9, 2, 1, "plain", 9], [2, 9, 2, 2, "plain", 3 * DAY_MS]]},
    "with a log start": {"log_start": 4},
    "with an epoch that its file lacks": {"edits": [["write", "leader-epoch-checkpoint", b"0\n1\n0 0\n".hex()]]},
}


@pytest.mark.parametrize("name", ["as it was left", "with entries in its index", "with producers", "with a log start"])
def test_a_log_that_was_closed_cleanly_is_judged_once(name, tmp_path):
    case = replace(CLEAN, **USUAL[name])
    case = replace(case, recovery_point=2 * len(case.batches))
    write_files(edited_files(case), tmp_path / case.name)

    assert alike_versions(tmp_path / case.name, case) == list(VERSIONS)


@pytest.mark.parametrize("name", USUAL)
def test_a_log_of_a_killed_broker_is_judged_once(name, tmp_path):
    case = replace(KILLED, **USUAL[name])
    case = replace(case, recovery_point=6 if case.rolls else 0)
    write_files(edited_files(case), tmp_path / case.name)

    assert set(alike_versions(tmp_path / case.name, case)) >= {one for one in VERSIONS if one >= (2, 6, 1)}
    if not name.startswith("with an epoch"):
        assert alike_versions(tmp_path / case.name, case) == list(VERSIONS)


def test_the_preallocated_indexes_of_a_killed_broker_change_nothing(tmp_path):
    edits = [["append", f"{LAST}.index", "00" * 800], ["append", f"{LAST}.timeindex", "00" * 1200]]
    case = replace(KILLED, edits=edits)
    write_files(edited_files(case), tmp_path / case.name)

    assert alike_versions(tmp_path / case.name, case) == list(VERSIONS)


def test_an_index_at_which_only_older_versions_look_decides_for_them(tmp_path):
    """Up to 2.2 a segment is scanned whose last time is below its first, and up to 1.1 one whose last index entry is at its base offset."""
    times = (1000).to_bytes(8) + (1).to_bytes(4) + (10).to_bytes(8) + (3).to_bytes(4)
    for clean in (CLEAN, KILLED):
        case = replace(clean, edits=[["write", f"{FIRST}.timeindex", times.hex()]])
        write_files(edited_files(case), tmp_path / str(clean.clean) / case.name)
        assert alike_versions(tmp_path / str(clean.clean) / case.name, case) == [
            one for one in VERSIONS if one >= (2, 3)
        ]

        disk, outcome = load(tmp_path / str(clean.clean) / case.name, case, KafkaVersion(2, 2))
        at = {"recovery_point": case.recovery_point, "log_start_offset": 0, "clean_shutdown": clean.clean}
        assert len(outcome.scanned) == 2 - clean.clean
        assert not disk.loads_alike(outcome, OtherRules.of([loading_rules(NEWEST)]), **at)

    case = replace(CLEAN, edits=[["write", f"{FIRST}.index", "00" * 8]])
    write_files(edited_files(case), tmp_path / case.name)
    assert alike_versions(tmp_path / case.name, case) == [one for one in VERSIONS if one >= (2, 0)]


def test_an_epoch_zero_that_older_versions_do_not_restore_decides_for_them(tmp_path):
    edits = [["write", "leader-epoch-checkpoint", b"0\n0\n".hex()]]
    case = replace(KILLED, batches=LINES[:2], rolls=[], recovery_point=0, edits=edits)
    write_files(edited_files(case), tmp_path / case.name)

    restoring = [one for one in VERSIONS if not loading_rules(one).skips_epoch_zero]
    assert alike_versions(tmp_path / case.name, case) == restoring != list(VERSIONS)


def test_a_time_index_without_an_entry_is_sound(tmp_path):
    for at in (CLEAN, KILLED):
        case = replace(at, edits=[["write", f"{FIRST}.timeindex", ""]])
        write_files(edited_files(case), tmp_path / str(at.clean) / case.name)

        assert alike_versions(tmp_path / str(at.clean) / case.name, case) == list(VERSIONS)


NOT_SAID: dict[str, Any] = {
    "an open transaction": {"batches": [*LINES, [2, 100, 2, 1, "txn", 1000]]},
    "bytes behind the last batch": {"edits": [["append", f"{LAST}.log", "ff" * 40]]},
    "another file": {"edits": [["write", "x", ""]]},
    "no snapshot before what is scanned": {"edits": [["remove", f"{LAST}.snapshot"], ["remove", f"{END}.snapshot"]]},
    "a malformed snapshot": {"edits": [["write", f"{LAST}.snapshot", "0001"], ["write", f"{END}.snapshot", "0001"]]},
    "epochs that do not rise": {"edits": [["write", "leader-epoch-checkpoint", b"0\n2\n2 0\n1 6\n".hex()]]},
    "a malformed topic id": {"edits": [["write", "partition.metadata", "00"]]},
    "a log start behind what is scanned": {"log_start": 8, "clean": False},
    "several segments to be scanned": {"clean": False, "recovery_point": 0},
    "another name": {"name": "orders-0.0a1b2c3d4e5f60718293a4b5c6d7e8f9-delete"},
    "messages of an older format": {"magic": 1},
}


@pytest.mark.parametrize("name", NOT_SAID)
def test_of_an_unusual_log_nothing_is_said_without_the_loads(name, tmp_path):
    for clean in (CLEAN, KILLED):
        case = replace(clean, **NOT_SAID[name])
        folder = tmp_path / str(clean.clean) / case.name
        write_files(edited_files(case), folder)
        assert alike_versions(folder, case) == []


def test_before_0_11_nothing_is_said(tmp_path):
    write_files(edited_files(CLEAN), tmp_path / CLEAN.name)
    disk, outcome = load(tmp_path / CLEAN.name, CLEAN, NEWEST)

    others = OtherRules.of(loading_rules(one) for one in (KafkaVersion(0, 10, 2), NEWEST))
    at = {"recovery_point": 12, "log_start_offset": 0, "clean_shutdown": True}
    assert not disk.loads_alike(outcome, others, **at)
    assert disk.loads_alike(outcome, OtherRules.of([loading_rules(NEWEST)]), **at)


def test_random_directories(tmp_path):
    found = []
    for seed in range(30):
        case = random_case(Random(seed))
        if seed % 3:
            case = replace(case, edits=case.edits[: seed % 2])
        folder = tmp_path / str(seed) / case.name
        write_files(edited_files(case), folder)
        found += alike_versions(folder, case)

    assert len(found) >= 30
