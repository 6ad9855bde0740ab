"""Directories as start after start leaves them."""

from typing import Any

from kforensics.commands.loading import DirectoryOnDisk
from kforensics.protocol.loading.disk import LoadOutcome, LoadSettings
from kforensics.protocol.loading.versions import LoadingRules
from tests.oracle.loading.made import NOW_MS, Case, edited_files, write_files

LINES = [[2, 100, epoch, -1, "plain", 1000] for epoch in (0, 0, 1, 1)]
BASE, END = f"{4:020d}", f"{8:020d}"
AT: dict[str, Any] = {
    "clean_shutdown": False,
    "recovery_point": 4,
    "log_start_offset": 0,
    "settings": LoadSettings(now_ms=NOW_MS),
    "rules": LoadingRules(),
}


def test_a_later_start_reads_what_the_first_one_wrote(tmp_path):
    case = Case(batches=LINES, rolls=[2], edits=[["remove", f"{BASE}.snapshot"], ["remove", f"{END}.snapshot"]])
    write_files(edited_files(case), tmp_path / "orders-0")
    disk = DirectoryOnDisk(
        tmp_path / "orders-0", {path.name: path.stat().st_size for path in (tmp_path / "orders-0").iterdir()}
    )

    ends = []
    for _ in range(4):
        outcome = disk.load(**AT)
        assert isinstance(outcome, LoadOutcome)
        ends.append((outcome.failure, outcome.state))
        disk = disk.after(outcome)

    assert f"{BASE}.snapshot" in disk.files
    assert not (tmp_path / "orders-0" / f"{BASE}.snapshot").exists()
    assert ends[1:] == ends[:1] * 3
    assert disk.unreadable == {}
