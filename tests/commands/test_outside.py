"""Nothing is written inside the evidence, by whatever way a path leads there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kforensics.commands import outside
from kforensics.commands.outside import check_outside
from kforensics.errors import UsageError


@pytest.fixture
def mounts(tmp_path, monkeypatch):
    """The mounts of the machine, as lines of `mountinfo` say."""
    file = tmp_path / "mountinfo"
    monkeypatch.setattr(outside, "_MOUNTS", file)
    lines = ["22 1 8:1 / / rw - ext4 /dev/sda1 rw"]

    def mount(device, root, point):
        lines.append(f"{22 + len(lines)} 22 {device} {root} {str(point).replace(' ', chr(92) + '040')} rw - ext4 x rw")
        file.write_text("\n".join(lines) + "\n")

    return mount


@pytest.fixture
def places(tmp_path):
    """Directories for evidence and for outputs; what the test mounts over them is not really there."""
    for name in ("evidence/broker-1/orders-0", "other/below", "a place/below"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def refuses(out, *evidence):
    with pytest.raises(UsageError, match="would lie inside the evidence"):
        check_outside(out, evidence)


def test_a_directory_of_the_evidence_mounted_at_another_place(mounts, places):
    mounts("8:1", places / "evidence" / "broker-1" / "orders-0", places / "a place")

    refuses(places / "a place" / "new" / "file", places / "evidence")
    refuses(places / "a place", places / "evidence" / "broker-1")
    check_outside(places / "a place" / "file", [places / "other"])
    check_outside(places / "other" / "file", [places / "evidence"])


def test_evidence_that_is_named_by_the_mount_of_where_the_output_is(mounts, places):
    mounts("8:1", places / "other", places / "a place")

    refuses(places / "other" / "below" / "file", places / "a place")
    refuses(places / "other" / "below" / "file", places / "a place" / "below")
    check_outside(places / "other" / "file", [places / "a place" / "below"])


def test_what_is_mounted_below_an_input_is_evidence(mounts, places):
    mounts("8:1", places / "other", places / "evidence" / "broker-1")

    refuses(places / "other" / "file", places / "evidence")


def test_a_mount_that_hides_another_and_one_of_another_disk(mounts, places):
    mounts("8:1", places / "evidence", places / "a place")
    mounts("8:2", places / "evidence", places / "a place")

    check_outside(places / "a place" / "file", [places / "evidence"])


def test_the_inode_tells_where_nothing_says_what_is_mounted(places, monkeypatch):
    monkeypatch.setattr(outside, "_MOUNTS", places / "none")
    real = outside._status
    evidence = places / "evidence" / "broker-1"
    monkeypatch.setattr(outside, "_status", lambda path: real(evidence if path.name == "a place" else path))

    refuses(places / "a place" / "file", evidence)
    check_outside(places / "other" / "file", [evidence])


def test_an_output_on_the_disk_that_an_input_is_the_image_of(places, monkeypatch):
    """A file system on a partition of a loop device is the content of the image that the device reads."""
    image = places / "disk.img"
    image.touch()
    status = places.stat()
    number = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    disk = places / "sys" / "loop0"
    (disk / "loop0p1").mkdir(parents=True)
    (disk / "loop0p1" / "partition").write_text("1\n")
    (disk / "dev").write_text("7:0\n")
    (disk / "loop").mkdir()
    (disk / "loop" / "backing_file").write_text(f"{image}\n")
    monkeypatch.setattr(outside, "_BLOCK_DEVICES", places / "sys" / "by-number")
    (places / "sys" / "by-number").mkdir()
    (places / "sys" / "by-number" / number).symlink_to(disk / "loop0p1")
    (places / "sys" / "by-number" / "7:0").symlink_to(disk)

    refuses(places / "other" / "file", image)
    (places / "copy.img").touch()
    check_outside(places / "other" / "file", [places / "copy.img"])


def _mounts_are_allowed():
    if shutil.which("unshare") is None:
        return False
    script = "d=$(mktemp -d) && mount --bind /tmp $d && umount $d && rmdir $d"
    return subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("command", [["verify", "-o"], ["capture", "-o"], ["salvage", "--what", "all", "-o"]])
@pytest.mark.some(1)
def test_a_real_mount_of_a_partition_directory(command, places):
    if not _mounts_are_allowed():
        pytest.skip("no mounts without being root here")
    evidence, there = places / "evidence" / "broker-1", places / "a place"
    (evidence / "orders-0" / f"{0:020d}.log").touch()
    program = [sys.executable, "-m", "kforensics", *command, str(there / "x.kfc"), str(evidence)]
    script = f'mount --bind "{evidence}/orders-0" "{there}" && exec "$@"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *program],
        capture_output=True,
        check=False,
        text=True,
        cwd=Path(__file__).parents[2],
    )

    assert done.returncode == 2, done.stderr
    assert "would lie inside the evidence" in done.stderr
    assert [one.name for one in (evidence / "orders-0").iterdir()] == [f"{0:020d}.log"]
