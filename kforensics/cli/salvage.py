"""`kforensics salvage`: the records back, with a list of gaps."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.options import (
    BeforeOption,
    ClusterOption,
    JobsOption,
    KeepGoingOption,
    LeaderOption,
    PartitionsOption,
    ReadRateOption,
    StoppedOption,
    TimesOption,
    TopicsOption,
    apply_read_rate,
    argument,
    option,
    parse_offsets,
    parse_times,
)
from kforensics.errors import UsageError


class WhatOption(StrEnum):
    """The records that are wanted."""

    LOST = "lost"
    AT_RISK = "at-risk"
    ALL = "all"


class FormOption(StrEnum):
    """The form in which records are written."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    SEGMENTS = "segments"
    KCAT = "kcat"
    CONSOLE = "console"


@with_output("salvage", has_out=False)
def salvage(
    output: Output,
    *,
    paths: Annotated[
        list[Path] | None,
        argument(
            metavar="[PATH]...",
            help="Data directories as they are now, parents of several, captures, and broker logs, in any mixture.",
            readable=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "--out",
            "-o",
            metavar="OUT",
            help="The directory for the records: new or empty, outside of every input. Its files can be read by you alone.",
        ),
    ] = None,
    what: Annotated[
        WhatOption | None,
        option(
            "--what",
            help="lost: what explain says is lost, whatever its certainty. at-risk: what diff says a truncation or an election will discard, or one replica alone holds. "
            "all: the best copy of each offset. Default: lost, and with --carve what the images hold and the PATHs do not.",
            case_sensitive=False,
        ),
    ] = None,
    form: Annotated[
        FormOption,
        typer.Option(
            "--form",
            help="jsonl: one object a record, with a script that puts them back. parquet: the same for analysis. segments: a log that a broker loads, byte "
            "for byte. kcat, console: text for these tools.",
            case_sensitive=False,
        ),
    ] = FormOption.JSONL,
    before: BeforeOption = None,
    carve: Annotated[
        list[Path] | None,
        option(
            "--carve",
            metavar="IMAGE",
            help="Look for batches in a disk image or block device, whatever its file system says; repeatable. PATHs give logs their names. "
            "With --what lost or all, batches of the image fill what the PATHs lack; without --what, all is written that the PATHs do not hold.",
        ),
    ] = None,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    offsets: Annotated[
        str | None, option("--offsets", metavar="A..B", help="Only these offsets, both ends included.")
    ] = None,
    time: TimesOption = None,
    leader: LeaderOption = None,
    with_aborted: Annotated[
        bool,
        typer.Option("--with-aborted", help="Also records of aborted transactions, which consumers were never given."),
    ] = False,
    topic_id: Annotated[
        str | None,
        option(
            "--topic-id",
            metavar="ID",
            help="With --form segments: the id of the topic in the cluster that is to load them; without it the one that the directories have.",
        ),
    ] = None,
    from_zero: Annotated[
        bool, typer.Option("--from-zero", help="With --form segments: let each log begin at offset 0.")
    ] = False,
    stopped: StoppedOption = False,
    cluster: ClusterOption = None,
    keep_going: KeepGoingOption = False,
    read_rate: ReadRateOption = None,
    jobs: JobsOption = None,
) -> None:
    """Get records back: the best copy of what is lost, at risk, or of everything, with a list of gaps.

    Reads live replicas, .deleted and .swap files, -delete, -stray and -future directories, earlier snapshots, and sound batches behind damage; writes only to
    OUT, never below an input, and connects to nothing. OUT/manifest.json says of every run of records where it was and what its SHA-256 is, and of every gap
    why it is there; OUT/README how to put the records back. Exit code 0: all is saved; 1: there are gaps; 3: it is unknown
    whether that is all, or something could not be read or written.
    """
    earlier = tuple(before or ())
    if out is None:
        raise UsageError("-o OUT is needed: the directory for the records")
    given, images = tuple(paths or ()), tuple(carve or ())
    if not given and not images:
        raise UsageError("a PATH or --carve IMAGE is needed")
    if images and what is None and (earlier or leader is not None):
        raise UsageError("--carve goes with --before or --leader only where --what lost or --what all is asked for")
    if images and what is WhatOption.AT_RISK:
        raise UsageError("--carve does not go with --what at-risk: what is at risk is in the PATHs")
    if images and what is not None and not given:
        raise UsageError(f"--what {what} needs a PATH: the replicas that say what is missing")
    output.check([*given, *earlier, *images])
    jobs = apply_read_rate(read_rate, jobs)
    from kforensics.commands.salvage import SalvageRequest, run

    request = SalvageRequest(
        paths=given,
        images=images,
        out=out,
        before=earlier,
        what=what.value if what is not None else None,
        form=form.value,
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        offsets=parse_offsets(offsets, "--offsets") if offsets is not None else None,
        time_ms=parse_times(time, "--time") if time is not None else None,
        leader=leader,
        with_aborted=with_aborted,
        topic_id=topic_id,
        from_zero=from_zero,
        cluster=cluster,
        keep_going=keep_going,
        is_stopped=stopped,
        jobs=jobs,
    )
    output.finish(run(request))
