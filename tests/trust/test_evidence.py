"""Evidence is as untouched after a command as before it: content, times, modes, inodes, attributes; and no attempt to touch it was made."""

import contextlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.conftest import FIXTURES
from tests.fuzz.commands import INVOCATIONS, available, invoke, small_tree

RECORDINGS = sorted(path.name.removesuffix(".tar.xz") for path in (FIXTURES / "incidents").glob("*.tar.xz"))
OF_THE_SHORT_FORM = "power-cut-2.8"

FORBIDDEN_FLAGS = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE")
FORBIDDEN_CALLS = re.compile(
    r"\b(creat|rename\w*|unlink\w*|rmdir|mkdir\w*|mknod\w*|link\w*|symlink\w*|truncate|ftruncate|fallocate|chmod|fchmod\w*|l?chown|fchown\w*"
    r"|utime\w*|futimesat|setxattr|lsetxattr|fsetxattr|removexattr|lremovexattr|fremovexattr|mount|umount2?|flock)\("
)
FORBIDDEN_LOCK = re.compile(r"\bfcntl\(.*F_(OFD_)?SETLKW?")


def state(tree):
    """What the file system says of everything below the tree, and all content; access times of files too."""
    found = {}
    for path in [tree, *sorted(tree.rglob("*"))]:
        status = path.lstat()
        is_file = stat.S_ISREG(status.st_mode)
        found[str(path)] = (
            status.st_mode,
            status.st_ino,
            status.st_nlink,
            status.st_uid,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_atime_ns if is_file else 0,
            {
                name: os.getxattr(path, name, follow_symlinks=False)
                for name in os.listxattr(path, follow_symlinks=False)
            },
        )
    # Read last: the test's own reading changes access times.
    contents = {
        str(path): path.read_bytes() for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink()
    }
    return found, contents


def make_old(tree):
    """Access times that any reading would renew, whatever the mount says."""
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, ns=(1_000_000_000, path.stat().st_mtime_ns))


def inputs_of(tree):
    return [str(path) for path in sorted(tree.iterdir()) if path.is_dir()]


@pytest.fixture
def cluster(tmp_path):
    tree = small_tree(tmp_path / "cluster")
    meta = tree / "broker-1" / "meta.properties"
    with contextlib.suppress(OSError):  # not every file system has them
        os.setxattr(meta, "user.case", b"1")
    return tree


@pytest.mark.parametrize("name", available())
@pytest.mark.some(5)
def test_a_command_leaves_everything_as_it_was(name, cluster):
    for arguments in INVOCATIONS[name]:
        make_old(cluster)
        before, before_content = state(cluster)
        make_old(cluster)
        before = {
            path: (*one[:6], 0, *one[7:]) for path, one in before.items()
        }  # the line above is a change of the inode

        code, _, err = invoke([*arguments, *inputs_of(cluster)])

        after, after_content = state(cluster)
        assert code in {0, 1, 3}, err
        assert before_content == after_content
        assert before == {path: (*one[:6], 0, *one[7:]) for path, one in after.items()}


@pytest.mark.slow
@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_command_leaves_every_recording_as_it_was(recording, incident, untouched):
    root = incident(recording)
    with untouched(root):
        for snapshot in sorted((root / "snapshots").iterdir()):
            for name in available():
                for arguments in INVOCATIONS[name]:
                    code, _, err = invoke(
                        [*arguments, *inputs_of(snapshot), *([str(root / "logs")] if name == "explain" else [])]
                    )
                    assert code in {0, 1, 3}, err


def all_commands(tree, *options, before=()):
    """Every command over the tree in a process of its own; `before` is put in front of it."""
    command = [*before, sys.executable, "-m", "tests.trust.all_commands", str(tree), *options]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=Path(__file__).parents[2]
    )


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_system_call_tries_to_touch_evidence(cluster, tmp_path):
    log = tmp_path / "trace"
    result = all_commands(
        cluster, before=["strace", "-f", "-qq", "-y", "-s", "4096", "-e", "trace=%file,%desc", "-o", str(log)]
    )
    if not log.exists() or "ptrace" in result.stderr:
        pytest.skip("processes can't be traced here")

    inside = [line for line in log.read_text(errors="replace").splitlines() if str(cluster) in line]
    opened = [line for line in inside if "openat(" in line or "open(" in line]
    bad = [line for line in inside if FORBIDDEN_CALLS.search(line) or FORBIDDEN_LOCK.search(line)]
    bad += [line for line in opened if FORBIDDEN_FLAGS.search(line)]
    files = [line for line in opened if "O_DIRECTORY" not in line]
    assert {0, 1, 3} >= {code for code, _, _ in json.loads(result.stdout).values()}
    assert len(files) > 100, "hardly anything was read: the trace shows too little"
    assert [] == bad
    assert [] == [line for line in files if "O_NOFOLLOW" not in line or "O_NONBLOCK" not in line]


@pytest.mark.parametrize("name", available())
@pytest.mark.some(3)
def test_an_output_inside_an_input_is_refused(name, cluster, tmp_path):
    arguments = INVOCATIONS[name][0]
    (tmp_path / "link").symlink_to(cluster / "broker-1")
    before = state(cluster)

    for out in (cluster / "broker-1" / "out", cluster / "broker-1" / "orders-0" / "out", tmp_path / "link" / "out"):
        code, _, err = invoke([*arguments, *inputs_of(cluster), "--out", str(out)])
        assert code == 2, err
        assert "inside the evidence" in err

    assert before[1] == state(cluster)[1]
    code, _, err = invoke([*arguments, *inputs_of(cluster), "--out", str(tmp_path / "out")])
    assert code in {0, 1, 3}, err
    code, _, err = invoke([*arguments, *inputs_of(cluster), "--out", str(tmp_path / "out")])
    assert code == 2, "an output was written over"


@pytest.fixture(scope="module")
def readable():
    """Directories and files that may only be read, and what commands say of them to their owner and to a user who owns none."""
    # Every session of pytest closes the directory that tmp_path lies in to other users.
    with tempfile.TemporaryDirectory() as folder:
        tree = small_tree(Path(folder, "cluster"))
        Path(folder).chmod(0o755)
        for path in [tree, *tree.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield tree, all_commands(tree, "--and-as-nobody")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.slow
def test_nothing_needs_permission_to_write(readable):
    _, result = readable
    owner, nobody = map(json.loads, result.stdout.splitlines())

    assert owner == nobody, result.stderr
    assert {0, 1, 3} >= {code for code, _, _ in nobody.values()}


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="mounting needs privileges")
@pytest.mark.slow
def test_read_only_mounts_are_enough(readable):
    tree, result = readable
    mount = f'mount --bind "{tree}" "{tree}" && mount -o remount,bind,ro "{tree}" && ! touch "{tree}/x" 2>/dev/null && exec "$@"'
    mounted = all_commands(tree, before=["unshare", "-m", "sh", "-c", mount, "sh"])

    if "unshare" in mounted.stderr or "mount" in mounted.stderr:
        pytest.skip("nothing can be mounted here")
    assert json.loads(result.stdout.splitlines()[0]) == json.loads(mounted.stdout), mounted.stderr
