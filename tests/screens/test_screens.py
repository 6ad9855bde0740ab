"""Whole screens of each command at 80 columns, and of most at 120, held against the ones in `__snapshots__`.

`pytest tests/screens --snapshot-update` renews them after a change of words; the change of each screen is then part of the review.
"""

import re
import shlex

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from kforensics.cli.app import run
from tests.sentences import MOST_ON_A_SCREEN, said_on_screens, too_long

pytestmark = pytest.mark.usefixtures("read_once")

SEGMENT = f"{0:020d}.log"
UNCLEAN, CALM, DAMAGED = "unclean-election-4.x", "benign-rolling-restart-4.x", "power-cut-2.8"
LOSS, QUORUM = "hw-loss-0.10", "kraft-quorum-3x"
AHEAD = "consumer-ahead-4.x"
GROUPS, TRANSACTIONS = "groups-4.1", "transactions-3.9"
"""Of the coordinators."""
FINAL = "snapshots/99-final"
KILLED = "snapshots/02-old-leader-killed/broker-1"
"""The leader of all records, which the election left behind."""

SCREENS = {
    "triage": [
        (UNCLEAN, f"triage {FINAL} logs --before snapshots/02-old-leader-killed"),
        (AHEAD, f"triage {FINAL} logs"),
        (LOSS, f"triage {FINAL} logs"),
        (QUORUM, f"triage {FINAL}"),
    ],
    "ls": [(UNCLEAN, f"ls {FINAL}"), (LOSS, f"ls {FINAL}"), (DAMAGED, "ls snapshots/02-after-power-loss")],
    "diff": [
        (UNCLEAN, f"diff {KILLED} {FINAL}/broker-2 {FINAL}/broker-3 {FINAL}/controller-100"),
        (CALM, f"diff {FINAL}"),
        (LOSS, "diff snapshots/01-a-killed-live"),
    ],
    "explain": [
        (UNCLEAN, f"explain {FINAL} logs --before snapshots/02-old-leader-killed"),
        (CALM, f"explain {FINAL} logs"),
        (LOSS, f"explain {FINAL} --before snapshots/01-a-killed-live"),
    ],
    "predict": [
        (UNCLEAN, f"predict {KILLED} {FINAL}/broker-2 {FINAL}/broker-3 --order"),
        (DAMAGED, "predict snapshots/02-after-power-loss"),
    ],
    "logs": [(UNCLEAN, "logs logs/broker-1 logs/broker-2"), (CALM, "logs logs -v")],
    "verify": [
        (UNCLEAN, f"verify {FINAL}"),
        (DAMAGED, "verify snapshots/02-after-power-loss"),
        ("silent-divergence-4.x", "verify snapshots/03-follower-tampered"),
    ],
    "salvage": [
        (UNCLEAN, f"salvage {FINAL} logs --before snapshots/02-old-leader-killed -o rescue"),
        (CALM, f"salvage {FINAL} logs -o rescue"),
        ("silent-divergence-4.x", f"salvage {FINAL} --what all --topic audit -o rescue"),
    ],
    "trace": [
        (UNCLEAN, f"trace {FINAL} logs --before snapshots/02-old-leader-killed -t orders -p 0 --offset 62"),
        (CALM, f"trace {FINAL} logs -t events --key never-produced"),
        (LOSS, f"trace {FINAL} -t orders --key never-produced"),
    ],
    "metadata": [
        (UNCLEAN, f"metadata {FINAL} --topic orders --partition 0"),
        (CALM, f"metadata {FINAL} --broker 2"),
        (QUORUM, f"metadata {FINAL}/controller-101 --at 20"),
    ],
    "groups": [
        (AHEAD, f"groups {FINAL}"),
        (AHEAD, f"groups {FINAL} --group billing-etl --history"),
        (GROUPS, f"groups {FINAL} --before snapshots/04-old-leader-down-live"),
    ],
    "transactions": [
        (AHEAD, f"transactions {FINAL} --before snapshots/02-leader-killed"),
        (TRANSACTIONS, "transactions snapshots/03-prepared"),
        (TRANSACTIONS, f"transactions {FINAL} --transactional-id slow --open"),
    ],
    "dump": [
        (UNCLEAN, f"dump {FINAL}/broker-2/orders-0/{SEGMENT} --from-offset 55 --to-offset 65"),
        (LOSS, f"dump {FINAL}/broker-1/kafka-logs/replication-offset-checkpoint"),
        (QUORUM, f"dump {FINAL}/controller-101/__cluster_metadata-0/leader-epoch-checkpoint"),
    ],
    "seal": [
        (UNCLEAN, f"seal {FINAL}/broker-2 -o manifest.json"),
        (CALM, f"seal {FINAL} -o manifest.json"),
        (DAMAGED, "seal logs -o manifest.json"),
    ],
    "simulate": [
        (UNCLEAN, "simulate --list"),
        (UNCLEAN, "simulate hw-loss --protocol hw"),
        (UNCLEAN, "simulate --explore kip-101 --invariant WeakIsr"),
    ],
}
WIDE = {
    "triage",
    "explain",
    "diff",
    "predict",
    "salvage",
    "verify",
    "trace",
    "groups",
    "transactions",
    "logs",
    "metadata",
}
"""Commands of which the first screen is also held at 120 columns."""


class Screen(SingleFileSnapshotExtension):
    """One readable file for each screen."""

    file_extension = "txt"
    _write_mode = WriteMode.TEXT


@pytest.fixture
def screen(snapshot):
    return snapshot.use_extension(Screen)


@pytest.mark.parametrize(
    ("recording", "line", "width"),
    [
        pytest.param(recording, line, width, id=f"{command}-{number}-{recording}{'' if width == 80 else f'-{width}'}")
        for command, screens in SCREENS.items()
        for number, (recording, line) in enumerate(screens, 1)
        for width in ((80, 120) if command in WIDE and number == 1 else (80,))
    ],
)
def test_screen(screen, incident, coordinators, recording, line, width, tmp_path, monkeypatch, capsys):
    said = said_on_screens(monkeypatch)
    unpack = coordinators if recording in {GROUPS, TRANSACTIONS} else incident
    for name in ("snapshots", "logs"):
        (tmp_path / name).symlink_to(unpack(recording) / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(width))

    code = run(shlex.split(line))

    printed = capsys.readouterr()
    shown = f"$ kforensics {line}\n{printed.out}{printed.err}exit code {code}\n"
    assert _without_what_differs_each_time(shown) == screen
    assert [] == too_long(said, MOST_ON_A_SCREEN)


def _without_what_differs_each_time(shown: str) -> str:
    """A manifest names times and inodes of the unpacked files, so its hash is another one each time, and so is the length of a capture."""
    shown = re.sub(r"\b[0-9a-f]{64}\b", "<sha256>", shown)
    return re.sub(r"[0-9.]+ [KM]?B written", "<bytes> written", shown)
