"""Logs that were closed cleanly: what is said of them without playing each step is what the steps say, and the rest is left to the steps."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kforensics.commands.loading import DirectoryOnDisk
from kforensics.evidence.replica.loader_reader import read_needed
from kforensics.protocol.loading.disk import LoadedDirectory, LoadSettings
from kforensics.protocol.loading.load import load_after_clean_shutdown
from kforensics.protocol.loading.partition import load_step_by_step
from kforensics.protocol.loading.versions import loading_rules
from kforensics.protocol.versions import KafkaVersion
from tests.oracle.loading.made import DAY_MS, NOW_MS, Case, edited_files, random_case, write_files

LINES = [[2, 100, epoch, -1, "plain", 1000] for epoch in (0, 0, 1, 1, 2, 2)]
LONG = [[2, 3000, 0, -1, "plain", 1000] for _ in range(8)]
DIRECTORY = Case(batches=LINES, rolls=[3], recovery_point=12)
FIRST, LAST, END, BEYOND = (f"{offset:020d}" for offset in (0, 6, 12, 10**20 - 1))
EPOCHS, TOPIC_ID = "leader-epoch-checkpoint", "partition.metadata"
TODAY = KafkaVersion(4, 1)
VERSIONS = (KafkaVersion(2, 0, 1), KafkaVersion(2, 8), KafkaVersion(3, 3), KafkaVersion(3, 9, 1), TODAY)


class Contents(dict):
    """What the rules ask for of a directory, read as they ask."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def __contains__(self, need):
        if not super().__contains__(need):
            self[need] = read_needed(self.folder, need)
        return True

    def get(self, need, _=None):
        assert need in self
        return self[need]


def loaded_both_ways(case, folder, version, settings=None):
    """What is said without the steps, none where it is left to them; that the steps say the same of the same contents is held here."""
    rules = loading_rules(version)
    settings = settings or LoadSettings(now_ms=NOW_MS, producer_expiration_ms=rules.default_producer_expiration_ms)
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
    folders = frozenset(path.name for path in folder.iterdir() if not path.is_file())
    short, long = Contents(folder), Contents(folder)
    at = {"recovery_point": case.recovery_point, "log_start_offset": case.log_start, "settings": settings}
    directory = LoadedDirectory(name=folder.name, files=files, folders=folders, contents=short)
    found = load_after_clean_shutdown(directory, rules=rules, **at)
    if found is not None:
        directory = replace(directory, contents=long)
        assert found == load_step_by_step(directory, clean_shutdown=True, rules=rules, **at)
        assert list(found.tree) == sorted(files)
        assert [need for need in long if need in short] == list(short)
    return found


def test_random_directories(tmp_path):
    found = []
    for seed in range(24):
        case = random_case(Random(seed))
        if seed % 4:
            case = replace(case, clean=True, edits=[])
        folder = tmp_path / str(seed) / case.name
        write_files(edited_files(case), folder)
        found += [loaded_both_ways(case, folder, version) for version in VERSIONS[1::3]]

    assert sum(one is not None for one in found) >= 6


SEEN: dict[str, dict[str, Any]] = {
    "as it was left": {},
    "with entries in its index": {"batches": LONG, "rolls": [], "recovery_point": 16},
    "with producers": {"batches": [*LINES, [2, 9, 2, 1, "plain", 9], [2, 9, 2, 2, "plain", 3 * DAY_MS]]},
    "with a log start": {"log_start": 4},
    "without batches": {"batches": [], "rolls": [], "edits": [["remove", f"{FIRST}.snapshot"]]},
    "without a topic id": {"edits": [["remove", TOPIC_ID]]},
    "with an empty last segment": {
        "edits": [["write", f"{END}{ending}", ""] for ending in (".log", ".index", ".timeindex")]
    },
}


@pytest.mark.parametrize("name", SEEN)
def test_a_usual_directory_needs_no_steps(name, tmp_path):
    case = replace(DIRECTORY, **SEEN[name])
    write_files(edited_files(case), tmp_path / case.name)

    for version in VERSIONS[1:]:
        found = loaded_both_ways(case, tmp_path / case.name, version)
        assert found is not None
        assert not found.scanned
        assert not any(".log" in change.name for change in found.changes)


LEFT: dict[str, list[list[Any]]] = {
    "another file": [["write", "x", ""]],
    "a folder": [["folder", "x"]],
    "no index": [["remove", f"{FIRST}.index"]],
    "no epochs": [["remove", EPOCHS]],
    "an offset beyond all": [
        ["remove", f"{END}.snapshot"],
        *(["write", f"{BEYOND}{ending}", ""] for ending in (".log", ".index", ".timeindex")),
    ],
    "aborted transactions": [["write", f"{FIRST}.txnindex", "00" * 34]],
    "malformed epochs": [["write", EPOCHS, b"0\n1\nx\n".hex()]],
    "epochs that fall": [["write", EPOCHS, b"0\n2\n2 0\n1 6\n".hex()]],
    "an index of an empty log": [["cut", f"{LAST}.log", 0], ["write", f"{LAST}.index", "0000000100000001"]],
    "an index that leads past the end": [["write", f"{LAST}.index", "0000000100ffffff"]],
    "an index above the last batch": [["write", f"{LAST}.index", "00ffffff00000000"]],
    "bytes behind the last batch": [["append", f"{LAST}.log", "ff" * 40]],
    "no snapshot": [["remove", f"{END}.snapshot"], ["remove", f"{LAST}.snapshot"]],
    "an old snapshot": [["remove", f"{END}.snapshot"]],
    "a malformed snapshot": [["write", f"{END}.snapshot", "0001"]],
    "a malformed topic id": [["write", TOPIC_ID, "00"]],
}


@pytest.mark.parametrize("name", LEFT)
def test_an_unusual_directory_is_left_to_the_steps(name, tmp_path):
    case = replace(DIRECTORY, edits=LEFT[name])
    write_files(edited_files(case), tmp_path / case.name)

    assert loaded_both_ways(case, tmp_path / case.name, TODAY) is None


@pytest.mark.parametrize(
    "change",
    [
        {"name": "orders-0.0a1b2c3d4e5f60718293a4b5c6d7e8f9-delete"},
        {"name": "orders"},
        {"log_start": 13},
        {"magic": 1, "recovery_point": 12},
        {"batches": [*LINES, [2, 100, 2, 1, "txn", 1000]]},
    ],
)
def test_an_unusual_log_is_left_to_the_steps(change, tmp_path):
    case = replace(DIRECTORY, **change)
    write_files(edited_files(case), tmp_path / case.name)

    assert loaded_both_ways(case, tmp_path / case.name, TODAY) is None


def test_a_version_whose_steps_differ_is_left_to_them(tmp_path):
    write_files(edited_files(DIRECTORY), tmp_path / "orders-0")

    assert loaded_both_ways(DIRECTORY, tmp_path / "orders-0", KafkaVersion(2, 7)) is None
    assert loaded_both_ways(DIRECTORY, tmp_path / "orders-0", TODAY, LoadSettings(index_length=4)) is None


def test_indexes_of_full_length_stay_as_they_are(tmp_path):
    case = replace(DIRECTORY, edits=[["write", f"{LAST}{ending}", "00" * 24] for ending in (".index", ".timeindex")])
    write_files(edited_files(case), tmp_path / "orders-0")

    found = loaded_both_ways(case, tmp_path / "orders-0", TODAY, LoadSettings(index_length=24))

    assert [change.name for change in found.changes] == [EPOCHS]


def test_a_file_that_cannot_be_read_is_left_to_the_steps(tmp_path):
    files = {path: len(data) for path, data in edited_files(replace(DIRECTORY, batches=LONG, rolls=[])).items()}
    at: dict[str, Any] = {
        "recovery_point": 0,
        "log_start_offset": 0,
        "settings": LoadSettings(),
        "rules": loading_rules(TODAY),
    }
    folder = tmp_path / "orders-0"
    write_files(edited_files(replace(DIRECTORY, batches=LONG, rolls=[])), folder)
    for name in sorted(files):
        (folder / name).rename(tmp_path / name)
        disk = DirectoryOnDisk(folder, files)
        if disk.load_after_clean_shutdown(**at) is None:
            assert list(disk.unreadable) == [name]
        else:
            assert name.endswith(".timeindex")
        (tmp_path / name).rename(folder / name)
