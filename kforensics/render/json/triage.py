"""The document of `triage`: topics, what is behind it, starts, and the answer of each question."""

from kforensics.commands.triage import Triage
from kforensics.findings.rules.causes import root_cause_sentence
from kforensics.render.json.shape import Document, Each, Field, own


def _root_cause(body: Triage) -> str | None:
    return None if body.cause is None else root_cause_sentence(body.cause)


TRIAGE = Document(
    "triage",
    Triage,
    {
        "depth": "",
        "partitions_total": "partitions",
        "root_cause": (
            _root_cause,
            "What is behind most of the lost records, in a sentence; null where nothing that is proven or likely explains them.",
        ),
        "topics": "",
        "starts": Field(
            "starts",
            "The last start that is predicted of each node, as in `predict`.",
            Each({"input": "0", "outcome": "1.result", **own("exception reason clean", "1.")}),
        ),
        "questions": Field("asked", "Each command that the inputs can answer.", Each({"command": "", "answer": ""})),
        "not_asked": Field(
            "unasked", "Each command that these inputs can't answer, with the reason.", Each({"command": "", "why": ""})
        ),
    },
)
