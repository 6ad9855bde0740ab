"""The modes of `kforensics simulate`, and which options have a meaning in each."""

from collections.abc import Mapping
from enum import Enum, auto

import typer

from kforensics.ask.simulate import SimulateAsk
from kforensics.errors import UsageError


class Mode(Enum):
    """One of the things that the command does."""

    LIST = auto()
    REPLAY = auto()
    """Play a scenario and show it."""
    EXPLORE = auto()
    WRITE = auto()
    """Write the directories of a scenario."""
    RANDOM = auto()
    FLEET = auto()

    @property
    def shape(self) -> str:
        """The shape of the result, as the table of writers names it."""
        names = {Mode.LIST: "list", Mode.REPLAY: "replay", Mode.EXPLORE: "explore"}
        return f"simulate {names.get(self, 'write')}"


_EXPLORING = ((Mode.EXPLORE,), "--explore")
_PLACES: Mapping[str, tuple[tuple[Mode, ...], str]] = {
    "protocol": ((Mode.REPLAY, Mode.WRITE, Mode.RANDOM), "NAME or --random"),
    "write": ((Mode.WRITE, Mode.RANDOM, Mode.FLEET), "NAME, --random or --bytes"),
    "steps": ((Mode.WRITE,), "NAME and --write"),
    "stop": ((Mode.WRITE, Mode.RANDOM), "--write and NAME or --random"),
    "seed": ((Mode.RANDOM,), "--random"),
    "racks": ((Mode.RANDOM,), "--random"),
    "brokers": ((Mode.RANDOM, Mode.FLEET), "--random or --bytes"),
    "partitions": ((Mode.RANDOM, Mode.FLEET), "--random or --bytes"),
    **dict.fromkeys(("replicas", "max_log", "max_records", "max_epoch", "invariant", "max_states"), _EXPLORING),
}
"""The modes in which an option has a meaning, and how that is said, by the name of its parameter."""


def choose_mode(ask: SimulateAsk) -> Mode:
    """Return the one thing that was asked for.

    Args:
        ask: all options.

    Raises:
        UsageError: nothing, or more than one thing, or directories without a place for them.
    """
    asked = {
        Mode.LIST: ask.list,
        Mode.EXPLORE: ask.model is not None,
        Mode.REPLAY: ask.scenario is not None,
        Mode.RANDOM: ask.random,
        Mode.FLEET: ask.length is not None,
    }
    wanted = [mode for mode, is_wanted in asked.items() if is_wanted]
    if len(wanted) != 1:
        raise UsageError("one of NAME, --list, --explore, --random and --bytes is needed")
    mode, writes = wanted[0], ask.write is not None
    if mode in {Mode.RANDOM, Mode.FLEET} and not writes:
        raise UsageError("--random and --bytes go with --write DIR")
    return Mode.WRITE if mode is Mode.REPLAY and writes else mode


def refuse_out_of_place(context: typer.Context, mode: Mode) -> None:
    """Refuse an option that would be ignored.

    Args:
        context: of the command line.
        mode: the one thing that was asked for.

    Raises:
        UsageError: an option on the command line has no meaning here.
    """
    for parameter, (modes, words) in _PLACES.items():
        source = context.get_parameter_source(parameter)
        # By name: the enumeration is click's or typer's own, by the version of typer.
        given = source is not None and source.name == "COMMANDLINE"
        if given and mode not in modes:
            raise UsageError(f"--{parameter.replace('_', '-')} needs {words}")
