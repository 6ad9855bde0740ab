from typing import Annotated

import typer

from kforensics.cli.exits import ExitCode
from kforensics.cli.options import (
    ClusterOption,
    KeepGoingOption,
    LinesFormatOption,
    OutOption,
    OutputFormat,
    PathsArgument,
    VerboseOption,
    require_format,
)


def metadata(
    paths: PathsArgument,
    *,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="TOPIC", help="The history of this topic.", show_default=False)
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", metavar="N", min=0, help="With --topic: of this partition.", show_default=False),
    ] = None,
    broker: Annotated[
        int | None, typer.Option("--broker", metavar="ID", help="The history of this broker.", show_default=False)
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(
            "--at", metavar="OFFSET", min=0, help="The state once this metadata offset is applied.", show_default=False
        ),
    ] = None,
    cluster: ClusterOption = None,
    keep_going: KeepGoingOption = False,
    verbose: VerboseOption = False,
    output_format: LinesFormatOption = OutputFormat.TEXT,
    out: OutOption = None,
) -> None:
    """Show the history of partitions, topics and brokers from the KRaft metadata log and its snapshots.

    The metadata logs of several nodes are compared with each other, and the newest one is told.
    """
    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON, OutputFormat.JSONL)
    from kforensics.cli.metadata_run import MetadataQuestion, run_metadata
    from kforensics.cli.output import check_out
    from kforensics.errors import UsageError

    if partition is not None and topic is None:
        raise UsageError("--partition needs --topic")
    check_out(out, paths)
    question = MetadataQuestion(topic=topic, partition=partition, broker=broker, at=at, verbose=verbose)
    code = run_metadata(paths, question, output_format=output_format, out=out, keep_going=keep_going, cluster=cluster)
    if code is not ExitCode.NOTHING_FOUND:
        raise typer.Exit(code)
