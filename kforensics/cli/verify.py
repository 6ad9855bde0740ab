"""`kforensics verify`: every file against its format and its neighbours."""

from enum import StrEnum
from typing import Annotated

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.options import (
    JobsOption,
    KeepGoingOption,
    PathsArgument,
    ReadRateOption,
    SealOption,
    apply_read_rate,
)


class VerifyLevel(StrEnum):
    HEADERS = "headers"
    CRC = "crc"
    RECORDS = "records"


LevelOption = Annotated[
    VerifyLevel,
    typer.Option(
        "--level",
        help="How deep batches are looked into: headers, checksums too, or every record.",
        case_sensitive=False,
    ),
]


@with_output("verify")
def verify(
    output: Output,
    *,
    paths: PathsArgument,
    level: LevelOption = VerifyLevel.RECORDS,
    jobs: JobsOption = None,
    read_rate: ReadRateOption = None,
    seal: SealOption = None,
    keep_going: KeepGoingOption = False,
) -> None:
    """Check every file against its format and against its neighbours.

    Checksums, batch order, leader epochs, lengths and counts; indexes, transactions, producer snapshots and checkpoints
    against the log; names against content. Behind a damaged batch it continues with the next good one. Where another
    replica among the inputs holds a damaged range intact, it is named. Exit code 0 says that nothing is damaged.
    """
    output.check(paths)
    jobs = apply_read_rate(read_rate, jobs)
    from kforensics.commands.verify import VerifyRequest, run

    request = VerifyRequest(paths=tuple(paths), level=level.value, seal=seal, jobs=jobs, keep_going=keep_going)
    with output.progress() as progress:
        result = run(request, progress)
    output.finish(result)
