"""How a field of `Ask` is spelled on a command line, and what its words become."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from kforensics.errors import UsageError

_KEY = "option"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of some commands; an argument where it has no flags."""

    flags: tuple[str, ...]
    takes: tuple[str, ...]
    """The commands that take it."""
    help: str | Mapping[str, str]
    """What is said of it; by command where that differs, and under the empty name for all others."""
    metavar: str | Mapping[str, str] | None = None
    read: Callable[[Any, str], Any] | None = None
    """Makes the value of the words, given the name of the option for an error; None where the type does."""
    many: bool = False
    """Whether it can be repeated."""
    is_needed: bool = False
    """Whether the command line must have it; an argument must, unless its metavar says that it can be left out."""
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    shown: str | None = None
    """The field of `View` that it sets, where it changes only what is shown."""
    name: str | None = None
    """Its name in the library, where that is neither the long flag nor, of what can be repeated, the name of the field."""


def option(*flags: str, takes: str, default: Any = None, many: bool | None = None, **declared: Any) -> Any:
    """Declare a field of `Ask`.

    Args:
        flags: on the command line, the long one first.
        many: whether it can be repeated; where that is not said, what has a collection as its default can.
    """
    is_many = isinstance(default, (tuple, frozenset, Mapping)) if many is None else many
    metadata = {_KEY: Option(flags=flags, takes=tuple(takes.split()), many=is_many, **declared)}
    if isinstance(default, Mapping):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def switch(*flags: str, **declared: Any) -> Any:
    """Declare a field of `Ask` that is on or off, and off where it is not given."""
    return option(*flags, default=False, **declared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelled:
    """An option with the name, type and default of its field."""

    field: str
    option: Option
    kind: Any
    """The type of one word of it."""
    default: Any

    @property
    def name(self) -> str:
        """Its name in the library."""
        named = self.option.flags and not self.option.many
        return self.option.name or (self.option.flags[0][2:].replace("-", "_") if named else self.field)

    def help(self, command: str) -> str:
        """Return what is said of it to those who use a command."""
        return str(_of(self.option.help, command) or "")

    def metavar(self, command: str) -> str | None:
        """Return what stands for its value in the help of a command."""
        return _of(self.option.metavar, command)

    def value(self, given: Any) -> Any:
        """Return the value of the field."""
        if given is None:
            return self.default
        if not self.option.many:
            return self._one(given)
        words = several(given)
        if self.option.read is not None:
            return self.option.read(words, self._spelling)
        return type(self.default)(map(self._one, words))

    @property
    def taken_type(self) -> str:
        """The types that a caller may give, as they are written."""
        one = "Any" if self.option.read else "AnyPath" if self.kind is Path else self.kind.__name__
        if self.option.choices or (isinstance(self.kind, type) and issubclass(self.kind, StrEnum)):
            one = "str"
        if self.option.many:
            return "Mapping[str, str]" if isinstance(self.default, dict) else f"{one} | Iterable[{one}]"
        return "bool" if self.kind is bool else f"{one} | None"

    @property
    def _spelling(self) -> str:
        return self.option.flags[0] if self.option.flags else self.name

    def _one(self, given: Any) -> Any:
        if self.option.read is not None:
            return self.option.read(given, self._spelling) if isinstance(given, str) else given
        is_listed = issubclass(self.kind, StrEnum)
        choices = tuple(self.kind) if is_listed else self.option.choices
        if choices and given not in choices:
            raise UsageError(f"{self._spelling} is one of {', '.join(choices)}, not {given}")
        if self.kind is Path:
            return as_path(given)
        if self.kind is str and isinstance(given, PathLike):  # a place that may also be a URI
            return fspath(given)
        if is_listed:
            return self.kind(given)
        if not isinstance(given, self.kind) or (self.kind is int and isinstance(given, bool)):
            raise TypeError(f"{self.name} is of type {self.kind.__name__}, not {type(given).__name__}")
        least, most = self.option.least, self.option.most
        if (least is not None and given < least) or (most is not None and given > most):
            raise UsageError(f"{self._spelling} {given} is out of range")
        return given


def several(given: Any) -> Iterable[Any]:
    """Return what was given one by one: a string or a path is one, and no letters of it."""
    return (given,) if isinstance(given, (str, PathLike)) or not isinstance(given, Iterable) else given


def as_path(given: Any) -> Path:
    """Return a path."""
    if not isinstance(given, (str, PathLike)):
        raise TypeError(f"a path is a str or os.PathLike, not {type(given).__name__}")
    return Path(given)


@cache
def spelled_options(ask: Any) -> tuple[Spelled, ...]:
    """Return the options that a class declares, in its order."""
    hints = get_type_hints(ask)
    return tuple(
        Spelled(
            field=one.name,
            option=one.metadata[_KEY],
            kind=_kind(hints[one.name]),
            default=one.default if one.default_factory is MISSING else one.default_factory(),
        )
        for one in fields(ask)
        if _KEY in one.metadata
    )


def _kind(hint: Any) -> Any:
    return next((each for each in get_args(hint) if each not in (NoneType, ...)), hint)


def _of(words: str | Mapping[str, str] | None, command: str) -> str | None:
    return words.get(command, words.get("")) if isinstance(words, Mapping) else words
