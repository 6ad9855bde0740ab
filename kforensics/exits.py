"""The exit codes, the same in every command, and what each says."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The result of a process in one number."""

    NOTHING_FOUND = 0
    FINDINGS = 1
    USAGE = 2
    INCOMPLETE = 3
    DEFECT = 4
    INTERRUPTED = 130
    """Stopped from the keyboard, as shells report SIGINT."""
    PIPE_CLOSED = 141
    """The reader of the output closed it, as shells report SIGPIPE."""


EXIT_MEANINGS = {
    ExitCode.NOTHING_FOUND: "The answer is calm, and there is no finding of severity warning or above.",
    ExitCode.FINDINGS: "The answer is one of loss, damage or difference, or there is a finding of severity warning or above.",
    ExitCode.USAGE: "Options or arguments are wrong, or a filter matches nothing.",
    ExitCode.INCOMPLETE: "The answer is unknown, or something that was named could not be read; a worse answer is not hidden by that.",
    ExitCode.DEFECT: "A defect in kforensics itself.",
}
"""Of the codes that a command ends with by itself: in its manual page, in `kforensics help exit-codes` and in the README."""

EXIT_RULES = (
    "The code follows from the state of the answer, and a state has the same code in every command that reads evidence.",
    "Where another command knows worse of the same replicas, its statement stands first, with its state and its code.",
    "Each command answers its own question. Damage of files is the answer of verify (1). Of records that only a damaged or missing file may hold, diff, explain and predict say unknown (3), or that they may be lost or at risk (1). What a copy of running brokers would look like too is unknown to verify (3). What was discarded and proven not committed is an answer of explain (1), and none of replicas that agree now (0).",
)
"""What decides the code where commands are asked about the same inputs: in manual pages and in `kforensics help exit-codes`."""

SHORT_MEANINGS = {
    ExitCode.NOTHING_FOUND: "the answer is calm",
    ExitCode.FINDINGS: "loss, damage, difference or a warning",
    ExitCode.USAGE: "wrong usage",
    ExitCode.INCOMPLETE: "unknown, or not all could be read",
    ExitCode.DEFECT: "a defect in kforensics itself",
}
"""Those of the program's own help."""
