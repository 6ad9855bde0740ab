"""The document of `capture`: `kforensics/capture/1`."""

from collections.abc import Iterator

from kforensics.commands.capture import CaptureReport
from kforensics.commands.result import Result
from kforensics.render.json.document import document, fields_of
from kforensics.render.view import View


def write(result: Result[CaptureReport], _view: View) -> Iterator[str]:
    """Return the fields that `docs/json.md` promises.

    Args:
        result: of `capture`; its plan and what was written are in the body.
    """
    body = result.body
    return document(result, "capture", fields_of(body, "node_id", "cluster_id", "plan", "capture"))
