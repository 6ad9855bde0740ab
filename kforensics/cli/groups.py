"""`kforensics groups`: the positions of consumer groups, and who moved them."""

from typing import Annotated

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.options import (
    BeforeOption,
    ClusterOption,
    JobsOption,
    KeepGoingOption,
    PartitionsOption,
    PathsArgument,
    TopicsOption,
    option,
    parse_time,
)
from kforensics.cli.redaction import RedactKeyOption, RedactOption, pseudonyms_of


@with_output("groups")
def groups(
    output: Output,
    *,
    paths: PathsArgument,
    before: BeforeOption = None,
    group: Annotated[
        list[str] | None, option("--group", "-g", metavar="NAME", help="Only this consumer group; repeatable.")
    ] = None,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    at: Annotated[
        str | None, option("--at", metavar="TIME", help="Positions and lag as of this time: ISO 8601 or milliseconds.")
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="List every commit, and who made it.")] = False,
    expired: Annotated[bool, typer.Option("--expired", help="List the positions that expired.")] = False,
    redact: RedactOption = False,
    redact_key: RedactKeyOption = None,
    cluster: ClusterOption = None,
    keep_going: KeepGoingOption = False,
    jobs: JobsOption = None,
) -> None:
    """Show the positions of consumer groups, how far behind they are, and who set them back.

    `__consumer_offsets` is replayed in the order of its log: commits, transactional ones with their marker, resets, expiry, deletion, and
    what a truncation took.
    """
    earlier = tuple(before or ())
    output.check([*paths, *earlier])
    pseudonyms = pseudonyms_of(redact, redact_key)
    from kforensics.commands.groups import GroupsRequest, run

    request = GroupsRequest(
        paths=tuple(paths),
        before=earlier,
        groups=frozenset(group or ()),
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        at_ms=None if at is None else parse_time(at, "--at"),
        history=history,
        expired=expired,
        cluster=cluster,
        keep_going=keep_going,
        pseudonyms=pseudonyms,
        jobs=jobs,
    )
    output.finish(run(request))
