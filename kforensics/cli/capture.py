"""`kforensics capture`: the evidence of a node in one file."""

from pathlib import Path
from typing import Annotated

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.destination import check_out, write_result
from kforensics.cli.options import (
    JobsOption,
    KeepGoingOption,
    NormalPriorityOption,
    ReadRateOption,
    apply_read_rate,
    argument,
    option,
    parse_rate,
)
from kforensics.cli.redaction import RedactKeyOption, pseudonyms_of
from kforensics.cli.seal import SIGNATURE_SUFFIX, ask_passphrase
from kforensics.cli.stops import Stops
from kforensics.errors import UsageError
from kforensics.units import Depth


@with_output("capture", has_out=False)
def capture(
    output: Output,
    *,
    paths: Annotated[
        list[Path],
        argument(
            metavar="PATH...",
            help="Data directories of one node, parents of some, and directories of its log files and server.properties.",
            readable=False,
        ),
    ],
    out: Annotated[
        Path | None,
        option(
            "--out",
            "-o",
            metavar="FILE",
            help="The capture: a new file, outside of the data. It gets its name when all of it is there.",
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say how long it will take and how large it will be.")
    ] = False,
    all_batches: Annotated[
        bool,
        typer.Option(
            "--all-batches",
            help="Take a row a batch along everywhere, not only where a truncation can still happen: for truncations long ago.",
        ),
    ] = False,
    with_tail: Annotated[
        bool,
        typer.Option(
            "--with-tail",
            help="Take the batches that can still be truncated along byte for byte, with the records of users in them: FILE is then as private as the data.",
        ),
    ] = False,
    depth: Annotated[
        Depth,
        typer.Option(
            "--depth",
            help="How much of the logs is read. tails: their ends, as diff --depth tails does: fast at any size, for commands with --depth tails. content: every batch.",
        ),
    ] = Depth.CONTENT,
    since: Annotated[
        Path | None,
        option(
            "--since",
            metavar="FILE.kfc",
            help="An earlier capture of the node: segments that did not change since are taken from it. The new capture is complete without it.",
        ),
    ] = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="Replace groups, hosts and principals by pseudonyms under a key of yours, the same in the captures of all nodes under one key.",
        ),
    ] = False,
    redact_topics: Annotated[
        bool, typer.Option("--redact-topics", help="Replace names of topics, too, but Kafka's own; implies --redact.")
    ] = False,
    redact_key: RedactKeyOption = None,
    sign_with: Annotated[
        Path | None,
        option(
            "--sign-with",
            metavar="KEY",
            help=f"Sign FILE with this Ed25519 private key (PEM), into FILE{SIGNATURE_SUFFIX}; `kforensics seal --check FILE --public-key` checks it.",
        ),
    ] = None,
    read_rate: ReadRateOption = None,
    jobs: JobsOption = None,
    normal_priority: NormalPriorityOption = False,
    keep_going: KeepGoingOption = False,
) -> None:
    """Take the evidence of a node along in one file, which every command takes where it takes directories.

    On each broker `kforensics capture`, and where the files are brought together `kforensics diff *.kfc`. Every small file, the metadata log and
    the log files are in it byte for byte; of segments offsets, leader epochs, damage and digests, and a row a batch where a truncation can still
    happen. No key, value or header of a user's record is in it, unless --with-tail is given. It reads at the lowest priority for disk and processor, and writes only FILE.
    """
    if (out is None) != plan:
        raise UsageError("--out FILE is needed" if out is None else "--plan writes no file: leave --out out")
    output.check(())
    check_out(out, paths)
    rate = parse_rate(read_rate, "--read-rate") if read_rate is not None else None
    jobs = apply_read_rate(read_rate, jobs)
    from kforensics.commands.capture import CaptureRequest, run

    stops = Stops()
    request = CaptureRequest(
        paths=tuple(paths),
        pseudonyms=pseudonyms_of(redact or redact_topics, redact_key),
        with_topics=redact_topics,
        out=out,
        all_batches=all_batches,
        depth=depth,
        with_tail=with_tail,
        since=() if since is None else (since,),
        is_stopped=stops.asked,
        jobs=jobs,
        rate=rate,
        lowest_priority=not normal_priority,
        keep_going=keep_going,
    )
    key = None
    if sign_with is not None and out is not None:
        from kforensics.commands.seal import sign_file, signing_key

        signature = Path(f"{out}{SIGNATURE_SUFFIX}")
        check_out(signature, paths)
        key = signing_key(sign_with, ask_passphrase)
    with stops, output.progress() as progress:
        result = run(request, progress)
    if key is not None and out is not None:
        write_result(sign_file(out, key), signature)
    output.finish(result)
