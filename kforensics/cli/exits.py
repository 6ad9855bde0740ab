"""The exit codes, the same in every command."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from kforensics.evidence.model import Problem
    from kforensics.findings.model import Finding


class ExitCode(IntEnum):
    """What the exit code of a command says."""

    NOTHING_FOUND = 0
    FINDINGS = 1
    """At least one finding of severity `warning` or above."""
    USAGE = 2
    INCOMPLETE = 3
    """Evidence is missing, unreadable or changed while it was read; wins over findings: such a look proves nothing."""
    DEFECT = 4
    """A defect in kforensics itself."""
    INTERRUPTED = 130
    """Stopped from the keyboard, as shells report SIGINT."""
    PIPE_CLOSED = 141
    """The reader of the output went away, as shells report SIGPIPE."""


def exit_code_of(findings: Collection[Finding], problems: Collection[Problem]) -> ExitCode:
    """The exit code of a finished look: 3 with any problem, else 1 with a finding of at least `warning`, else 0."""
    from kforensics.findings.model import Severity

    if problems:
        return ExitCode.INCOMPLETE
    if any(finding.severity.rank >= Severity.WARNING.rank for finding in findings):
        return ExitCode.FINDINGS
    return ExitCode.NOTHING_FOUND
