"""The rows that are the answer as CSV (RFC 4180, with line feeds): all of them, with the fields of the document."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kforensics.commands.result import Result
from kforensics.evidence.model import Input
from kforensics.render.escape import escape_text
from kforensics.render.view import View

LINES = "*"
"""The place of rows that are in the lines of a result, which are made one by one: in the document all would be in memory at once."""
LEFT_OUT = frozenset({"citations"})

_FORMULA = frozenset("=+-@")
"""What text begins with that spreadsheets take for a formula."""

Row = Mapping[str, Any]


def write(
    result: Result[Any], view: View, *, place: str, source: Callable[[Result[Any], View], Iterable[str]]
) -> Iterator[str]:
    """Yield a line for the names of the columns, and one for each row.

    Args:
        place: of the rows in the document, such as `partitions.replicas`; several lists beside each other are `open|torn`.
    """
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")

    def line(cells: Iterable[object]) -> str:
        writer.writerow(cells)
        text = target.getvalue()
        target.seek(0)
        target.truncate()
        return text

    view = view._replace(descriptor=None)
    path = place.removeprefix(LINES).strip(".")
    if place.startswith(LINES):
        columns = dict.fromkeys(name for row in _of_lines(result, view, path, source) for name in row)
        rows = _of_lines(result, view, path, source)
    else:
        kept = list(_below(json.loads("".join(source(result, view))), path.split(".")))
        columns, rows = dict.fromkeys(name for row in kept for name in row), iter(kept)
    if columns:
        yield line(columns)
    for row in rows:
        yield line(_written(name, row.get(name), result.inputs) for name in columns)


def _of_lines(
    result: Result[Any], view: View, path: str, source: Callable[[Result[Any], View], Iterable[str]]
) -> Iterator[Row]:
    for piece in source(result, view):
        for text in piece.splitlines():
            found = json.loads(text)
            if not path:
                yield dict(_flat(found))
            elif path in found:
                yield from _below(found, path.split("."), name=found.pop("type", "partition"))


def _below(parent: Any, path: Sequence[str], above: Row | None = None, name: str = "") -> Iterator[Row]:
    """Yield the rows at a place below an object, each with the fields of what it is in; an object without any is a row."""
    above = {} if above is None else above
    if not path:
        own = dict(_flat(parent))
        yield {**{f"{name}_{key}" if key in own else key: value for key, value in above.items()}, **own}
        return
    if not isinstance(parent, dict):
        return
    lists = path[0].split("|")
    inner = parent.get(path[0])
    if len(lists) == 1 and isinstance(inner, dict):
        yield from _below(inner, path[1:], above, name)
        return
    taken = {key: value for key, value in parent.items() if key not in lists} if name else {}
    carried = {**above, **dict(_flat(taken))}
    rows = [(each, one) for each in lists for one in parent.get(each) or ()]
    for each, one in rows:
        marked = {**carried, "row": each} if len(lists) > 1 else carried
        yield from _below(one, path[1:], marked, name or each)
    if not rows and carried:
        yield carried


def _flat(value: Row, before: str = "") -> Iterator[tuple[str, Any]]:
    for key, one in value.items():
        if key in LEFT_OUT:
            continue
        if not isinstance(one, dict):
            yield f"{before}{key}", one
        elif key != "absent":
            yield from _flat(one, f"{before}{key}_")


def _written(name: str, value: Any, inputs: Sequence[Input]) -> str:
    """Return a value for a program: nothing where there is none, and text that no spreadsheet runs."""
    if name == "input" and isinstance(value, int) and value < len(inputs):
        value = inputs[value].path
    if value is None or isinstance(value, dict):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        is_plain = all(isinstance(one, (int, str)) for one in value)
        value = " ".join(map(str, value)) if is_plain else json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return str(value)
    text = escape_text(value)
    return f"'{text}" if text[:1] in _FORMULA else text
