"""Recorded incidents for every test, and the proof that no command touches its input."""

import errno
import gc
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from kforensics.cli.app import GARBAGE_THRESHOLD
from tests import schemas
from tests.builders import reading, repeating
from tests.builders.directories import with_short_indexes

# Compiled modules are kept, also where the surroundings keep none, and processes that tests start find them: compiling takes longer than most tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
gc.set_threshold(GARBAGE_THRESHOLD)  # as the command line does

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(repeating.PROFILE)

QUICK = tuple(f"tests/{name}/" for name in ("formats", "protocol", "reconcile", "render"))
NOT_QUICK = ("slow", "oracle", "spark", "process")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what `pytest -m quick` runs: tests of the directories above that unpack no recording and start no process."""
    _leave_to_the_night(config, items)
    for item in items:
        is_quick = item.nodeid.startswith(QUICK)
        unpacks = "incident" in getattr(item, "fixturenames", ())
        if is_quick and not unpacks and not any(item.get_closest_marker(name) for name in NOT_QUICK):
            item.add_marker(pytest.mark.quick)


def _leave_to_the_night(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as slow the cases of a test of which `some` are enough by day: all but those named, or but as many, spread over all."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for test, among in cases.items():
        some: list[Any] = [*next(among[0].iter_markers("some")).args]
        names = [item.nodeid.partition("[")[2].removesuffix("]") for item in among]
        if isinstance(some[0], int):
            some = [names[at * (len(names) - 1) // max(some[0] - 1, 1)] for at in range(min(some[0], len(names)))]
        elif {*some} - {*names} and not any("::" in one for one in config.args):
            raise pytest.UsageError(f"{test} has no case {({*some} - {*names}).pop()}")
        for item, name in zip(among, names, strict=True):
            if name not in some and len(among) > 1:
                item.add_marker(pytest.mark.slow)


TOGETHER = {
    "tests/fleet/": "Spark is started once",
    "tests/trust/test_evidence.py": "all look at one copy",
    "tests/cli/test_trace_compaction.py": "another decoder reads the recordings once",
    "tests/cli/test_explain_html.py": "most look at one page",
    "tests/test_schema.py": "all look at the same documents",
    "tests/test_contributing.py": "one copy of the package is changed",
}
"""Where tests share what is dear to make: one process runs all of them, and why."""

LONG = ("tests/trust/", "tests/simulation/")
"""Where many tests take seconds each: they begin early, and no process waits at the end for another."""

RECORDINGS = frozenset(path.name.removesuffix(".tar.xz") for path in (FIXTURES / "incidents").glob("*.tar.xz"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Spread tests over processes one by one, but for those that belong together or are of one recording, whose segments are read once."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist carries no types
        def _split_scope(self, nodeid: str) -> str:
            name = nodeid.rpartition("[")[2].removesuffix("]")
            return name if name in RECORDINGS else next((one for one in TOGETHER if nodeid.startswith(one)), nodeid)

        def schedule(self) -> None:
            is_first = self.collection is None
            super().schedule()
            for scope in [one for one in self.workqueue if is_first and one.startswith(LONG)]:
                self.workqueue.move_to_end(scope, last=False)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            scope = self._split_scope(self.registered_collections[node][item_index])
            super().mark_test_complete(node, item_index, duration)
            if all(self.assigned_work[node][scope].values()):
                del self.assigned_work[node][scope]  # after each test all that were assigned would be counted

    return Scheduling(config, log)


TreeState = dict[str, tuple[int, int, int, int, str]]


def pytest_configure() -> None:
    """Every JSON document that a command prints in a test is held against its schema, in the one place that all tests call; it is always the week of the recordings."""
    schemas.watch_commands()
    # By the clock retention deletes what they hold, a week later.
    os.environ.setdefault("SOURCE_DATE_EPOCH", "1795737600")


def pytest_collection_finish() -> None:
    """What was imported and collected stays: no later search for garbage goes over it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _documents_are_valid(request: pytest.FixtureRequest) -> Iterator[None]:
    is_long = request.node.get_closest_marker("slow") and not request.node.get_closest_marker("some")
    is_watched = not is_long and "tests/fuzz" not in str(request.path)
    schemas.switch(on=is_watched)
    yield
    schemas.switch(on=False)


@pytest.fixture(scope="session", autouse=True)
def _files_of_the_process(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Iterator[None]:
    """Each test process removes at its end what its tests wrote, unless one failed; else one process would do so behind the others."""
    yield
    if worker_id != "master" and not request.session.testsfailed:
        shutil.rmtree(tmp_path_factory.getbasetemp(), ignore_errors=True)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a test a directory of its own, of which only large files are removed after it, unless it fails; the session removes the rest.

    For a minute or more, ext4 passes over each inode that was freed whenever it creates a file: removing all took as long as a fifth of the tests.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}-{next(_numbers)}"
    path.mkdir(mode=0o700)
    failed = request.session.testsfailed
    yield path
    if request.session.testsfailed == failed:
        _remove_large_files(path)


_numbers = itertools.count()
LARGE_FILE = 256 << 10


def _remove_large_files(folder: Path) -> None:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            with suppress(OSError):  # best effort: a test may have taken permissions away
                if path.lstat().st_blocks * 512 > LARGE_FILE:
                    path.unlink()


@pytest.fixture(scope="session", autouse=True)
def _priority_stays() -> Iterator[None]:
    """Commands that tests run in their own process leave its priority as it is: on a busy machine the tests after them would wait for everyone else."""
    own, nice = os.getpid(), os.nice
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda step: nice(0 if os.getpid() == own else step))
        yield


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The directory of recorded evidence."""
    return FIXTURES


@pytest.fixture(scope="session")
def small_cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster in fixtures/ with indexes that are not preallocated, of which captures take 20 MB of zeros along each; it must not be written to."""
    return with_short_indexes(FIXTURES / "unclean-election", tmp_path_factory.mktemp("small") / "unclean-election")


@pytest.fixture(scope="session")
def incident(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str], Path]:
    """Unpacks a recorded incident once a session, whatever the number of test processes; what it gives must not be written to."""
    return _unpacking("incidents", tmp_path_factory, worker_id)


@pytest.fixture(scope="session")
def coordinators(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str], Path]:
    """Unpacks a recording of consumer groups or transactions, likewise."""
    return _unpacking("coordinators", tmp_path_factory, worker_id)


@pytest.fixture(scope="session")
def compaction(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str], Path]:
    """Unpacks a recording of compacted topics, likewise."""
    return _unpacking("compaction", tmp_path_factory, worker_id)


@pytest.fixture(scope="session")
def quorums(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str], Path]:
    """Unpacks a recorded disaster of a metadata quorum, likewise."""
    return _unpacking("quorums", tmp_path_factory, worker_id)


def _unpacking(folder: str, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str], Path]:
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / folder
    shared.mkdir(exist_ok=True)

    def unpack(name: str) -> Path:
        target = shared / name
        if not target.exists():
            work = tmp_path_factory.mktemp("unpack")
            _extract(FIXTURES / folder / f"{name}.tar.xz", work)
            try:
                (work / name).rename(target)
            except OSError:  # another test process was faster
                shutil.rmtree(work / name)
        return target

    return unpack


def _extract(archive: Path, target: Path) -> None:
    """By tar, which takes a third of Python's time, where it is installed."""
    if shutil.which("tar") and shutil.which("xz"):
        options = ["--no-same-owner", "--no-same-permissions"]
        subprocess.run(["tar", "-xJf", str(archive), "-C", str(target), *options], check=True)
        return
    with tarfile.open(archive) as content:
        content.extractall(target, filter="data")


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each segment of a recording is read once by a test process: for tests of what is concluded from much evidence and from little."""
    reading.read_once(monkeypatch)


@pytest.fixture
def untouched() -> Callable[[Path], object]:
    """`with untouched(tree): …` fails where a file below the tree, its content, mode, inode or time of change is not what it was."""

    @contextmanager
    def watch(tree: Path) -> Iterator[None]:
        before = tree_state(tree)

        yield

        assert before == tree_state(tree)

    return watch


def tree_state(tree: Path) -> TreeState:
    """Each path below the tree with size, mode, inode, modification time and a hash of its content."""
    found: TreeState = {}
    for folder, directories, names in os.walk(tree):
        for name in [".", *directories, *names]:
            path = Path(folder, name)
            status = path.lstat()
            content = _hash(path) if path.is_file() and not path.is_symlink() and os.access(path, os.R_OK) else ""
            found[str(path)] = (status.st_size, status.st_mode, status.st_ino, status.st_mtime_ns, content)
    if tree.is_file():
        status = tree.lstat()
        found[str(tree)] = (status.st_size, status.st_mode, status.st_ino, status.st_mtime_ns, _hash(tree))
    return found


def _hash(path: Path) -> str:
    """A hash of the blocks that are not all zeros, with their places: preallocated indexes have holes, which are not read."""
    digest, at = hashlib.blake2b(), 0
    with path.open("rb", buffering=0) as file:
        while block := os.pread(file.fileno(), BLOCK, at := _next_data(file.fileno(), at)):
            if block.count(0) < len(block):
                digest.update(at.to_bytes(8) + block)
            at += BLOCK
    return digest.hexdigest()


BLOCK = 1 << 18


def _next_data(descriptor: int, position: int) -> int:
    """Where the next block begins in which the file system has data; the end of the file where there is none."""
    try:
        return os.lseek(descriptor, position, os.SEEK_DATA) // BLOCK * BLOCK
    except OSError as error:
        return os.fstat(descriptor).st_size if error.errno == errno.ENXIO else position
