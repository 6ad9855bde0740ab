"""`kforensics transactions`: which transactions are open, and what ends them."""

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
    StoppedOption,
    TopicsOption,
    option,
    parse_time,
)
from kforensics.cli.redaction import RedactKeyOption, RedactOption, pseudonyms_of
from kforensics.errors import UsageError


@with_output("transactions")
def transactions(
    output: Output,
    *,
    paths: PathsArgument,
    before: BeforeOption = None,
    transactional_id: Annotated[
        list[str] | None,
        option(
            "--transactional-id",
            metavar="ID",
            help="Only transactions of this id, with its history on disk; repeatable.",
        ),
    ] = None,
    producer_id: Annotated[
        list[int] | None,
        option("--producer-id", metavar="N", min=0, help="Only transactions of this producer; repeatable."),
    ] = None,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    at: Annotated[
        str | None,
        option(
            "--at",
            metavar="TIME",
            help="Judge as of this time; what was written later is left out. ISO 8601 or milliseconds.",
        ),
    ] = None,
    open_: Annotated[
        bool,
        typer.Option(
            "--open",
            help="List only replicas with open transactions. Where it is not given, those with torn ones, too.",
        ),
    ] = False,
    all_: Annotated[bool, typer.Option("--all", help="List every replica, with its last stable offset.")] = False,
    stopped: StoppedOption = False,
    redact: RedactOption = False,
    redact_key: RedactKeyOption = None,
    cluster: ClusterOption = None,
    keep_going: KeepGoingOption = False,
    jobs: JobsOption = None,
) -> None:
    """Show open transactions, whether they hang, and what ends them.

    The logs of the partitions are joined with what the coordinators wrote into `__transaction_state`: a transaction hangs, is torn by a
    truncation, waits for its coordinator, or is in time. Nothing is sent to a cluster.
    """
    earlier = tuple(before or ())
    output.check([*paths, *earlier])
    pseudonyms = pseudonyms_of(redact, redact_key)
    if open_ and all_:
        raise UsageError("--open and --all exclude each other")
    from kforensics.commands.transactions import TransactionsRequest, run

    request = TransactionsRequest(
        paths=tuple(paths),
        before=earlier,
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        transactional_ids=frozenset(transactional_id or ()),
        producer_ids=frozenset(producer_id or ()),
        at_ms=None if at is None else parse_time(at, "--at"),
        shows="open" if open_ else "all" if all_ else "unfinished",
        is_stopped=stopped,
        cluster=cluster,
        keep_going=keep_going,
        pseudonyms=pseudonyms,
        jobs=jobs,
    )
    output.finish(run(request))
