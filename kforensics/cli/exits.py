"""The exit codes, the same in every command."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The meaning of the exit code of a command."""

    NOTHING_FOUND = 0
    FINDINGS = 1
    """The state of the answer is one of loss, damage or difference, or there is a finding of severity `warning` or above."""
    USAGE = 2
    INCOMPLETE = 3
    """The answer is unknown: evidence is missing, unreadable or changed while it was read."""
    DEFECT = 4
    """A defect in kforensics itself."""
    INTERRUPTED = 130
    """Stopped from the keyboard, as shells report SIGINT."""
    PIPE_CLOSED = 141
    """The reader of the output closed it, as shells report SIGPIPE."""
