"""The errors of kforensics.

    KforensicsError
    ├── EvidenceError              a named path can't be used as evidence
    │   ├── EvidenceNotFound       … is not there (also a FileNotFoundError)
    │   ├── EvidenceUnreadable     … can't be opened or read: permission, I/O error, vanished, no regular file
    │   └── NotADataDir            … is no Kafka data directory
    ├── FormatError                bytes are not what their format says
    │   ├── UnexpectedEnd          … they end too early
    │   ├── BadChecksum            … their checksum does not hold
    │   └── UnsupportedFormat      … a version or codec that kforensics does not read
    ├── UsageError                 options that exclude each other
    └── MissingExtra               an optional package is not installed

Errors are raised only for a path that the caller names; in a walk over many files the same content becomes `Damage` or a problem.
"""

from typing import Self

from kforensics.damage import Span


class KforensicsError(Exception):
    """The root of all errors that kforensics raises on purpose."""


class EvidenceError(KforensicsError):
    """A named path can't be used as evidence; `path` is as given, and `causes` are likely causes to show to the user."""

    def __init__(self, path: str, problem: str, causes: tuple[str, ...] = ()) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem
        self.causes = causes

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class EvidenceNotFound(EvidenceError, FileNotFoundError):
    """There is nothing at the path."""


class EvidenceUnreadable(EvidenceError):
    """The path exists and can't be read."""


class NotADataDir(EvidenceError):
    """The directory holds nothing that a Kafka broker writes."""


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


class UsageError(KforensicsError):
    """Options or arguments exclude each other or are invalid."""


class MissingExtra(KforensicsError):
    """An optional package is needed; `extra` names the extra to install."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(extra, purpose)
        self.extra = extra
        self.purpose = purpose

    def __str__(self) -> str:
        return f"{self.purpose} needs an optional package: pip install 'kforensics[{self.extra}]'"
