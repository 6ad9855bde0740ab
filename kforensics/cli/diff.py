"""`kforensics diff`: the replicas of every partition, compared."""

from dataclasses import replace
from typing import Annotated

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.options import (
    ClusterOption,
    DepthOption,
    JobsOption,
    KeepGoingOption,
    LeaderOption,
    PartitionsOption,
    PathsArgument,
    Protocol,
    ReadRateOption,
    ReplicasOption,
    SealOption,
    StoppedOption,
    TopicsOption,
    apply_read_rate,
    broker_list,
    option,
)
from kforensics.cli.redaction import RedactKeyOption, RedactOption, pseudonyms_of
from kforensics.errors import UsageError


@with_output("diff")
def diff(
    output: Output,
    *,
    paths: PathsArgument,
    leader: LeaderOption = None,
    protocol: Annotated[
        Protocol | None,
        option(
            "--protocol",
            help="The truncation protocol of the followers: hw up to 0.10, kip-101 for 0.11 to 1.1, kip-279 for 2.0 to 2.7, kip-595 since 2.8. "
            "Without it, message formats and cluster metadata decide; else the likeliest protocol that the files of a broker allow is assumed.",
        ),
    ] = None,
    replicas: ReplicasOption = None,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    only_findings: Annotated[
        bool, typer.Option("--only-findings", help="One line a finding, without the blocks.")
    ] = False,
    explain_steps: Annotated[
        bool, typer.Option("--explain-steps", help="Show each request and answer of the truncation protocol.")
    ] = False,
    show_records: Annotated[
        bool, typer.Option("--show-records", help="List the offsets and keys of the records that would be discarded.")
    ] = False,
    show_payload: Annotated[
        bool,
        typer.Option(
            "--show-payload",
            help="With --show-records, their values too. Payloads are private: take care who gets to see this output.",
        ),
    ] = False,
    stopped: StoppedOption = False,
    cluster: ClusterOption = None,
    depth: DepthOption = None,
    keep_going: KeepGoingOption = False,
    redact: RedactOption = False,
    redact_key: RedactKeyOption = None,
    jobs: JobsOption = None,
    read_rate: ReadRateOption = None,
    seal: SealOption = None,
) -> None:
    """Compare the replicas of every partition: where each will truncate, what differs, and what each possible leader would lose.

    Give the data directories of the brokers of one cluster, and of its controllers where it has them. The first line says what
    is at risk. The exit code follows from it: 1 where something is at risk, differs for good or is
    truncated, 3 where the inputs do not show it.
    """
    output.check(paths)
    if show_payload and not show_records:
        raise UsageError("--show-payload needs --show-records")
    pseudonyms = pseudonyms_of(redact, redact_key)
    jobs = apply_read_rate(read_rate, jobs)
    from kforensics.commands.diff import DiffRequest, run
    from kforensics.render.emit import flattener

    flatten = flattener(output.format)
    request = DiffRequest(
        paths=tuple(paths),
        leader=leader,
        protocol=protocol.value if protocol else None,
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        replicas=broker_list(replicas),
        is_stopped=stopped,
        pseudonyms=pseudonyms,
        seal=seal,
        cluster=cluster,
        keep_going=keep_going,
        jobs=jobs,
        flatten=flatten,
        keep_quiet=flatten is None and output.verbose,
    )
    output.finish_by_depth(
        lambda chosen, progress, read: run(replace(request, depth=chosen, read=read), progress),
        depth,
        only_findings=only_findings,
        steps=explain_steps,
        show_records=show_records,
        show_payload=show_payload,
    )
