"""Arguments and options that mean the same in every command."""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kforensics.cli.terminal import ColourChoice
from kforensics.errors import UsageError
from kforensics.units import Depth

option = partial(typer.Option, show_default=False)
"""An option without a default value to show."""

argument = partial(typer.Argument, show_default=False)


class Protocol(StrEnum):
    """The truncation protocol that followers speak."""

    HW = "hw"
    KIP_101 = "kip-101"
    KIP_279 = "kip-279"
    KIP_595 = "kip-595"


PathsArgument = Annotated[
    list[Path],
    argument(
        metavar="PATH...",
        help="Data directories, parents of several of them, partition directories, or single files.",
        readable=False,
    ),
]

OutOption = Annotated[
    Path | None,
    option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write the result to a new FILE, outside of every input, instead of standard output.",
    ),
]

VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Also list what is fine.")]

QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Write only the first line of the answer; the exit code says the rest.")
]

ColourOption = Annotated[
    ColourChoice | None,
    option(
        "--color",
        help="When text is coloured; auto: on a terminal, unless NO_COLOR is set. It can be given before the command, too.",
        case_sensitive=False,
    ),
]

TopicsOption = Annotated[list[str] | None, option("--topic", "-t", metavar="NAME", help="Only this topic; repeatable.")]

PartitionsOption = Annotated[
    list[int] | None, option("--partition", "-p", metavar="N", help="Only partitions of this number; repeatable.")
]

LeaderOption = Annotated[
    int | None, option("--leader", metavar="ID", help="Take this broker as the leader of every partition it holds.")
]

JobsOption = Annotated[
    int | None,
    option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        max=1024,
        help="Processes to work with; one for each core where it is not given.",
    ),
]

ReadRateOption = Annotated[
    str | None,
    option(
        "--read-rate",
        metavar="RATE",
        help="Read no faster than this, such as 50MB/s, in one process: for the disks of a live broker.",
    ),
]

BeforeOption = Annotated[
    list[Path] | None,
    option("--before", metavar="PATH", help="Data directories as they were at an earlier time; repeatable."),
]

KeepGoingOption = Annotated[
    bool,
    typer.Option(
        "--keep-going",
        help="Analyse the rest where a named path can't be used; the answer then says that it is incomplete.",
    ),
]

ClusterOption = Annotated[
    str | None,
    option("--cluster", metavar="ID", help="Only what is of the cluster of this id, where the inputs are of several."),
]

ReplicasOption = Annotated[
    str | None,
    option(
        "--replicas",
        metavar="ID,ID,…",
        help="The brokers that every partition is assigned to, such as 1,2,3, where no metadata log says it: without it, replicas that agree "
        "are not known to be all.",
    ),
]

TimesOption = Annotated[
    str | None,
    option(
        "--time",
        metavar="A..B",
        help="Only records of these timestamps, from A on and before B: ISO 8601, UTC where it names no zone, or milliseconds.",
    ),
]

StoppedOption = Annotated[
    bool,
    typer.Option(
        "--stopped",
        help="No broker ran while its directories were copied: ends of logs that don't fit then are no effect of copying.",
    ),
]

NormalPriorityOption = Annotated[
    bool,
    typer.Option(
        "--normal-priority",
        help="Read at normal priority; without it the broker comes first for disk and processor.",
    ),
]

DepthOption = Annotated[
    Depth | None,
    option(
        "--depth",
        help="How much of the logs is read. tails: checkpoints, the ends of logs, and where replicas part: fast at any size, and content below is not looked at. "
        "content: every batch.",
    ),
]

SealOption = Annotated[
    Path | None,
    option(
        "--seal",
        metavar="MANIFEST",
        help="Check the inputs against this manifest of `kforensics seal` first, and say in the report what was sealed, by its sha256 and case.",
    ),
]

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([KMGT]?)(I?)B?", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_MILLISECONDS = re.compile(r"-?[0-9]{1,18}", re.ASCII)


def parse_size(text: str, option: str) -> int:
    """Return bytes, as in `800000`, `20G`, `1.5MB` or `64KiB`: K, M, G and T are powers of 1000, Ki, Mi, Gi and Ti of 1024.

    Args:
        text: as it was given.
        option: its name, for the message.

    Raises:
        UsageError: it is no size.
    """
    size = _size_of(text)
    if size is None:
        raise UsageError(f"{option} {text}: expected bytes, such as 20G, 1.5MB or 64KiB")
    return size


def parse_rate(text: str, option: str) -> int:
    """Return bytes a second: a size as `parse_size` reads it, above 0, with or without `/s`.

    Args:
        text: as it was given.
        option: its name, for the message.

    Raises:
        UsageError: it is no rate.
    """
    rate = _size_of(text.strip().removesuffix("/s").removesuffix("/S"))
    if not rate:
        raise UsageError(f"{option} {text}: expected bytes a second, such as 50MB/s")
    return rate


def _size_of(text: str) -> int | None:
    from decimal import Decimal

    match = _SIZE.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        return None
    return int(Decimal(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].upper()])


def parse_pairs(given: Iterable[str], option: str) -> dict[str, str]:
    """Return names with their values out of `name=value`; of two for a name the later counts.

    Args:
        given: as they were given.
        option: its name, for the message.

    Raises:
        UsageError: one without a name or an equals sign.
    """
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} {name}: expected NAME=VALUE")  # a value may be a secret
        pairs[name.strip()] = value.strip()
    return pairs


def parse_time(text: str, option: str) -> int:
    """Milliseconds since 1970 out of ISO 8601, UTC where it names no zone, or out of milliseconds.

    Args:
        text: what was given. Eight digits alone are refused, since they may be a date, too.
        option: which option it was given to, for the error.

    Raises:
        UsageError: it is no time.
    """
    from datetime import UTC, datetime

    if _MILLISECONDS.fullmatch(text):
        if len(text) == 8 and text.isdecimal():
            raise UsageError(f"{option} {text} may be a date or milliseconds: write a date as 2026-11-21")
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text} is neither ISO 8601, such as 2026-11-21T06:26:13.332Z, nor milliseconds"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000


def parse_times(text: str, option: str) -> tuple[int, int]:
    """Two times as `A..B`, in milliseconds; either may be left out.

    Args:
        text: what was given.
        option: which option it was given to, for the error.

    Raises:
        UsageError: it is no such pair, or the second is not later.
    """
    first, separator, last = text.partition("..")
    if not separator or not (first or last):
        raise UsageError(f"{option} {text}: expected two times as A..B, such as 2026-11-21T06:00Z..2026-11-21T07:00Z")
    begin = parse_time(first, option) if first else -(2**63)
    end = parse_time(last, option) if last else 2**63 - 1
    if begin >= end:
        raise UsageError(f"{option} {text}: the second time is not later than the first")
    return begin, end


def parse_offsets(text: str, option: str) -> tuple[int, int]:
    """Two offsets as `A..B`, both included; either may be left out.

    Args:
        text: what was given.
        option: which option it was given to, for the error.

    Raises:
        UsageError: it is no such pair, or they are in the wrong order.
    """
    match = re.fullmatch(r"([0-9]{0,19})\.\.([0-9]{0,19})", text, re.ASCII)
    if match is None or not (match[1] or match[2]):
        raise UsageError(f"{option} {text}: expected two offsets as A..B, such as 60..102")
    first, last = int(match[1] or 0), int(match[2] or 2**63 - 1)
    if first > last or last >= 2**63:
        raise UsageError(f"{option} {text}: the second offset is below the first, or above what Kafka has")
    return first, last


def apply_read_rate(rate: str | None, jobs: int | None) -> int | None:
    """Slow reading down where that is asked for, and return the number of processes to use then.

    Args:
        rate: of `--read-rate`; None for no limit.
        jobs: of `--jobs`; None where it was not given.

    Raises:
        UsageError: it is no rate.
    """
    from kforensics.commands.processes import read_at

    return read_at(None if rate is None else parse_rate(rate, "--read-rate"), jobs)


def broker_list(listed: str | None) -> tuple[int, ...]:
    """Return the broker ids of `--replicas`, each once.

    Args:
        listed: as it was given; None where it was not.

    Raises:
        UsageError: it is no list of ids.
    """
    if listed is None:
        return ()
    parts = [part.strip() for part in listed.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 12 for part in parts):
        raise UsageError(f"--replicas {listed} is no list of broker ids such as 1,2,3")
    return tuple(dict.fromkeys(map(int, parts)))
