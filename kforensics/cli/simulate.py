from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kforensics.cli.exits import ExitCode
from kforensics.cli.options import OutOption, OutputFormat, PageFormatOption, parse_size, require_format
from kforensics.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kforensics.protocol.outcome import ProtocolName
    from kforensics.simulation.explore import Exploration
    from kforensics.simulation.scenario import Replay, Scenario

PROTOCOLS = "hw, kip-101, kip-279, kip-595"


def simulate(
    context: typer.Context,
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="[NAME|FILE]", help="A built-in scenario, or a YAML file.", show_default=False),
    ] = None,
    *,
    list_scenarios: Annotated[bool, typer.Option("--list", help="List the built-in scenarios.")] = False,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol", metavar="PROTOCOL", help=f"Only under this one: {PROTOCOLS}.", show_default="all of them"
        ),
    ] = None,
    explore: Annotated[
        str | None,
        typer.Option(
            "--explore",
            metavar="MODEL",
            help="Visit every state of a model: hw, kip-101, kip-279, kip-320-first-try or kip-320.",
            show_default=False,
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
        typer.Option(
            "--write",
            metavar="DIR",
            help="Write data directories of all nodes, their logs and truth.json into a new DIR.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", metavar="N", min=0, help="Write after the first N steps only.", show_default=False),
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
        typer.Option(
            "--bytes",
            metavar="SIZE",
            help="Write a fleet of so many bytes, such as 20G or 20GiB, over all replicas.",
            show_default=False,
        ),
    ] = None,
    output_format: PageFormatOption = OutputFormat.TEXT,
    out: OutOption = None,
) -> None:
    """Replay how replicas lose and diverge, explore every interleaving, or write a history as data directories.

    A scenario is told step by step under each truncation protocol. Exploring visits all states of a small
    configuration and tells the shortest way to a broken invariant: exit code 1 where one breaks, 3 where --max-states
    ended the search first.
    """
    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON, OutputFormat.HTML)
    from kforensics.cli.output import check_out, write_result

    check_out(out, ())
    from kforensics.cli.simulate_modes import Mode, choose_mode, refuse_out_of_place

    asked = {
        Mode.LIST: list_scenarios,
        Mode.EXPLORE: explore is not None,
        Mode.REPLAY: scenario is not None,
        Mode.RANDOM: random,
        Mode.FLEET: length is not None,
    }
    mode = choose_mode(asked, writes=write is not None)
    refuse_out_of_place(context, mode)
    code = ExitCode.NOTHING_FOUND
    if write is not None:
        from kforensics.cli.simulate_write import WriteOptions, write_directories

        options = WriteOptions(
            directory=write,
            seed=seed if random else None,
            brokers=brokers,
            partitions=partitions,
            racks=racks,
            length=parse_size(length, "--bytes") if length is not None else None,
            steps=steps,
            stops=stop,
        )
        told = None if scenario is None else read_scenario(scenario)
        chosen = _protocols(protocol or "kip-595")[0]
        text = _written(write_directories(options, chosen, told), output_format)
    elif list_scenarios:
        text = _listing(output_format)
    elif explore is not None:
        found = _explore(explore, invariant, sizes=(replicas, max_log, max_records, max_epoch), max_states=max_states)
        if found.stopped_at_limit:
            code = ExitCode.INCOMPLETE
        elif not found.complete:
            code = ExitCode.FINDINGS
        text = _exploration(found, output_format, code)
    else:
        assert scenario is not None
        text = _replays(_play(read_scenario(scenario), protocol), output_format, one=protocol is not None)
    write_result(text, out)
    if code is not ExitCode.NOTHING_FOUND:
        raise typer.Exit(code)


def read_scenario(name: str) -> "Scenario":
    """A built-in scenario by its name, else the file of that name."""
    from kforensics.simulation.scenario_file import (
        MAX_FILE_LENGTH,
        builtin_names,
        builtin_scenario,
        parse_scenario,
    )

    if name in builtin_names():
        return builtin_scenario(name)
    path = Path(name)
    if not path.is_file():
        return builtin_scenario(name)
    try:
        with path.open("rb") as file:
            text = file.read(4 * MAX_FILE_LENGTH + 1).decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{name}:{line}: expected UTF-8, found byte {error.object[error.start]:#04x}") from error
    except OSError as error:
        raise UsageError(f"{name} can't be read: {error.strerror}") from error
    return parse_scenario(text, name)


def _play(scenario: "Scenario", protocol: str | None) -> "list[Replay]":
    from kforensics.simulation.scenario import replay

    return [replay(scenario, one) for one in _protocols(protocol)]


def _protocols(name: str | None) -> "list[ProtocolName]":
    from kforensics.protocol.outcome import ProtocolName

    if name is None:
        return list(ProtocolName)
    try:
        return [ProtocolName(name)]
    except ValueError:
        raise UsageError(f"no protocol {name!r}: {PROTOCOLS}") from None


def _explore(model: str, invariant: str | None, *, sizes: tuple[int, int, int, int], max_states: int) -> "Exploration":
    from kforensics.simulation.explore import Explorer, Invariant
    from kforensics.simulation.model_values import ModelSize

    replicas, max_log, max_records, max_epoch = sizes
    size = ModelSize(replicas=replicas, max_log=max_log, max_records=max_records, max_epoch=max_epoch)
    wanted = None
    if invariant is not None:
        try:
            wanted = Invariant(invariant)
        except ValueError:
            raise UsageError(f"no invariant {invariant!r}: {', '.join(Invariant)}") from None
    return Explorer(model, size).explore(wanted, max_states=max_states)


def _listing(output_format: OutputFormat) -> str:
    from kforensics.render.json.document import document
    from kforensics.render.text.screen import screen_width
    from kforensics.render.text.simulate import scenario_list
    from kforensics.simulation.scenario_file import builtin_names, builtin_scenario

    scenarios = [builtin_scenario(name) for name in builtin_names()]
    if output_format is OutputFormat.JSON:
        named = [{"name": scenario.name, "title": scenario.title} for scenario in scenarios]
        return document("simulate", inputs=(), findings=(), problems=(), exit_code=0, scenarios=named)
    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON)
    return _screen(scenario_list(scenarios, width=screen_width()))


def _exploration(found: "Exploration", output_format: OutputFormat, code: ExitCode) -> str:
    from kforensics.render.json.document import document
    from kforensics.render.json.simulate import exploration_body
    from kforensics.render.text.screen import screen_width
    from kforensics.render.text.simulate import exploration

    if output_format is OutputFormat.JSON:
        body = exploration_body(found)
        return document("simulate", inputs=(), findings=(), problems=(), exit_code=code, **body)
    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON)
    return _screen(exploration(found, width=screen_width()))


def _replays(found: "list[Replay]", output_format: OutputFormat, *, one: bool) -> str:
    from kforensics.render.html.simulate import page
    from kforensics.render.json.document import document
    from kforensics.render.json.simulate import replay_body
    from kforensics.render.text.screen import screen_width
    from kforensics.render.text.simulate import replays

    match output_format:
        case OutputFormat.JSON:
            bodies = [replay_body(each) for each in found]
            body = bodies[0] if one else {"scenario": found[0].scenario.name, "protocols": bodies}
            return document("simulate", inputs=(), findings=(), problems=(), exit_code=0, **body)
        case OutputFormat.HTML:
            return "".join(page(found))
    return _screen(replays(found, width=screen_width()))


def _written(told: "dict[str, object]", output_format: OutputFormat) -> str:
    from kforensics.render.json.document import document
    from kforensics.render.text.screen import byte_count

    if output_format is OutputFormat.JSON:
        return document("simulate", inputs=(), findings=(), problems=(), exit_code=0, written=told)
    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON)
    size = told["bytes"]
    assert isinstance(size, int)
    return f"{byte_count(size)} of segments written to {told['directory']}; what is true of them is in truth.json\n"


def _screen(lines: "Sequence[object]") -> str:
    import sys

    from kforensics.render.text.screen import render_screen, wants_colour

    return render_screen(lines, colour=wants_colour(sys.stdout))  # type: ignore[arg-type]
