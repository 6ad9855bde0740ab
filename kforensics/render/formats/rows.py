"""The rows that are the answer as CSV (RFC 4180, with line feeds): all of them, under the names of the columns."""

import csv
import io
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import chain
from typing import Any

from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.render.blocks import Cell, Table, Value
from kforensics.render.escape import escape_text
from kforensics.render.view import View

_FORMULA = frozenset("=+-@")
"""What text begins with that spreadsheets take for a formula."""


def write(result: Result[Any], view: View, *, content: Callable[[Result[Any], View], Table]) -> Iterator[str]:
    """Yield a line for the names of the columns, and one for each row, as they are made.

    Args:
        content: gives the table.
    """
    return lines(content(result, view))


def lines(table: Table) -> Iterator[str]:
    """Yield the lines of a table."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    for row in chain([[column.name or column.title for column in table.columns]], _rows(table)):
        writer.writerow(row)
        yield target.getvalue()
        target.seek(0)
        target.truncate()


def _rows(table: Table) -> Iterator[list[str]]:
    for row in table.rows:
        yield [row] if isinstance(row, str) else [_written(value) for value in row]


def _written(value: Value) -> str:
    """Return a value for a program: nothing where there is none, and text that no spreadsheet runs."""
    match value:
        case None | Absent():
            return ""
        case Cell():
            return _written(value.text or value.badge)
        case bool():
            return "yes" if value else "no"
        case Enum():
            return _written(str(value.value))
        case str():
            text = escape_text(value)
            return f"'{text}" if text[:1] in _FORMULA else text
    return str(value)
