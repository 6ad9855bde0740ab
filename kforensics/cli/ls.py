"""`kforensics ls`: what is here."""

from typing import Annotated

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.options import (
    DepthOption,
    KeepGoingOption,
    PathsArgument,
)
from kforensics.units import Depth


@with_output("ls")
def ls(
    output: Output,
    *,
    paths: PathsArgument,
    files: Annotated[
        bool, typer.Option("--files", help="List every file, not only counts by kind (json, jsonl).")
    ] = False,
    depth: DepthOption = None,
    keep_going: KeepGoingOption = False,
) -> None:
    """List what is here: nodes, log directories, partitions with their offsets, every file by its kind.

    Of each log only the end is read, but with --depth content. In the table, epoch is the leader epoch of the last batch, start and end are the
    log start and log end offset, HW is the high watermark and recovery the recovery point; a dash means a value
    that nothing here holds.
    """
    output.check(paths)
    from kforensics.commands.ls import LsRequest, run

    request = LsRequest(paths=tuple(paths), keep_going=keep_going, depth=depth or Depth.TAILS)
    output.finish(run(request), files=files)
