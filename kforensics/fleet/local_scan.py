"""`fleet scan`: a broker's own disks into evidence that an audit can judge elsewhere, without Spark."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kforensics.ask.model import Ask
from kforensics.damage import Absent
from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.evidence.captured.columns import known
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.batch_reader import FileBatchReader
from kforensics.findings.fleet_summary import ScanResult
from kforensics.findings.model import Finding, by_gravity
from kforensics.findings.rules.replicas import partition_findings
from kforensics.fleet.content import CONTENT_TABLES, ContentKeeper
from kforensics.fleet.copies import copy_facts
from kforensics.fleet.pieces import EarlierLooks, Scanned, scan_piece
from kforensics.fleet.places import COPIES, SCAN_SCHEMA, Named, PlannedInput, find_sources, scan_manifest
from kforensics.fleet.plan import IS_DIRECTORY, LogDirTask, list_log_dir, log_dir_tasks, part_name
from kforensics.fleet.report_rows import finding_rows, input_row, problem_of, problem_row
from kforensics.fleet.rows import replica_of
from kforensics.fleet.schemas import REPLICAS
from kforensics.fleet.sources import Source, check_output
from kforensics.fleet.tables import SCAN_MANIFEST, Tables
from kforensics.reconcile.observed.facts import NoFacts
from kforensics.reconcile.replicas.partition import PartitionJudge
from kforensics.source.mapped import limit_read_rate

PIECE_LENGTH = 1 << 30
"""Bytes after which what was read is written down, so that an interruption costs no more than this."""

TABLES_OF_A_SCAN = (
    "nodes",
    "replicas",
    "segments",
    "digests",
    "lineage",
    "findings",
    "problems",
    "plan",
    *CONTENT_TABLES,
    COPIES,
)

Progress = Callable[[int, int], None]


def scan_node(
    paths: Sequence[Path],
    out: Path,
    *,
    rate: int | None = None,
    digests_only: bool = False,
    keep_going: bool = False,
    progress: Progress | None = None,
) -> ScanResult:
    """Extract the evidence of data directories.

    Args:
        paths: data directories of one broker, or parents of them.
        out: the directory of the evidence: new, or that of an earlier scan of the same directories.
        rate: most bytes to read in a second.
        digests_only: carry no batches: far less where batches are small, but runs that differ can't be drilled into.
        keep_going: a path that can't be used is a problem in the report, and the others are read.
        progress: called with the bytes read and the findings.

    Raises:
        UsageError: the output can't be used.
        EvidenceError: a path can't be used, or with `keep_going` none can.
    """
    limit_read_rate(rate)
    try:
        return _scan(paths, out, digests_only=digests_only, keep_going=keep_going, progress=progress)
    finally:
        limit_read_rate(None)


def _scan(
    paths: Sequence[Path], out: Path, *, digests_only: bool, keep_going: bool, progress: Progress | None
) -> ScanResult:
    sources = [Source(location=path) for path in paths]
    check_output(out, sources)
    tables = _open_output(out)
    found = find_sources(sources, keep_going=keep_going)
    tables.create(TABLES_OF_A_SCAN)
    tables.write_manifest(SCAN_MANIFEST, scan_manifest(found.inputs, is_complete=False))
    run = time.time_ns() // 1_000_000
    scanner = _Scanner(tables, run, progress, digests_only=digests_only)
    for task in log_dir_tasks(found.inputs):
        scanner.log_dir(task)
    problems = [*found.problems, *scanner.problems]
    for number, planned in enumerate(found.inputs):
        problems += copy_facts(number, planned.found, tables)
    _write_rest(tables, run, found.inputs, scanner.findings, problems)
    _remove_others(tables, run)
    tables.write_manifest(SCAN_MANIFEST, scan_manifest(found.inputs, is_complete=True, named=scanner.named))
    return ScanResult(
        inputs=tuple(one.found.described for one in found.inputs),
        findings=by_gravity(tuple(scanner.findings)),
        problems=tuple(problems),
        replicas=scanner.replicas,
        segments=scanner.segments,
        read_bytes=scanner.read_bytes,
        reused_segments=scanner.reused,
        evidence=str(out),
        evidence_bytes=tables.total_bytes(TABLES_OF_A_SCAN),
    )


def _open_output(out: Path) -> Tables:
    tables = Tables(out)
    manifest = tables.read_manifest(SCAN_MANIFEST)
    if manifest is None and not tables.is_empty():
        raise UsageError(f"{out} is not empty and holds no evidence of a scan; kforensics overwrites nothing")
    if manifest is not None and manifest.get("schema") != SCAN_SCHEMA:
        raise EvidenceUnreadable(str(out), "its evidence is of another version of kforensics")
    return tables


class _Scanner:
    def __init__(self, tables: Tables, run: int, progress: Progress | None, *, digests_only: bool) -> None:
        self._tables = tables
        self._run = run
        self._progress = progress
        self._digests_only = digests_only
        self.findings: list[Finding] = []
        self.problems: list[Problem] = []
        self.named: dict[str, tuple[Named, ...]] = {}
        self.replicas = self.segments = self.read_bytes = self.reused = 0

    def log_dir(self, task: LogDirTask) -> None:
        """Scan one log directory, piece by piece."""
        self.named[task.source] = list_log_dir(task, self._tables, Ask()).named
        plan_problems = f"plan-{task.number:06d}"
        if plan_problems in self._tables.parts("problems"):
            self.problems += [problem_of(row) for row in self._tables.read_part("problems", plan_problems).to_pylist()]
            self._tables.remove("problems", plan_problems)
        listing = self._tables.read_part("plan", part_name(task.number)).to_pylist()
        keeper = ContentKeeper(self._tables, task)
        for number, rows in enumerate(_pieces(listing)):
            read = scan_piece(
                task,
                rows,
                earlier=EarlierLooks([self._tables]),
                keeper=None if self._digests_only else keeper,
            )
            if self._digests_only:
                read.replicas = [{**row, "content": "digests"} for row in read.replicas]
            part = f"{task.source}-run-{self._run}-{number:06d}"
            for table, content in read.tables().items():
                self._tables.write(table, part, content)
            self._tables.write("replicas", part, read.replicas, REPLICAS)
            self._own_findings(task, read)
            self.problems += [problem_of(row) for row in read.problems]
            self.replicas += len(read.replicas)
            self.segments += len(read.segments)
            self.read_bytes += read.read_bytes
            self.reused += read.reused
            if self._progress:
                self._progress(read.read_bytes, len(self.findings))
        keeper.remove_others()

    def _own_findings(self, task: LogDirTask, read: Scanned) -> None:
        """Contradictions within each log; whatever needs other replicas is left to the audit."""
        segments: dict[str, tuple[list[Any], list[Any]]] = {}
        for row in read.segments:
            live, deleted = segments.setdefault(row["directory"], ([], []))
            (deleted if row["is_deleted"] else live).append(read.segment(row))
        roots = [task.found.root] * (task.input + 1)
        for row in read.replicas:
            live, deleted = segments.get(row["path"], ([], []))
            replica = replica_of(row, live, deleted)
            report = PartitionJudge([replica], FileBatchReader(roots), NoFacts()).report()
            self.findings += partition_findings(report)


def _pieces(listing: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield runs of whole partition directories of about `PIECE_LENGTH` bytes."""
    current: list[Mapping[str, Any]] = []
    length = 0
    for row in listing:
        if row["kind"] == IS_DIRECTORY and length >= PIECE_LENGTH:
            yield current
            current, length = [], 0
        current.append(row)
        length += row["length"]
    if current:
        yield current


def _write_rest(
    tables: Tables, run: int, inputs: Sequence[PlannedInput], findings: Sequence[Finding], problems: Sequence[Problem]
) -> None:
    part = f"run-{run}"
    tables.write(
        "nodes",
        part,
        [
            {
                **input_row(number, one.found.described),
                "is_evidence": False,
                "log_dirs": list(one.found.log_dir_paths),
                "problems": sum(problem.input == number for problem in problems),
            }
            for number, one in enumerate(inputs)
        ],
    )
    clusters = {one.found.described.cluster_id for one in inputs}
    cluster = next(iter(clusters)) if len(clusters) == 1 else Absent.UNKNOWN
    roots = [one.found.root for one in inputs]
    tables.write("findings", part, finding_rows([*findings], known(cluster), roots))
    tables.write("problems", part, [problem_row(one) for one in problems])


def _remove_others(tables: Tables, run: int) -> None:
    for table in ("nodes", "replicas", "segments", "digests", "lineage", "findings", "problems"):
        for part in tables.parts(table):
            if f"run-{run}" not in part:
                tables.remove(table, part)
