"""The document of `--format json` where inputs are refused: which they are and why, and no analysis."""

from kforensics.commands.result import Conclusion, Result
from kforensics.errors import EvidenceError, InputsRefused
from kforensics.evidence.model import Input, Problem
from kforensics.findings.answers.model import Answer, State
from kforensics.render.json.document import write_document
from kforensics.render.json.shape import Document, Field

REFUSAL = Document(
    "refusal",
    object,
    {
        name: Field(lambda _: (), "Empty: nothing was analysed.", list)
        for name in ("partitions", "truncations", "losses")
    },
    command="ls",
)


def refusal_document(error: EvidenceError) -> str:
    """Return the document `kforensics/refusal/1`, the same for every command.

    Returns:
        An answer of state `unknown`, the paths that are refused as inputs, and a problem for each; the tables of an analysis are empty.
    """
    errors = error.errors if isinstance(error, InputsRefused) else (error,)
    answer = Answer(
        state=State.UNKNOWN,
        headline=f"Nothing was analysed: {error}.",
        now=tuple(f"Did you mean {name}?" for one in errors for name in one.nearest[:1]),
        unknown=("Everything: no input was analysed.",),
    )
    conclusion = Conclusion(
        answer=answer,
        problems=tuple(Problem(input=at, path=".", message=one.problem) for at, one in enumerate(errors)),
    )
    inputs = tuple(Input(path=one.path, kind="unreadable") for one in errors)
    # Every command that reads inputs has the state, with the same exit code.
    result = Result(command="ls", inputs=inputs, body=None, concluded=conclusion)
    return "".join(write_document(REFUSAL, result))
