"""Images of file systems, made without mounting them, whose deleted logs are carved; needs e2fsprogs, and xfsprogs for XFS.

    python -m tests.carved RECORDING... [--megabytes 256]

Each recording's earliest copy of every broker is put into an ext4 image that is half full of other bytes; then files are deleted as a truncation, retention and
the deletion of a topic leave them, and the image is carved with the newest copies given. Every batch that lies in the image in one piece must come out, and no
batch of magic 2 that was not on a disk. The same in an XFS image, of which only the bytes are looked at. Then everything is saved from the newest copies with the
ext4 image beside them: what the earliest copies held must come out, under its name or that of a carved log, and nothing that was on no disk.
"""

import argparse
import io
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from kforensics.cli.app import run
from kforensics.evidence.carving import identity_hashes
from kforensics.formats.segment.resync import carve_batches
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import open_evidence
from tests import salvaged

BLOCK = 4096


def make_ext4(image: Path, folders: Mapping[str, Path], *, megabytes: int, filler: int = 0) -> None:
    """An ext4 image that holds copies of folders below names, and a file of other bytes."""
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work, "tree")
        tree.mkdir()
        for name, folder in folders.items():
            _copy(folder, tree / name)
        if filler:
            (tree / "filler").write_bytes(random.Random(filler).randbytes(filler))
        with image.open("wb") as file:
            file.truncate(megabytes << 20)
        subprocess.run(
            ["mke2fs", "-q", "-F", "-t", "ext4", "-d", str(tree), str(image)], check=True, capture_output=True
        )


def make_xfs(image: Path, folders: Mapping[str, Path], *, megabytes: int) -> None:
    """An XFS image with copies of folders, by a prototype file."""
    with tempfile.TemporaryDirectory() as work:
        lines = ["/dev/null", "0 0", "d--755 0 0"]
        for name, folder in folders.items():
            lines += [f"{name} d--755 0 0", *_prototype(folder), "$"]
        prototype = Path(work, "prototype")
        prototype.write_text("\n".join([*lines, "$", "$"]) + "\n")
        length = sum(path.stat().st_size for folder in folders.values() for path in folder.rglob("*"))
        with image.open("wb") as file:
            file.truncate((max(megabytes, 300) << 20) + 2 * length)
        subprocess.run(["mkfs.xfs", "-q", "-f", "-p", str(prototype), str(image)], check=True, capture_output=True)


def _prototype(folder: Path) -> list[str]:
    lines = []
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            lines += [f"{path.name} d--755 0 0", *_prototype(path), "$"]
        else:
            lines.append(f"{path.name} ---644 0 0 {path}")
    return lines


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def remove(image: Path, *paths: str) -> None:
    """Delete files of an ext4 image, as a kernel does: their blocks are free, their bytes stay."""
    commands = "".join(f"rm /{path}\n" for path in paths)
    subprocess.run(["debugfs", "-w", "-f", "-", str(image)], input=commands.encode(), check=True, capture_output=True)


def hashes_of_logs(folder: Path) -> np.ndarray:
    """The identity of every sound batch in segments below a folder."""
    found = [np.empty(0, np.uint64)]
    for path in [path for path in folder.rglob("*") if ".log" in path.name and path.is_file()]:
        with open_evidence(path) as file:
            tables = [window.batches for window in walk_segment(file, level=Level.CRC)]
            found += [identity_hashes(table[table["crc_valid"]]) for table in tables]
    return np.unique(np.concatenate(found))


def hashes_of_image(image: Path) -> tuple[np.ndarray, np.ndarray]:
    """The identity of every batch that is found in an image, and of those of magic 2."""
    with open_evidence(image) as file:
        tables = list(carve_batches(file, 0, file.size))
    table = np.concatenate(tables)
    return np.unique(identity_hashes(table)), np.unique(identity_hashes(table[table["magic"] == 2]))


def check(root: Path, work: Path, megabytes: int) -> list[str]:
    """What is wrong with the images of one recording."""
    snapshots = sorted((root / "snapshots").iterdir())
    folders = {node.name: node for node in sorted(snapshots[-2].iterdir()) if node.is_dir()}
    expected = np.unique(np.concatenate([hashes_of_logs(folder) for folder in folders.values()]))
    everything = np.unique(np.concatenate([expected, _all_batches(folders)]))
    wrong = []
    for kind in ("ext4", "xfs") if shutil.which("mkfs.xfs") else ("ext4",):
        image = work / f"{kind}.img"
        if kind == "ext4":
            make_ext4(image, folders, megabytes=megabytes, filler=(megabytes << 20) // 2)
            logs = [path.relative_to(folder.parent) for folder in folders.values() for path in folder.rglob("*.log")]
            remove(image, *(str(path) for path in logs))
        else:
            make_xfs(image, folders, megabytes=megabytes)
        found, modern = hashes_of_image(image)
        missing = len(np.setdiff1d(expected, found))
        invented = len(np.setdiff1d(modern, everything))
        print(f"{root.name} {kind}: {len(expected)} batches, {missing} not found, {invented} invented", flush=True)
        if missing > len(expected) // 100 or invented:
            wrong.append(f"{root.name} {kind}: {missing} of {len(expected)} batches not found, {invented} invented")
        if kind == "ext4":
            wrong += check_beside_replicas(root, image, work / "saved")
        image.unlink()
    return wrong


def check_beside_replicas(root: Path, image: Path, out: Path) -> list[str]:
    """What is wrong where an image fills the gaps of the newest copies."""
    *_, before, final = sorted((root / "snapshots").iterdir())
    with redirect_stdout(io.StringIO()):
        run(["salvage", str(final), "--what", "all", "--carve", str(image), "-o", str(out), "--format", "json"])
    lines = [content for content, _ in salvaged.saved(out)]
    named = {content for content in lines if isinstance(content.topic, str)}
    nameless = {content[2:] for content in lines if not isinstance(content.topic, str)}
    on_disks, aborted = salvaged.on_disk(root / "snapshots")
    held, _ = salvaged.on_disk(before)
    missing = {content for content in held - aborted if content not in named and content[2:] not in nameless}
    invented = len(named - on_disks - aborted)  # the others are of batches that were looked at above
    print(f"{root.name} beside: {len(held)} records, {len(missing)} not saved, {invented} invented", flush=True)
    is_wrong = len(missing) > len(held) // 100 or invented
    return [f"{root.name}: {len(missing)} not saved, {invented} invented"] if is_wrong else []


def _all_batches(folders: Mapping[str, Path]) -> np.ndarray:
    """Batches outside of segments too: snapshots of the metadata log."""
    found = [np.empty(0, np.uint64)]
    for folder in folders.values():
        for path in folder.rglob("*.checkpoint*"):
            with open_evidence(path) as file:
                found += [identity_hashes(table) for table in carve_batches(file, 0, file.size)]
    return np.concatenate(found)


def main() -> int:
    """Check every recording that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="+", type=Path)
    parser.add_argument("--megabytes", type=int, default=256)
    options = parser.parse_args()
    wrong = []
    for root in options.recordings:
        with tempfile.TemporaryDirectory() as work:
            wrong += check(root, Path(work), options.megabytes)
    print(json.dumps({"recordings": len(options.recordings), "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
