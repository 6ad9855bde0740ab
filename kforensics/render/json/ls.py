"""`ls` as a document and as lines: nodes, partitions, directories and files as `docs/json.md` promises them."""

from collections.abc import Iterable, Iterator

from kforensics.commands.ls import Listing
from kforensics.commands.result import Result
from kforensics.render.json.document import document, plain_answer, typed_lines
from kforensics.render.view import View


def write(result: Result[Listing], view: View) -> Iterator[str]:
    """Return the document, piece by piece: rows of a million files are too much to hold.

    Args:
        view: whether every file is listed, not only counts by kind.
    """
    inventory = result.body.inventory
    streams: dict[str, Iterable[object]] = {
        "partitions": inventory.partitions,
        "directories": inventory.directories,
        "file_counts": inventory.files,
        "unknown_files": inventory.unknown,
    }
    if view.files:
        streams["files"] = result.body.files()
    return document(result, "ls", {"depth": result.body.depth, "nodes": inventory.nodes}, streams=streams)


def write_lines(result: Result[Listing], view: View) -> Iterator[str]:
    """Return an object a line, each with its type.

    Args:
        view: whether every file is listed, not only counts by kind.
    """
    inventory = result.body.inventory
    return typed_lines(
        ("answer", (plain_answer(result.answer),)),
        ("input", result.inputs),
        ("node", inventory.nodes),
        ("partition", inventory.partitions),
        ("directory", inventory.directories),
        ("file-count", inventory.files),
        ("unknown-file", inventory.unknown),
        ("file", result.body.files() if view.files else ()),
        ("finding", result.findings),
        ("problem", result.problems),
    )
