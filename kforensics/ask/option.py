"""How a field of `Ask` is spelled on a command line, and what its words become: sizes, rates, times, offsets and lists as people write them."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, partial
from os import PathLike, fspath
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from kforensics.errors import UsageError
from kforensics.words import utc_text

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([KMGT]?)(I?)B?", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_WORD = re.compile("[A-Za-z]{2,}|[0-9] ?[smhdw] ago|now")
_ISO = re.compile("[0-9]{4}-?[0-9]{2}")
"""What begins as ISO 8601 does and is none is a slip, not words."""
_MILLISECONDS = re.compile(r"-?[0-9]{1,18}", re.ASCII)


def parse_size(text: str, option: str) -> int:
    """Return bytes, as in `800000`, `20G`, `1.5MB` or `64KiB`: K, M, G and T are powers of 1000, Ki, Mi, Gi and Ti of 1024."""
    size = _size_of(text)
    if size is None:
        raise UsageError(f"{option} {text}: expected bytes, such as 20G, 1.5MB or 64KiB")
    return size


def parse_rate(text: str, option: str) -> int:
    """Return bytes a second: a size as `parse_size` reads it, above 0, with or without `/s`."""
    rate = _size_of(text.strip().removesuffix("/s").removesuffix("/S"))
    if not rate:
        raise UsageError(f"{option} {text}: expected bytes a second, such as 50MB/s")
    return rate


def parse_days(text: str | int, option: str) -> int:
    """Return days, as in `90d`, `90` or `13w`; one at least."""
    match = re.fullmatch(r"([0-9]{1,6})([dw]?)", str(text).strip(), re.ASCII | re.IGNORECASE)
    days = int(match[1]) * (7 if match[2].lower() == "w" else 1) if match is not None else 0
    if not days:
        raise UsageError(f"{option} {text}: expected days, such as 90d or 13w")
    return days


def _size_of(text: str) -> int | None:
    from decimal import Decimal  # noqa: PLC0415 - few runs name a size

    match = _SIZE.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        return None
    return int(Decimal(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].upper()])


def parse_pairs(given: Iterable[str] | Mapping[str, str], option: str) -> dict[str, str]:
    """Return names with their values out of `name=value`; of two for a name the later counts."""
    if isinstance(given, Mapping):
        return {str(name): str(value) for name, value in given.items()}
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} {name}: expected NAME=VALUE")  # a value may be a secret
        pairs[name.strip()] = value.strip()
    return pairs


def parse_time(text: str, option: str) -> int:
    """Milliseconds since 1970 out of ISO 8601, words such as `2 hours ago`, both in UTC where they name no zone, or milliseconds.

    Args:
        text: what was given. Eight digits alone are refused, since they may be a date, too.
    """
    if _MILLISECONDS.fullmatch(text):
        if len(text) == 8 and text.isdecimal():
            raise UsageError(f"{option} {text} may be a date or milliseconds: write a date as 2026-11-21")
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        said = _time_in_words(text)
        if said is None:
            raise UsageError(
                f"{option} {text} is no time: write ISO 8601, such as 2026-11-21T06:26:13.332Z, words such as yesterday 14:00, or milliseconds"
            ) from None
        moment = said
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000


def _time_in_words(text: str) -> datetime | None:
    """Return the time that English words name, seen from now; none where they name none, or only a part of a date."""
    if _WORD.search(text) is None or _ISO.match(text):
        return None
    import dateparser  # noqa: PLC0415 - few runs name a time in words, and it takes 100 ms

    settings = {
        "TIMEZONE": "UTC",
        "TO_TIMEZONE": "UTC",
        "RETURN_AS_TIMEZONE_AWARE": True,
        "RELATIVE_BASE": datetime.now(UTC).replace(tzinfo=None),
        "STRICT_PARSING": True,
        "PARSERS": ["relative-time", "absolute-time"],
    }
    found: datetime | None = dateparser.parse(text, languages=["en"], settings=settings)
    return found


def parse_times(text: str, option: str) -> tuple[int, int]:
    """Two times as `A..B`, in milliseconds; either may be left out."""
    first, separator, last = text.partition("..")
    if not separator or not (first or last):
        raise UsageError(f"{option} {text}: expected two times as A..B, such as 2026-11-21T06:00Z..2026-11-21T07:00Z")
    begin = parse_time(first, option) if first else -(2**63)
    end = parse_time(last, option) if last else 2**63 - 1
    if begin >= end:
        raise UsageError(f"{option} {text}: the second time is not later than the first")
    return begin, end


def parse_offsets(text: str, option: str) -> tuple[int, int]:
    """Two offsets as `A..B`, both included; either may be left out."""
    match = re.fullmatch(r"([0-9]{0,19})\.\.([0-9]{0,19})", text, re.ASCII)
    if match is None or not (match[1] or match[2]):
        raise UsageError(f"{option} {text}: expected two offsets as A..B, such as 60..102")
    first, last = int(match[1] or 0), int(match[2] or 2**63 - 1)
    if first > last or last >= 2**63:
        raise UsageError(f"{option} {text}: the second offset is below the first, or above what Kafka has")
    return first, last


def parse_brokers(listed: str, option: str) -> tuple[int, ...]:
    """Return broker ids out of `1,2,3`, each once."""
    parts = [part.strip() for part in listed.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 12 for part in parts):
        raise UsageError(f"{option} {listed} is no list of broker ids such as 1,2,3")
    return tuple(dict.fromkeys(map(int, parts)))


def parse_base64(text: str, option: str) -> bytes:
    """Return the bytes that base64 stands for."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise UsageError(f"{option}: that is not base64") from error


def parse_sha256(text: str, option: str) -> bytes:
    """Return the bytes of a SHA-256 in hexadecimal digits."""
    if re.fullmatch("[0-9a-fA-F]{64}", text, re.ASCII) is None:
        raise UsageError(f"{option}: expected the 64 hexadecimal digits of a SHA-256")
    return bytes.fromhex(text)


def parse_text(text: str, _option: str) -> bytes:
    """Return the bytes of a text, those of an argument that is no UTF-8 unchanged."""
    return text.encode("utf-8", "surrogateescape")


def parse_header(text: str, option: str) -> tuple[bytes, bytes | None]:
    """Return name and value out of `NAME` or `NAME=VALUE`; without a value any will do."""
    name, separator, value = text.partition("=")
    return parse_text(name, option), parse_text(value, option) if separator else None


def parse_path(text: str, _option: str) -> Path:
    """Return the path that a text names."""
    return Path(text)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _time(time_ms: int) -> str:
    return utc_text(time_ms).removesuffix(" ms")


def _span(ends: tuple[int, int], written: Callable[[int], str] = str) -> str:
    return "..".join("" if abs(one) >= 2**63 - 1 else written(one) for one in ends)


_WRITTEN: Mapping[Any, Callable[[Any], str]] = {
    parse_text: _text,
    parse_base64: lambda value: base64.b64encode(value).decode(),
    parse_sha256: bytes.hex,
    parse_header: lambda pair: _text(pair[0] if pair[1] is None else b"=".join(pair)),
    parse_offsets: _span,
    parse_time: _time,
    parse_times: partial(_span, written=_time),
    parse_brokers: lambda ids: ",".join(map(str, ids)),
}
"""What makes words of a value, by what makes the value of the words."""

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

    def words(self, value: Any) -> list[str]:
        """Return the option on a command line, with a value that it has."""
        if value == self.default or (isinstance(value, bytes) and self.option.read not in _WRITTEN):
            return []
        if value is True:
            return [self._spelling]
        every = [f"{name}={one}" for name, one in value.items()] if isinstance(value, Mapping) else [value]
        if self.option.many and not isinstance(value, Mapping):
            every = sorted(value) if isinstance(value, frozenset) else list(value)
        written = _WRITTEN.get(self.option.read, str)
        words = [
            [f"{self._spelling}={one}"] if one.startswith("-") else [self._spelling, one] for one in map(written, every)
        ]
        return [each for one in words for each in one]

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
