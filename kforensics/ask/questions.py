"""The commands that are asked: what contradicts itself, and how an `Ask` is made for each."""

from collections.abc import Iterable, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import Any

from kforensics.ask.fleet import FleetAsk
from kforensics.ask.model import Ask, What
from kforensics.ask.option import Spelled, as_path, several, spelled_options
from kforensics.ask.simulate import SimulateAsk
from kforensics.errors import UsageError, did_you_mean, nearest_names
from kforensics.words import command_line


def options_of(command: str) -> tuple[Spelled, ...]:
    """Return the options that a command takes, in the order of its help."""
    return tuple(one for one in spelled_options(asked_by(command)) if command in one.option.takes)


_SUBJECTS = frozenset({"cluster", "topics", "partitions", "is_stopped", "keep_going", "before"})
"""Fields of the options that say what a question is about, and of what state the inputs are."""


def command_of(
    command: str, ask: Ask, *more: str, paths: Iterable[Path | str] | None = None, is_same: bool = False
) -> str:
    """Return the command that asks another question, or by `is_same` the same with all its options, of the subjects of an `Ask`, or of other paths in place of those that were named, as it can be pasted."""
    words = ["kforensics", command, *more]
    named = [f"./{one}" if str(one).startswith("-") else str(one) for one in (ask.paths if paths is None else paths)]
    for option in options_of(command):
        if option.option.flags and (is_same or option.field in _SUBJECTS):
            (named if option.field == "before" else words).extend(option.words(getattr(ask, option.field)))
    return command_line([*words, *named])


def asked_by(command: str) -> Any:
    """Return the class of what a command is asked."""
    return SimulateAsk if command == "simulate" else FleetAsk if command.startswith("fleet-") else Ask


def ask_of(command: str, given: Mapping[str, Any]) -> Any:
    """Return what a command is asked, in the class for it.

    Args:
        given: words or values by field; what is None or left out has its default.

    Raises:
        UsageError: a value is none, or options contradict each other.
        TypeError: a value of another type.
    """
    ask = asked_by(command)(**{one.field: one.value(given.get(one.field)) for one in options_of(command)})
    for words in _contradictions(command, ask):
        raise UsageError(words)
    return ask


def called(command: str, paths: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Return what a function of the library is asked.

    Args:
        paths: each a path or several of them; of `simulate` the scenario.

    Raises:
        UsageError: as `ask_of`.
        TypeError: a value of another type, or an option that the command does not take.
        ValueError: no path.
    """
    known = {one.name: one.field for one in options_of(command) if one.option.flags}
    for name in options:
        if name not in known:
            raise TypeError(f"{command} takes no {name}; {did_you_mean(nearest_names(name, known))}".rstrip("; "))
    named = {known[name]: value for name, value in options.items()}
    if command == "simulate":
        if len(paths) > 1:
            raise TypeError("simulate takes one scenario")
        return ask_of(command, {**named, "scenario": (*paths, None)[0]})
    if command.startswith("fleet-"):
        return ask_of(command, {**_places(command, paths), **named})
    ask: Ask = ask_of(command, {"paths": each_path(paths), **named})
    if not (ask.paths or ask.images or ask.check or ask.line):
        raise ValueError("no path is given")
    return ask


def _places(command: str, given: Sequence[Any]) -> dict[str, Any]:
    """Return the sources or tables that a command for fleets is asked for: paths, or URIs, of which a path would drop a slash."""
    places = []
    for one in (one for several_of in given for one in several(several_of)):
        as_path(one)  # refuses what is none
        places.append(fspath(one))
    if not places:
        raise ValueError("no path is given")
    (field,) = (one.field for one in options_of(command) if not one.option.flags)
    if field == "tables":
        if len(places) > 1:
            raise TypeError(f"{command} takes the tables of one audit, or one history")
        return {field: places[0]}
    return {field: tuple(places)}


def each_path(given: Iterable[Any]) -> list[Path]:
    """Return paths one by one, whether each was given by itself or in a list."""
    return [as_path(path) for one in given for path in several(one)]


def _contradictions(command: str, ask: Any) -> Iterable[str]:
    match command:
        case "fleet-audit":
            if (ask.new_tables is None) == (ask.history_tables is None):
                yield "give either --out, a directory for this audit alone, or --history, tables to which it is appended"
        case "fleet-report" if ask.since is not None and (ask.metrics or ask.fail_on or ask.accept):
            yield "--since shows what changed; --fail-on, --accept and --metrics are for a report of one audit"
        case "diff" if ask.show_payload and not ask.show_records:
            yield "--show-payload needs --show-records"
        case "transactions" if ask.open and ask.all:
            yield "--open and --all exclude each other"
        case "metadata" if ask.partitions and not ask.topics:
            yield "--partition needs --topic"
        case "dump" if len(ask.producer_ids) > 1:
            yield "the batches of one producer are shown: give --producer-id once"
        case "trace":
            if len(ask.topics) != 1:
                yield "--topic NAME is needed" if not ask.topics else "one topic is searched: give --topic once"
            if ask.all_partitions and ask.partitions:
                yield "--all-partitions and --partition contradict each other"
            if ask.key is not None and ask.key_base64 is not None:
                yield "--key and --key-base64 name the same thing: give one of them"
        case "salvage":
            yield from _of_salvage(ask)
        case "simulate":
            yield from _of_simulate(ask)
        case "capture" if (ask.out is None) != ask.plan:
            yield "--out FILE is needed" if ask.out is None else "--plan writes no file: leave --out out"
        case "seal":
            if ask.check is None and (ask.public_key or ask.signature):
                yield "--public-key and --signature go with --check"
            if ask.check is not None and (ask.case_id or ask.operator or ask.sign_with):
                yield "--case-id, --operator and --sign-with go with a new seal, not with --check"


def _of_salvage(ask: Ask) -> Iterable[str]:
    if ask.out is None and not ask.plan:
        yield "-o OUT is needed: the directory for the records"
    if not ask.paths and not ask.images:
        yield "a PATH or --carve IMAGE is needed"
    if ask.images and ask.what is None and (ask.before or ask.leader is not None):
        yield "--carve goes with --before or --leader only where --what lost or --what all is asked for"
    if ask.images and ask.what is What.AT_RISK:
        yield "--carve does not go with --what at-risk: what is at risk is in the PATHs"
    if ask.images and ask.what is not None and not ask.paths:
        yield f"--what {ask.what} needs a PATH: the replicas that say what is missing"


_ONE = {"NAME": "scenario", "--list": "list", "--explore": "model", "--random": "random", "--bytes": "length"}
"""The things that `simulate` does, by the fields that ask for them."""

_PLACES = {
    "protocol": (("NAME", "--random"), "NAME or --random"),
    "write": (("NAME", "--random", "--bytes"), "NAME, --random or --bytes"),
    "steps": (("NAME",), "NAME and --write"),
    "stop": (("NAME", "--random"), "--write and NAME or --random"),
    **dict.fromkeys(("seed", "racks"), (("--random",), "--random")),
    **dict.fromkeys(("brokers", "partitions"), (("--random", "--bytes"), "--random or --bytes")),
    **dict.fromkeys(
        ("replicas", "max_log", "max_records", "max_epoch", "invariant", "max_states"), (("--explore",), "--explore")
    ),
}
"""With what an option of `simulate` has a meaning, and how that is said."""


def _of_simulate(ask: SimulateAsk) -> Iterable[str]:
    wanted = [words for words, field in _ONE.items() if getattr(ask, field) not in (None, False)]
    if len(wanted) != 1:
        yield "one of NAME, --list, --explore, --random and --bytes is needed"
        return
    if wanted[0] in {"--random", "--bytes"} and ask.write is None:
        yield "--random and --bytes go with --write DIR"
    for one in options_of("simulate"):
        places, words = _PLACES.get(one.field, (wanted, ""))
        needs_write = one.field in {"steps", "stop"} and ask.write is None
        if getattr(ask, one.field) != one.default and (wanted[0] not in places or needs_write):
            yield f"{one.option.flags[0]} needs {words}"
