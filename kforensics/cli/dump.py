"""`kforensics dump`: the content of any file."""

from typing import Annotated

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.options import (
    JobsOption,
    KeepGoingOption,
    PathsArgument,
    option,
    parse_time,
)
from kforensics.cli.redaction import RedactKeyOption, RedactOption, pseudonyms_of


@with_output("dump")
def dump(
    output: Output,
    *,
    paths: PathsArgument,
    records: Annotated[bool, typer.Option("--records", help="Show records, not batches.")] = False,
    show_payload: Annotated[
        bool, typer.Option("--show-payload", help="Show keys, values and headers of records; implies --records.")
    ] = False,
    text: Annotated[bool, typer.Option("--text", help="Show payloads as text where they are UTF-8.")] = False,
    from_offset: Annotated[int | None, option("--from-offset", metavar="OFFSET", help="From this offset on.")] = None,
    to_offset: Annotated[int | None, option("--to-offset", metavar="OFFSET", help="Up to this offset.")] = None,
    epoch: Annotated[int | None, option("--epoch", metavar="EPOCH", help="Of this leader epoch only.")] = None,
    producer_id: Annotated[int | None, option("--producer-id", metavar="ID", help="Of this producer only.")] = None,
    from_time: Annotated[
        str | None,
        option(
            "--from-time",
            metavar="TIME",
            help="From this time on: ISO 8601, UTC where it names no zone, or milliseconds.",
        ),
    ] = None,
    to_time: Annotated[str | None, option("--to-time", metavar="TIME", help="Up to this time.")] = None,
    redact: RedactOption = False,
    redact_key: RedactKeyOption = None,
    jobs: JobsOption = None,
    keep_going: KeepGoingOption = False,
) -> None:
    """Decode any file of a data directory: batches or records, indexes, snapshots, checkpoints.

    Damage is shown in its place. Records of the metadata log and of Kafka's own topics are decoded to named fields.
    """
    output.check(paths)
    pseudonyms = pseudonyms_of(redact, redact_key)
    from kforensics.commands.dump import DumpRequest, run

    request = DumpRequest(
        keep_going=keep_going,
        paths=tuple(paths),
        records=records or show_payload or text,
        from_offset=from_offset,
        to_offset=to_offset,
        leader_epoch=epoch,
        producer_id=producer_id,
        from_time_ms=parse_time(from_time, "--from-time") if from_time is not None else None,
        to_time_ms=parse_time(to_time, "--to-time") if to_time is not None else None,
        pseudonyms=pseudonyms,
        jobs=jobs,
    )
    output.finish(run(request), show_payload=show_payload, as_text=text)
