"""What every command returns and takes: results, answers with their exit codes, and the time that is now."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from kforensics.evidence.model import Input, Problem
from kforensics.findings.answers.model import Answer, State, exit_code, in_short, with_inputs
from kforensics.findings.model import Finding, by_gravity
from kforensics.source.capture import with_records

if TYPE_CHECKING:
    from kforensics.findings.rules.seal import CheckedSeal


Body = TypeVar("Body")


class Conclusion(NamedTuple):
    """The conclusion of a command once all its evidence has been read."""

    answer: Answer
    findings: tuple[Finding, ...] = ()
    """The gravest first."""
    problems: tuple[Problem, ...] = ()
    """The problems: what could not be read."""
    exit_code: int | None = None
    """The exit code by rules that were asked for; None where it follows from the state of the answer."""


@dataclass(slots=True, kw_only=True)
class Result(Generic[Body]):
    """The result of a command: inputs, answer, findings and problems, and in `body` a value of its own.

    The content of `dump`, of a manifest and of the check of a seal is read while it is written. Whoever asks for answer, findings or problems before that is
    done has it read to its end.
    """

    command: str
    """A key of `findings.answers.model.STATES`."""
    inputs: tuple[Input, ...] = ()
    body: Body
    concluded: Conclusion | Callable[[], Conclusion]
    """The conclusion, or a function that reads the rest of the content and gives it."""
    shape: str = ""
    """The kind of result of the command, where there are several; a name of `render.emit.SHAPES`."""
    seal: "CheckedSeal | None" = None
    """The seal that the inputs were checked against."""
    case: Any = None
    """The case of the inputs, for another look at them that need not read them again."""

    def __post_init__(self) -> None:
        self.shape = self.shape or self.command

    @property
    def conclusion(self) -> Conclusion:
        """Answer, findings and problems, those of the seal among them."""
        found = self.concluded() if callable(self.concluded) else self.concluded
        found = found._replace(answer=in_short(with_inputs(self.command, found.answer, self.inputs, found.problems)))
        if self.seal is None:
            return found
        return found._replace(
            findings=by_gravity((*found.findings, *self.seal.findings)),
            problems=(*found.problems, *self.seal.problems),
        )

    @property
    def private_inputs(self) -> tuple[str, ...]:
        """The captures among the inputs that hold records of users."""
        return with_records(one.path for one in self.inputs)

    @property
    def answer(self) -> Answer:
        """The answer: what the command says first."""
        return self.conclusion.answer

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, the gravest first."""
        return self.conclusion.findings

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems: what could not be read."""
        return self.conclusion.problems

    @property
    def exit_code(self) -> int:
        """The exit code of the command: it follows from the state of the answer, unless rules for it were asked for."""
        found = self.conclusion
        if found.exit_code is not None:
            return found.exit_code
        return exit_code(self.command, found.answer, found.findings, found.problems)


def confirms(content: Result[Any], ends: Result[Any]) -> bool:
    """Whether what all content shows says nothing else than what the ends of logs showed."""
    mine, its = content.conclusion, ends.conclusion
    state = State.AGREE if its.answer.state is State.SAME_ENDS else its.answer.state
    return (
        mine.answer.state is state
        and content.exit_code == ends.exit_code
        and {(one.code, one.statement) for one in mine.findings} == {(one.code, one.statement) for one in its.findings}
        and mine.problems == its.problems
    )


def now_ms() -> int:
    """Return milliseconds since 1970: `SOURCE_DATE_EPOCH` (seconds) where it is set, else the clock."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return int(fixed) * 1000 if fixed.isdecimal() and len(fixed) < 12 else time.time_ns() // 1_000_000
