"""`kforensics simulate`: replication replayed, explored, and written as data directories."""

from pathlib import Path
from typing import Annotated

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.options import argument, option, parse_size
from kforensics.cli.simulate_modes import Mode, choose_mode, refuse_out_of_place

PROTOCOLS = "hw, kip-101, kip-279, kip-595"


@with_output("simulate")
def simulate(
    output: Output,
    *,
    scenario: Annotated[
        str | None, argument(metavar="[NAME|FILE]", help="A built-in scenario, or a YAML file.")
    ] = None,
    list_scenarios: Annotated[bool, typer.Option("--list", help="List the built-in scenarios.")] = False,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol", metavar="PROTOCOL", help=f"Only under this one: {PROTOCOLS}.", show_default="all of them"
        ),
    ] = None,
    explore: Annotated[
        str | None,
        option(
            "--explore",
            metavar="MODEL",
            help="Visit every state of a model: hw, kip-101, kip-279, kip-320-first-try or kip-320.",
        ),
    ] = None,
    replicas: Annotated[int, typer.Option("--replicas", metavar="N", min=1, max=5, help="Replicas to explore.")] = 2,
    max_log: Annotated[int, typer.Option("--max-log", metavar="N", min=1, max=8, help="Records a log can hold.")] = 2,
    max_records: Annotated[
        int, typer.Option("--max-records", metavar="N", min=1, max=8, help="Records ever written.")
    ] = 2,
    max_epoch: Annotated[
        int, typer.Option("--max-epoch", metavar="N", min=0, max=8, help="The highest leader epoch.")
    ] = 1,
    invariant: Annotated[
        str | None,
        typer.Option(
            "--invariant",
            metavar="NAME",
            help="What must hold: WeakIsr, StrongIsr, LeaderInIsr, LeaderInIsrOrNone or TypeOk.",
            show_default="none",
        ),
    ] = None,
    max_states: Annotated[
        int, typer.Option("--max-states", metavar="N", min=1, help="Stop after this many states.")
    ] = 2_000_000,
    write: Annotated[
        Path | None,
        option(
            "--write",
            metavar="DIR",
            help="Write data directories of all nodes, their logs and truth.json into a new DIR.",
        ),
    ] = None,
    steps: Annotated[
        int | None, option("--steps", metavar="N", min=0, help="Write after the first N steps only.")
    ] = None,
    stop: Annotated[
        bool, typer.Option("--stop", help="Write after brokers that are down came back and all stopped cleanly.")
    ] = False,
    random: Annotated[bool, typer.Option("--random", help="Write a random history with faults.")] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="The seed of the random history.")] = 0,
    brokers: Annotated[
        int, typer.Option("--brokers", metavar="N", min=1, max=10_000, help="Brokers of a random history or fleet.")
    ] = 3,
    partitions: Annotated[
        int, typer.Option("--partitions", metavar="N", min=1, max=1_000_000, help="Partitions, likewise.")
    ] = 2,
    racks: Annotated[
        int, typer.Option("--racks", metavar="N", min=0, max=100, help="Racks of a random history, 0 for none.")
    ] = 0,
    length: Annotated[
        str | None,
        option(
            "--bytes", metavar="SIZE", help="Write a fleet of so many bytes, such as 20G or 20GiB, over all replicas."
        ),
    ] = None,
) -> None:
    """Replay how replicas lose and diverge, explore every interleaving, or write a history as data directories.

    A scenario is shown step by step under each truncation protocol. Exploring visits all states of a small
    configuration and shows the shortest way to a broken invariant: exit code 1 where one breaks, 3 where --max-states
    ended the search first.
    """
    asked = {
        Mode.LIST: list_scenarios,
        Mode.EXPLORE: explore is not None,
        Mode.REPLAY: scenario is not None,
        Mode.RANDOM: random,
        Mode.FLEET: length is not None,
    }
    mode = choose_mode(asked, writes=write is not None)
    refuse_out_of_place(output.context, mode)
    output.check((), mode.shape)
    from kforensics.commands import simulate as command
    from kforensics.render.emit import truth_json

    request: command.ListRequest | command.ReplayRequest | command.ExploreRequest | command.WriteRequest
    if write is not None:
        request = command.WriteRequest(
            directory=write,
            scenario=scenario,
            protocol=protocol,
            seed=seed if random else None,
            brokers=brokers,
            partitions=partitions,
            racks=racks,
            length=parse_size(length, "--bytes") if length is not None else None,
            steps=steps,
            stops=stop,
            to_json=truth_json,
        )
    elif explore is not None:
        request = command.ExploreRequest(
            model=explore,
            invariant=invariant,
            replicas=replicas,
            max_log=max_log,
            max_records=max_records,
            max_epoch=max_epoch,
            max_states=max_states,
        )
    elif scenario is not None:
        request = command.ReplayRequest(scenario=scenario, protocol=protocol)
    else:
        request = command.ListRequest()
    output.finish(command.run(request))
