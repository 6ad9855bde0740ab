"""The errors of kforensics.

    KforensicsError
    ├── EvidenceError              a named path can't be used as evidence
    │   ├── EvidenceNotFound       … is not there (also a FileNotFoundError)
    │   ├── EvidenceUnreadable     … can't be opened or read: permission, I/O error, vanished, no regular file
    │   │   └── MissingBytes       … is in a capture, which does not hold its bytes
    │   ├── NotADataDir            … is no Kafka data directory
    │   └── InputsRefused          … one of several can't be used, or they do not belong together
    ├── FormatError                bytes are not what their format says
    │   ├── UnexpectedEnd          … they end too early
    │   ├── BadChecksum            … their checksum does not hold
    │   ├── UnsupportedFormat      … a version or codec that kforensics does not read
    │   │   └── NewerThanKnown     … a version above the newest that it knows
    │   └── LimitReached           … or they may be: there is more than kforensics reads
    ├── UsageError                 options that exclude each other
    ├── Stopped                    work that was asked to stop; says what it left behind
    └── MissingExtra               an optional package is not installed

Errors are raised only for a path that the caller names; in a walk over many files the same content becomes `Damage` or a problem.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Self

from kforensics.damage import Span

_MOST_NAMED = 3
_LEAST_LIKENESS = 0.4


def nearest_names(wanted: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are most like the wanted one, the likest first; none where none is like it."""
    from difflib import get_close_matches  # noqa: PLC0415 - only where something was mistyped

    return tuple(get_close_matches(wanted, sorted(set(known)), n=_MOST_NAMED, cutoff=_LEAST_LIKENESS))


def did_you_mean(names: Iterable[str]) -> str:
    """Return the question that proposes names, empty where there are none."""
    listed = " or ".join(names)
    return f"did you mean {listed}?" if listed else ""


class KforensicsError(Exception):
    """The root of all errors that kforensics raises on purpose."""


class EvidenceError(KforensicsError):
    """Something named as evidence can't be used; `path` is as given, `causes` are likely ones, for people, `nearest` names what is there instead."""

    def __init__(self, path: str, problem: str, causes: tuple[str, ...] = (), *, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem
        self.causes = causes
        self.nearest = nearest

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class EvidenceNotFound(EvidenceError, FileNotFoundError):
    """There is nothing at the path."""


class EvidenceUnreadable(EvidenceError):
    """The path exists and can't be read."""


class MissingBytes(EvidenceUnreadable):
    """Something was asked for that a capture does not hold: the file on the broker has it."""

    def __init__(self, path: str, where: str) -> None:
        super().__init__(path, f"the capture does not hold its bytes: read {where}")
        self.where = where

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.where)  # another process may have met it


class NotADataDir(EvidenceError):
    """The directory holds nothing that a Kafka broker writes."""


class InputsRefused(EvidenceError):
    """Inputs that are not analysed together: `errors` says of each path what is wrong with it, `advice` what to do."""

    def __init__(self, problem: str, errors: tuple[EvidenceError, ...], advice: tuple[str, ...] = ()) -> None:
        super().__init__("the inputs", problem)
        self.errors = errors
        self.advice = advice

    def __str__(self) -> str:
        return self.problem


class MomentsMixed(InputsRefused):
    """Inputs that show one node at several moments, where the state of each is wanted."""


def refuse(errors: Sequence[EvidenceError], *, named: int, keep_going: bool | None = None) -> None:
    """Stop before anything is said, where a named path can't be used and the rest alone was not asked for.

    Raises:
        EvidenceError: the only error of the only path.
        InputsRefused: errors of some of several paths.
    """
    if keep_going or not errors:
        return
    if named == 1:
        raise errors[0]
    words = f"{len(errors)} of {named} named paths can't be used"
    if len(errors) == 1:
        words = f"{errors[0]} (1 of {named} named paths)"
    can_go_on = keep_going is not None and len(errors) < named
    advice = ("--keep-going analyses the rest, and says that it is incomplete",) if can_go_on else ()
    raise InputsRefused(words, tuple(errors), advice) from errors[0]


class FormatError(KforensicsError):
    """Bytes are not what their format says; `span` is relative to the buffer or file that was parsed."""

    def __init__(self, span: Span, *, expected: str, found: str) -> None:
        super().__init__(span, expected, found)
        self.span = span
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return f"at byte {self.span.position}, {self.span.length} bytes: expected {self.expected}, found {self.found}"

    def as_value(self) -> Self:
        """Return the error without its traceback, so that keeping it does not keep the parsed buffers alive."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self


class UnexpectedEnd(FormatError):
    """The bytes end before the value does."""


class BadChecksum(FormatError):
    """The stored checksum is not that of the bytes."""


class UnsupportedFormat(FormatError):
    """A version, codec or kind that kforensics does not read."""


class NewerThanKnown(UnsupportedFormat):
    """A version above the newest one that kforensics knows: whether the bytes are sound can't be told."""

    def __init__(self, span: Span, what: str, *, found: int, newest: int) -> None:
        self.problem = newer_than_known(what, found, newest)
        super().__init__(span, expected=f"{what} {newest} at most", found=f"{what} {found}")

    def __str__(self) -> str:
        return self.problem


def newer_than_known(what: str, found: int, newest: int) -> str:
    """Return the statement that something is newer than kforensics knows: neither damage nor of any release that is known."""
    return f"{what} {found} is newer than {newest}, which kforensics knows"


def require_known(span: Span, what: str, *, found: int, newest: int, oldest: int = 0) -> None:
    """Refuse a version that is not known.

    Raises:
        NewerThanKnown: it is above the newest.
        UnsupportedFormat: it is below the oldest.
    """
    if found > newest:
        raise NewerThanKnown(span, what, found=found, newest=newest)
    if found < oldest:
        known = f"{newest}" if oldest == newest else f"{oldest} to {newest}"
        raise UnsupportedFormat(span, expected=f"{what} {known}", found=f"{what} {found}")


class LimitReached(FormatError):
    """There is more than kforensics reads at once, which says nothing against the bytes; `expected` names the limit."""


class UsageError(KforensicsError):
    """Options or arguments exclude each other or are invalid."""


class Stopped(KforensicsError):
    """Work ended before it was done, because it was asked to."""


class MissingExtra(KforensicsError):
    """An optional package is needed; `extra` names the extra to install."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(extra, purpose)
        self.extra = extra
        self.purpose = purpose

    def __str__(self) -> str:
        return f"{self.purpose} needs an optional package: pip install 'kforensics[{self.extra}]'"
