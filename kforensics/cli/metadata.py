"""`kforensics metadata`: the history of a cluster by its KRaft metadata log."""

from typing import Annotated

from kforensics.cli.command import Output, with_output
from kforensics.cli.options import (
    ClusterOption,
    KeepGoingOption,
    PathsArgument,
    option,
)
from kforensics.errors import UsageError


@with_output("metadata")
def metadata(
    output: Output,
    *,
    paths: PathsArgument,
    topic: Annotated[str | None, option("--topic", metavar="TOPIC", help="The history of this topic.")] = None,
    partition: Annotated[
        int | None, option("--partition", metavar="N", min=0, help="With --topic: of this partition.")
    ] = None,
    broker: Annotated[int | None, option("--broker", metavar="ID", help="The history of this broker.")] = None,
    at: Annotated[
        int | None, option("--at", metavar="OFFSET", min=0, help="The state once this metadata offset is applied.")
    ] = None,
    cluster: ClusterOption = None,
    keep_going: KeepGoingOption = False,
) -> None:
    """Show the history of partitions, topics and brokers from the KRaft metadata log and its snapshots.

    The metadata logs of several nodes are compared with each other, and the newest one is shown.
    """
    output.check(paths)
    if partition is not None and topic is None:
        raise UsageError("--partition needs --topic")
    from kforensics.commands.metadata import MetadataRequest, run

    output.finish(
        run(
            MetadataRequest(
                paths=tuple(paths),
                topic=topic,
                partition=partition,
                broker=broker,
                at=at,
                cluster=cluster,
                keep_going=keep_going,
            )
        )
    )
