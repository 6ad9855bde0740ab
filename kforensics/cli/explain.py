"""`kforensics explain`: what was truncated, why, and which committed records are lost."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from kforensics.cli.command import Output, with_output
from kforensics.cli.options import (
    BeforeOption,
    ClusterOption,
    DepthOption,
    JobsOption,
    KeepGoingOption,
    PartitionsOption,
    SealOption,
    StoppedOption,
    TopicsOption,
    argument,
    option,
    parse_time,
)
from kforensics.cli.redaction import RedactKeyOption, RedactOption, pseudonyms_of


@with_output("explain")
def explain(
    output: Output,
    *,
    paths: Annotated[
        list[Path],
        argument(
            metavar="PATH...",
            help="Data directories as they are now, parents of several, and broker logs, in any mixture: server.log, state-change.log, "
            "controller.log, rotated and gzipped ones too.",
            readable=False,
        ),
    ],
    before: BeforeOption = None,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    since: Annotated[
        str | None,
        option(
            "--since",
            metavar="TIME",
            help="Timeline from this time on: ISO 8601, UTC where it names no zone, or milliseconds. With a metadata log among the inputs, log files that end a day before it are not read.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        option(
            "--until",
            metavar="TIME",
            help="Timeline up to this time. With a metadata log among the inputs, log files that begin a day after it are not read.",
        ),
    ] = None,
    log_timezone: Annotated[
        str | None,
        option(
            "--log-timezone",
            metavar="ZONE",
            help="Zone of the times in the logs, as +02:00 or Europe/Berlin; where it is not given, the evidence decides.",
        ),
    ] = None,
    stopped: StoppedOption = False,
    cluster: ClusterOption = None,
    depth: DepthOption = None,
    keep_going: KeepGoingOption = False,
    redact: RedactOption = False,
    redact_key: RedactKeyOption = None,
    jobs: JobsOption = None,
    seal: SealOption = None,
) -> None:
    """Explain what happened in an incident: every truncation with its cause, and every lost record.

    Works on one broker's directory alone and gets better with every other replica, metadata log, log file and earlier snapshot;
    it says what is missing. `--format html -o report.html` makes a page for the post-mortem. Exit code 1 means that records that were or may have been committed are lost.
    """
    earlier = tuple(before or ())
    output.check([*paths, *earlier])
    pseudonyms = pseudonyms_of(redact, redact_key)
    from kforensics.commands.explain import ExplainRequest, run
    from kforensics.render.emit import OutputFormat

    request = ExplainRequest(
        paths=tuple(paths),
        before=earlier,
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        since_ms=parse_time(since, "--since") if since is not None else None,
        until_ms=parse_time(until, "--until") if until is not None else None,
        log_timezone=log_timezone or None,
        pseudonyms=pseudonyms,
        seal=seal,
        is_stopped=stopped,
        cluster=cluster,
        keep_going=keep_going,
        hash_files=output.format is OutputFormat.HTML,
        jobs=jobs,
    )
    output.finish_by_depth(
        lambda chosen, progress, read: run(replace(request, depth=chosen, read=read), progress), depth
    )
