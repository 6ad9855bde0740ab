"""An answer as the object `answer` of every document."""

from typing import Any

from kforensics.findings.answers.model import Answer


def plain_answer(answer: Answer) -> dict[str, Any]:
    """Return the fields that `docs/json.md` promises, in their order.

    Args:
        answer: of any command.
    """
    return {
        "state": answer.state.value,
        "headline": answer.headline,
        "now": list(answer.now),
        "tell": list(answer.tell),
        "later": list(answer.later),
        "unknown": list(answer.unknown),
    }
