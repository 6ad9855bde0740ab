"""The stages of an audit that Spark runs: listing, and scanning with judging behind it; and what is done about tasks that take their workers down."""

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pd

from kforensics.ask.model import Ask
from kforensics.errors import EvidenceUnreadable
from kforensics.evidence.model import Problem
from kforensics.evidence.plain import to_plain
from kforensics.findings.rules.inputs import RefusedStart
from kforensics.fleet.facts import Gathered, packed, unpacked
from kforensics.fleet.file_systems import redacted
from kforensics.fleet.judge import STATE, WorkContext, judge_group
from kforensics.fleet.knowledge import (
    Fleet,
    gather_knowledge,
    is_small,
    list_commits,
    refused_in,
    unchanged_offsets,
)
from kforensics.fleet.pieces import Scanned, bring_facts, earlier_looks, pack, scan_piece
from kforensics.fleet.plan import (
    IS_DIRECTORY,
    TASKS_A_CORE,
    LogDirLister,
    LogDirTask,
    LogDirTotals,
    Piece,
    part_name,
)
from kforensics.fleet.schemas import OF_SEGMENTS
from kforensics.fleet.sources import LISTERS, FoundSources
from kforensics.fleet.tables import Tables
from kforensics.fleet.watch import Counters, Progress, Stage, watch_tasks
from kforensics.units import Depth, TopicPartition
from kforensics.words import byte_count, counted

READ_HERE = 8 << 20
"""Bytes of consumers' offsets that the driver reads by itself, likewise."""

SCANNED_HERE = 256 << 20
"""Weight of what is left to read where verdicts are kept, up to which the driver reads and judges it, likewise."""

GROUP_PARTITIONS = 64
MOST_GROUPS = 4_000
GROUPS_A_TASK = 8
MOST_GROUP_TASKS = 2_000


def cores_of(session: Any) -> int:
    """Return the number of tasks that run at the same time; 16 where the session does not show it, as that of Spark Connect."""
    context = _context(session)
    return int(context.defaultParallelism) if context is not None else 16


def groups_of(replicas: int, cores: int) -> int:
    """Return how many groups of partitions are judged together: enough for all cores, as many a core."""
    wanted = max(replicas // (3 * GROUP_PARTITIONS), min(cores * 2, replicas // 8), 1)
    return min(MOST_GROUPS, -(-wanted // cores) * cores if wanted > cores else wanted)


def _context(session: Any) -> Any:
    try:
        return session.sparkContext
    except Exception:  # noqa: BLE001 - Spark Connect has none and says so in its own way
        return None


def outline_fleet(found: FoundSources, tasks: Sequence[LogDirTask], options: Ask) -> tuple[LogDirLister, ...]:
    """Look at every log directory here, which is quicker than to have a job started for it; at none where there is much."""
    if not is_small(found.inputs):
        return ()
    with ThreadPoolExecutor(LISTERS) as pool:
        return tuple(pool.map(lambda task: LogDirLister(task, options), tasks))


def list_fleet(
    session: Callable[[], Any],
    listers: Sequence[LogDirLister],
    tasks: Sequence[LogDirTask],
    tables: Tables,
    options: Ask,
    progress: Progress | None,
) -> tuple[LogDirTotals, ...]:
    """List every log directory where it lies, unless it was listed here, into the table `plan`; only totals come back."""
    if listers:
        with ThreadPoolExecutor(LISTERS) as pool:
            return tuple(pool.map(lambda one: one.listed(tables), listers))
    if not tasks:
        return ()
    slices = min(len(tasks), 1_000)
    work = functools.partial(_list_here, tuple(tasks), tables, options)
    spark = session()
    context = _context(spark)
    words = f"kforensics fleet audit, {tables}: list {counted(len(tasks), 'log directory')}"
    stage = Stage(name="plan", tasks=slices)
    with errors_of_tasks(tables), watch_tasks(context, stage, Counters(None), progress, words):
        found = _of_each(spark, len(tasks), slices, work)
    return tuple(sorted((LogDirTotals(**json.loads(one)) for one in found), key=lambda one: one.number))


def gather_fleet(session: Callable[[], Any], fleet: Fleet) -> dict[str, Gathered]:
    """Gather what is known of each cluster, some clusters a task, when what consumer groups committed is there; what is about partitions goes into the table `facts`."""
    holders = [one for one in fleet.totals if one.offsets_bytes]
    unchanged = {one.number: unchanged_offsets(fleet, one.number) for one in holders if fleet.is_small}
    if fleet.is_small and sum(length for _, length in unchanged.values()) <= READ_HERE:
        for number, (known, _) in unchanged.items():
            list_commits(fleet, number, known)
    elif holders:
        _each_on_workers(session, fleet, [one.number for one in holders], list_commits)
    clusters = sorted(fleet.members)
    if fleet.is_small:
        return {cluster: gather_knowledge(fleet, cluster) for cluster in clusters}
    found = _each_on_workers(session, fleet, clusters, gather_knowledge) if clusters else []
    return {one.cluster: one for one in sorted(found, key=lambda one: one.cluster)}


def refused_by_cluster(
    session: Callable[[], Any], fleet: Fleet, doubted: Mapping[str, Mapping[int, set[TopicPartition]]]
) -> dict[str, tuple[RefusedStart, ...]]:
    """Return the brokers of each cluster that do not start as they are, of those that are in doubt."""
    if fleet.is_small:
        found = [refused_in(fleet, cluster, own) for cluster, own in doubted.items()]
    else:
        found = _each_on_workers(session, fleet, [*doubted.items()], lambda fleet, one: refused_in(fleet, *one))
    return {cluster: refused for cluster, refused in zip(doubted, found, strict=True) if refused}


def _each_on_workers(
    session: Callable[[], Any],
    fleet: Fleet,
    values: Sequence[Any],
    work: Callable[[Fleet, Any], Any],
) -> list[Any]:
    """Return what a function gives for each value, some values a task."""
    spark = session()  # columns are made of a session
    # All inputs travel to each task: with a task a cluster many clusters would cost their square.
    slices = min(len(values), cores_of(spark) * TASKS_A_CORE)
    with errors_of_tasks(fleet.tables):
        own = functools.partial(_of_value, fleet, tuple(values), work)
        return list(map(unpacked, _of_each(spark, len(values), slices, own)))


def _of_each(spark: Any, count: int, slices: int, work: Callable[[int], str]) -> list[str]:
    frame = spark.range(0, count, 1, slices).select(_on_workers(work, "string")("id").alias("found"))
    return [row.found for row in frame.collect()]


def _of_value(fleet: Fleet, values: Sequence[Any], work: Callable[[Fleet, Any], Any], number: int) -> str:
    return packed(work(fleet, values[number]))


def _on_workers(work: Callable[..., Any], kind: str) -> Any:
    """Return a column function of Spark that calls `work` with the values of a row, and needs no pandas."""
    from pyspark.sql.functions import arrow_udf
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import _parse_datatype_string

    arrow_type = to_arrow_type(_parse_datatype_string(kind))

    def each(*columns: pa.Array) -> pa.Array:
        rows = zip(*(one.to_pylist() for one in columns), strict=True)
        return pa.array([_named(work, *values) for values in rows], arrow_type)

    return arrow_udf(each, kind).asNondeterministic()


def _named(work: Callable[..., Any], number: int, *values: Any) -> Any:
    with naming_task(number):
        return work(number, *values)


@contextmanager
def naming_task(number: int) -> Iterator[None]:
    """Name the task, on its worker, in what storage refuses: `errors_of_tasks` reads it on the driver."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if not isinstance(error, OSError) and type(error) is not pa.ArrowException:
            raise  # of the classes below it a defect has one, too
        said = redacted(getattr(error, "strerror", None) or str(error) or type(error).__name__)
        raise TaskFailedError(
            json.dumps({"task": number, "file": redacted(str(getattr(error, "filename", "") or "")), "said": said})
        ) from None


class TaskFailedError(Exception):
    """What storage refused a task, as JSON; all that Spark brings to the driver of an error is its text."""


_FAILED = re.compile(rf"{TaskFailedError.__name__}: (\{{.*\}})")


@contextmanager
def errors_of_tasks(tables: Tables) -> Iterator[None]:
    """Turn the error that ended a job into one that names the task and the file, where storage refused something, or says that Spark itself failed.

    Raises:
        EvidenceUnreadable: instead of the error of Spark.
    """
    try:
        yield
    except Exception as error:
        from pyspark.errors import PySparkException, PythonException

        found = _FAILED.search(f"{type(error).__name__}: {error}")
        if found is not None:
            failed = json.loads(found[1])
            place = failed["file"] or str(tables)
            raise EvidenceUnreadable(
                place, f"can't be read or written, by task {failed['task']}: {failed['said']}"
            ) from error
        is_of_spark = isinstance(error, PySparkException) or type(error).__module__.startswith("py4j")
        if is_of_spark and not isinstance(error, PythonException) and "PythonException" not in str(error):
            said = redacted(str(error).strip().partition("\n")[0])
            raise EvidenceUnreadable(str(tables), f"Spark ended the job: {said}") from error
        raise


def _list_here(tasks: tuple[LogDirTask, ...], tables: Tables, options: Ask, number: int) -> str:
    return json.dumps(to_plain(LogDirLister(tasks[number], options).listed(tables)))


def scan_and_judge(
    session: Callable[[], Any],
    scan: WorkContext,
    totals: Sequence[LogDirTotals],
    progress: Progress | None,
) -> tuple[list[Problem], Counter[str]]:
    """Scan and judge; where tasks kill their workers again and again, without them.

    Returns:
        What was left out, as problems, and the rows that the groups wrote, by table, with the bytes that they read.

    Raises:
        EvidenceUnreadable: storage refused something, or Spark failed.
        Exception: a defect, which no task is shown to have killed its workers by.
    """
    lost: list[Problem] = []
    rows: Counter[str] = Counter(problems=0)
    while scan.pieces:
        try:
            rows = scan_here(scan) if scan.is_here else _run(session(), scan, totals, progress)
        except Exception as error:
            # What storage refuses one task it refuses all: nobody's worker was lost by it.
            blamed = frozenset() if _FAILED.search(str(error)) else _blamed(scan)
            if not blamed:
                with errors_of_tasks(scan.tables):
                    raise
            words = f"not read: the workers that tried were lost ({type(error).__name__})"
            for number in blamed:
                for piece in scan.pieces[number]:
                    for table in OF_SEGMENTS:  # its rows are counted by nobody
                        scan.tables.remove(table, _part(scan, piece, number))
                    task = scan.tasks[piece.number]
                    path = task.found.log_dir_paths[0] if task.found.log_dir_paths else ""
                    lost.append(Problem(input=task.input, path=path or ".", message=words))
            pieces = tuple(() if number in blamed else one for number, one in enumerate(scan.pieces))
            scan = replace(scan, pieces=pieces)
            continue
        break
    return lost, rows


def _part(scan: WorkContext, piece: Piece, number: int) -> str:
    return f"{scan.tasks[piece.number].source}-run-{scan.run:04d}-{number:06d}"


def _blamed(scan: WorkContext) -> frozenset[int]:
    """Tasks that were tried more than once and never finished."""
    names = scan.tables.names(STATE)
    retried = {int(one.rpartition("-")[2]) for one in names if one.startswith(f"retry-{scan.run:04d}-")}
    finished = {int(one.rpartition("-")[2]) for one in names if one.startswith(f"task-{scan.run:04d}-")}
    return frozenset(number for number in retried - finished if scan.pieces[number])


def _run(session: Any, scan: WorkContext, totals: Sequence[LogDirTotals], progress: Progress | None) -> Counter[str]:
    from pyspark.sql.functions import collect_list, explode

    context = _context(session)
    counters = Counters(context)
    count = scan.count
    scanned = _on_workers(functools.partial(_scan_task, scan, counters), "array<struct<group:int,parcel:binary>>")
    numbers = session.range(0, count, 1, count)
    parcels = numbers.select(explode(scanned("id")).alias("one")).select("one.group", "one.parcel")
    # By number where Spark can (4.1 and later): hashes would give one task several of few groups, and others none.
    spread = parcels.repartitionById if hasattr(parcels, "repartitionById") else parcels.repartition
    # A task of a group each would take longer to start than its work.
    wanted = max(cores_of(session) * TASKS_A_CORE, scan.groups // GROUPS_A_TASK)
    grouped = spread(min(scan.groups, wanted, MOST_GROUP_TASKS), "group").groupBy("group")
    judge = replace(scan, pieces=(), facts=(), since={})  # which would travel for nothing
    judge_rows = _on_workers(functools.partial(_judge, judge, counters), "string")
    judged = grouped.agg(collect_list("parcel").alias("parcels")).select(judge_rows("group", "parcels").alias("counts"))
    segments, length = sum(one.segments for one in totals), sum(one.bytes for one in totals)
    stage = Stage(name="scan", tasks=count, files=segments, bytes=length)
    amount = f"{counted(segments, 'segment')} of {byte_count(length)}"
    if scan.options.depth is Depth.TAILS:
        stage = Stage(name="scan", tasks=count)
        amount = f"the ends of {counted(sum(one.replicas for one in totals), 'log')}"
    words = f"kforensics fleet audit, {scan.tables}: read {amount} and judge their partitions"
    with watch_tasks(context, stage, counters, progress, words):
        groups = judged.collect()
    rows: Counter[str] = Counter()
    for one in groups:
        rows.update(json.loads(one.counts))
    return rows


def scan_here(scan: WorkContext) -> Counter[str]:
    """Scan and judge in this process what tasks of Spark would."""
    parcels: dict[int, list[bytes]] = {}
    for number in range(scan.count):
        for group, parcel in pack(
            _named(functools.partial(scan_task, scan), number), scan.clusters, scan.groups
        ).items():
            parcels.setdefault(group, []).append(parcel)
    rows: Counter[str] = Counter()
    for group, own in parcels.items():
        rows.update(_named(lambda number, own: judge_group(number, own, scan), group, own))
    return rows


def _scan_task(scan: WorkContext, counters: Counters, number: int) -> list[dict[str, Any]]:
    if number < len(scan.pieces):
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.attemptNumber() > 0:
            scan.tables.write_bytes(f"{STATE}/retry-{scan.run:04d}-{number:06d}", b"")
    scanned = scan_task(scan, number)
    counters.add_read(len(scanned.segments), sum(row["length"] for row in scanned.segments))
    parcels = pack(scanned, scan.clusters, scan.groups)
    return [{"group": group, "parcel": parcel} for group, parcel in parcels.items()]


def _judge(judge: WorkContext, counters: Counters, group: int, parcels: list[bytes]) -> str:
    counts = judge_group(group, parcels, judge)
    counters.add_findings(counts["findings"])
    return json.dumps(counts)


def scan_task(scan: WorkContext, number: int) -> Scanned:
    """Return what one task's pieces hold, with their part of the evidence tables written; behind the tasks with pieces are those that bring facts."""
    if number >= len(scan.pieces):
        return bring_facts(scan.tables, scan.facts[number - len(scan.pieces)])
    whole = Scanned()
    rows: Counter[str] = Counter()
    listings = [_listing(scan, piece) for piece in scan.pieces[number]]
    paths: dict[str, dict[str, list[str]]] = {}
    for piece, listing in zip(scan.pieces[number], listings, strict=True):
        task = scan.tasks[piece.number]
        own = paths.setdefault(scan.clusters[task.input], {}).setdefault(task.source, [])
        own += [row["path"] for row in listing if row["kind"] != IS_DIRECTORY]
    before = [scan.tables] if scan.run > 1 else []
    is_read = scan.options.depth is not Depth.TAILS
    looks = {
        cluster: earlier_looks([*before, *([scan.since[cluster]] if cluster in scan.since else [])], own)
        for cluster, own in (paths.items() if is_read else ())
    }
    for piece, listing in zip(scan.pieces[number], listings, strict=True):
        task = scan.tasks[piece.number]
        if scan.options.depth is Depth.TAILS:
            of_task = {"input": task.input, "task": task.number}
            whole.directories += [{**row, **of_task} for row in listing if row["kind"] == IS_DIRECTORY]
            continue
        read = scan_piece(task, listing, earlier=looks[scan.clusters[task.input]])
        part = _part(scan, piece, number)
        for table, content in read.tables(scan.verdict_of).items():
            assert isinstance(content, pa.Table)
            scan.tables.write(table, part, content)
            rows[table] += content.num_rows
        whole.add(read)
    scan.tables.write_if_any("problems", f"run-{scan.run:04d}-task-{number:06d}", whole.problems)
    rows["problems"] += len(whole.problems)
    done = json.dumps({"read_bytes": whole.read_bytes, "reused": whole.reused, "rows": rows}).encode()
    scan.tables.write_bytes(f"{STATE}/task-{scan.run:04d}-{number:06d}", done)
    return whole


def _listing(scan: WorkContext, piece: Piece) -> list[dict[str, Any]]:
    within = (pd.field("at") >= piece.start) & (pd.field("at") < piece.end)
    rows: list[dict[str, Any]] = scan.tables.read_part(
        scan.listing, part_name(piece.number), filters=within
    ).to_pylist()
    return rows
