"""The document of `capture --format json`."""

from kforensics.commands.capture import CaptureResult
from kforensics.render.json.answer import plain_answer
from kforensics.render.json.document import document


def capture_document(result: CaptureResult, exit_code: int) -> str:
    """What was captured, or would be."""
    return document(
        "capture",
        inputs=result.inputs,
        findings=result.findings,
        problems=result.problems,
        exit_code=exit_code,
        answer=plain_answer(result.answer),
        node_id=result.node_id,
        cluster_id=result.cluster_id,
        plan=result.plan,
        capture=result.capture,
    )
