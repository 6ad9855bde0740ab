"""`kforensics predict`: what the broker will do to these directories when it is started."""

from pathlib import Path
from typing import Annotated

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.options import (
    DepthOption,
    JobsOption,
    KeepGoingOption,
    PartitionsOption,
    PathsArgument,
    TopicsOption,
    option,
    parse_pairs,
    parse_time,
)
from kforensics.units import Depth


@with_output("predict")
def predict(
    output: Output,
    *,
    paths: PathsArgument,
    kafka: Annotated[
        str | None,
        option(
            "--kafka",
            metavar="VERSION",
            help="The version that will be started, 0.10 to 4.4. Where it is not given, the one that a server log among the inputs or the node's registration names; else the start is computed for each version that the files allow, and compared.",
        ),
    ] = None,
    now: Annotated[
        str | None,
        option(
            "--now",
            metavar="TIME",
            help="When it will be started, for retention and the expiry of producers: ISO 8601 or milliseconds since 1970. This machine's clock where it is not given.",
        ),
    ] = None,
    without: Annotated[
        list[Path] | None,
        option(
            "--without",
            metavar="FILE",
            help="Compute the start as if this file or directory were not there, such as an index, the epoch file or .kafka_cleanshutdown; repeatable. Nothing is changed.",
            readable=False,
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting that it will be started with, such as log.retention.ms; repeatable. Others are those of the metadata log, of a server.properties among the inputs, or Kafka's defaults.",
        ),
    ] = None,
    ways_out: Annotated[
        bool,
        typer.Option(
            "--ways-out",
            help="Also compute the start under changes, alone and in pairs, such as a file moved away, the marker, another version; rank them by what each loses. Nothing is changed.",
        ),
    ] = False,
    order: Annotated[
        bool,
        typer.Option(
            "--order",
            help="For a cluster that is stopped as a whole: say which broker to start first, which to wait for, and which elections that needs. Name the directories of all brokers.",
        ),
    ] = False,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    depth: DepthOption = None,
    jobs: JobsOption = None,
    keep_going: KeepGoingOption = False,
) -> None:
    """Say what a broker will do to its logs when it is started: scanned, truncated, deleted, rebuilt, or refused, file by file.

    Give the log directories of a stopped broker, or a copy of them, and those of the other brokers to learn who else holds
    what would be discarded. Nothing is written. Starts are computed one after the other until one succeeds or nothing changes.
    Where it is not given, the version is the one that the server log names, or that the node registered.
    """
    output.check(paths)
    import time

    from kforensics.commands.predict import PredictRequest, run

    request = PredictRequest(
        paths=tuple(paths),
        keep_going=keep_going,
        kafka=kafka,
        now_ms=time.time_ns() // 1_000_000 if now is None else parse_time(now, "--now"),
        without=tuple(without or ()),
        settings=parse_pairs(setting or (), "--set"),
        ways_out=ways_out,
        order=order,
        depth=depth or Depth.CONTENT,
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        jobs=jobs,
    )
    output.finish(run(request))
