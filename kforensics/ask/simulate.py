"""The options of `simulate`."""

from dataclasses import dataclass
from pathlib import Path

from kforensics.ask.model import PROTOCOLS
from kforensics.ask.option import option, parse_size, switch


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateAsk:
    """What `simulate` is asked."""

    scenario: str | None = option(takes="simulate", metavar="[NAME|FILE]", help="A built-in scenario, or a YAML file.")
    list: bool = switch("--list", takes="simulate", help="List the built-in scenarios.")
    protocol: str | None = option(
        "--protocol",
        takes="simulate",
        metavar="PROTOCOL",
        help=f"Only under this one: {', '.join(PROTOCOLS)}; under all of them where none is named.",
    )
    model: str | None = option(
        "--explore",
        takes="simulate",
        metavar="MODEL",
        help="Visit every state of a model: hw, kip-101, kip-279, kip-320-first-try or kip-320.",
    )
    replicas: int = option(
        "--replicas", takes="simulate", default=2, metavar="N", least=1, most=5, help="Replicas to explore."
    )
    max_log: int = option(
        "--max-log", takes="simulate", default=2, metavar="N", least=1, most=8, help="Records a log can hold."
    )
    max_records: int = option(
        "--max-records", takes="simulate", default=2, metavar="N", least=1, most=8, help="Records ever written."
    )
    max_epoch: int = option(
        "--max-epoch", takes="simulate", default=1, metavar="N", least=0, most=8, help="The highest leader epoch."
    )
    invariant: str | None = option(
        "--invariant",
        takes="simulate",
        metavar="NAME",
        help="What must hold: WeakIsr, StrongIsr, LeaderInIsr, LeaderInIsrOrNone or TypeOk.",
    )
    max_states: int = option(
        "--max-states", takes="simulate", default=2_000_000, metavar="N", least=1, help="Stop after this many states."
    )
    write: Path | None = option(
        "--write",
        takes="simulate",
        metavar="DIR",
        help="Write data directories of all nodes, their logs and truth.json into a new DIR.",
    )
    steps: int | None = option(
        "--steps", takes="simulate", metavar="N", least=0, help="Write after the first N steps only."
    )
    stop: bool = switch(
        "--stop", takes="simulate", help="Write after brokers that are down came back and all stopped cleanly."
    )
    random: bool = switch("--random", takes="simulate", help="Write a random history with faults.")
    seed: int = option(
        "--seed", takes="simulate", default=0, metavar="N", least=0, help="The seed of the random history."
    )
    brokers: int = option(
        "--brokers",
        takes="simulate",
        default=3,
        metavar="N",
        least=1,
        most=10_000,
        help="Brokers of a random history or fleet.",
    )
    partitions: int = option(
        "--partitions", takes="simulate", default=2, metavar="N", least=1, most=1_000_000, help="Partitions, likewise."
    )
    racks: int = option(
        "--racks",
        takes="simulate",
        default=0,
        metavar="N",
        least=0,
        most=100,
        help="Racks of a random history, 0 for none.",
    )
    length: int | None = option(
        "--bytes",
        takes="simulate",
        metavar="SIZE",
        read=parse_size,
        help="Write a fleet of so many bytes, such as 20G or 20GiB, over all replicas.",
    )
