"""`kforensics trace`: one record's life, or what was searched without finding it."""

import base64
import binascii
import re
from typing import Annotated

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.options import (
    BeforeOption,
    ClusterOption,
    JobsOption,
    KeepGoingOption,
    LeaderOption,
    PartitionsOption,
    PathsArgument,
    StoppedOption,
    TimesOption,
    option,
    parse_times,
)
from kforensics.errors import UsageError


@with_output("trace")
def trace(
    output: Output,
    *,
    paths: PathsArgument,
    topic: Annotated[str | None, option("--topic", "-t", metavar="NAME", help="The topic.")] = None,
    key: Annotated[str | None, option("--key", metavar="TEXT", help="The key, as UTF-8.")] = None,
    key_base64: Annotated[str | None, option("--key-base64", metavar="BASE64", help="The key, of any bytes.")] = None,
    key_sha256: Annotated[
        str | None,
        option("--key-sha256", metavar="HEX", help="The SHA-256 of the key, so that the request does not show it."),
    ] = None,
    offset: Annotated[int | None, option("--offset", metavar="N", min=0, help="The offset.")] = None,
    header: Annotated[
        str | None, option("--header", metavar="NAME[=VALUE]", help="A header, with this value if one is given.")
    ] = None,
    value: Annotated[
        str | None, option("--value", metavar="LITERAL", help="What the value holds somewhere, as UTF-8.")
    ] = None,
    value_regex: Annotated[
        str | None,
        option(
            "--value-regex",
            metavar="RE",
            help="What the value matches somewhere, in the syntax of RE2, which is matched in linear time; it needs the extra named regex.",
        ),
    ] = None,
    time: TimesOption = None,
    before: BeforeOption = None,
    partition: PartitionsOption = None,
    all_partitions: Annotated[
        bool,
        typer.Option(
            "--all-partitions",
            help="Search every partition of the topic, as is done unless --partition names some: no hash of a key proves where it is not.",
        ),
    ] = False,
    erasure: Annotated[
        bool,
        typer.Option(
            "--erasure",
            help="Report whether any bytes of the key are left: every place, until when they stay there, and the hashes of all files that were searched.",
        ),
    ] = False,
    leader: LeaderOption = None,
    stopped: StoppedOption = False,
    cluster: ClusterOption = None,
    keep_going: KeepGoingOption = False,
    show_payload: Annotated[
        bool, typer.Option("--show-payload", help="Show keys, values and headers of the records.")
    ] = False,
    jobs: JobsOption = None,
) -> None:
    """Trace a record: every copy of it and what became of it, or what was searched without finding it.

    Reads live replicas, .deleted and .swap files, -delete, -stray and -future directories, captures and earlier snapshots. Records that match everything given
    are found. `never-here` is the answer only where every offset of the logs was read, on every replica; otherwise the gaps are named.
    """
    earlier = tuple(before or ())
    if topic is None:
        raise UsageError("--topic NAME is needed")
    if all_partitions and partition:
        raise UsageError("--all-partitions and --partition contradict each other")
    if key is not None and key_base64 is not None:
        raise UsageError("--key and --key-base64 name the same thing: give one of them")
    output.check([*paths, *earlier])
    from kforensics.commands.trace import run
    from kforensics.commands.tracing.request import TraceRequest

    request = TraceRequest(
        paths=tuple(paths),
        topic=topic,
        before=earlier,
        partitions=frozenset(partition or ()),
        key=_from_base64(key_base64) if key_base64 is not None else _bytes(key),
        key_sha256=_from_hex(key_sha256) if key_sha256 is not None else None,
        offset=offset,
        header=_header(header) if header is not None else None,
        value=_bytes(value),
        value_regex=value_regex,
        time_ms=parse_times(time, "--time") if time is not None else None,
        erasure=erasure,
        leader=leader,
        cluster=cluster,
        keep_going=keep_going,
        is_stopped=stopped,
        jobs=jobs,
    )
    output.finish(run(request), show_payload=show_payload)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise UsageError("--key-base64: that is not base64") from error


def _from_hex(text: str) -> bytes:
    if re.fullmatch("[0-9a-fA-F]{64}", text, re.ASCII) is None:
        raise UsageError("--key-sha256: expected the 64 hexadecimal digits of a SHA-256")
    return bytes.fromhex(text)


def _header(text: str) -> tuple[bytes, bytes | None]:
    name, separator, value = text.partition("=")
    return (name.encode("utf-8", "surrogateescape"), _bytes(value) if separator else None)
