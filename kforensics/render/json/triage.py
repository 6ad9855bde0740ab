"""The first answer as plain JSON values: topics, what is behind it, starts, and the answer of each question."""

from collections.abc import Iterator

from kforensics.commands.result import Result
from kforensics.commands.triage import Triage
from kforensics.findings.rules.causes import root_cause_sentence
from kforensics.render.json.document import document, plain_answer
from kforensics.render.view import View


def write(result: Result[Triage], _view: View) -> Iterator[str]:
    """Return the fields that `docs/json.md` promises."""
    body = result.body
    fields = {
        "depth": body.depth,
        "partitions_total": body.partitions,
        "root_cause": None if body.cause is None else root_cause_sentence(body.cause),
        "topics": [row._asdict() for row in body.topics],
        "starts": [
            {
                "input": number,
                "outcome": one.result,
                "exception": one.exception,
                "reason": one.reason,
                "clean": one.clean,
            }
            for number, one in body.starts
        ],
        "questions": [{"command": one.command, "answer": plain_answer(one.answer)} for one in body.asked],
    }
    return document(result, "triage", fields)
