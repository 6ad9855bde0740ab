"""A condition over the columns of the data source, in Spark's SQL: asked of rows, and of files before they are opened.

It is made of comparisons of a column with a literal, `in`, `between`, `like`, `is null`, `startswith`, `endswith` and `contains`, joined by `and`, `or` and `not`.
Logic is SQL's, with three values: a comparison with null is neither true nor false.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd
from pyarrow.fs import LocalFileSystem

from kforensics.errors import UsageError, did_you_mean, nearest_names

Fact = tuple[Any, Any] | None
"""What is known of a column of all rows of a file: that it is null, or the least and the largest value, where none is no bound."""

Facts = Mapping[str, Fact]

_LEAST, _LARGEST = -(1 << 63), (1 << 63) - 1
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of rows: an expression of Arrow, which has SQL's logic of three values."""

    expression: Any
    schema: pa.Schema
    columns: frozenset[str]
    """The columns that it asks for."""

    def mask(self, rows: pa.RecordBatch) -> pa.ChunkedArray:
        """Return whether each row passes: true, false or null."""
        scanner = pd.dataset(pa.table(rows)).scanner(columns={"passes": self.expression}, use_threads=False)
        return scanner.to_table()["passes"]

    def may_hold(self, facts: Facts) -> bool:
        """Whether it may hold for some row; false only where the facts exclude it."""
        asked = (_guarantee(pc.field(name), fact) for name, fact in facts.items() if name in self.columns)
        known = reduce(operator.and_, asked, pc.scalar(True))
        form, here = pd.ParquetFileFormat(), LocalFileSystem()
        # No such file is opened: what Arrow knows of a file's partition excludes it or does not.
        file = form.make_fragment("", here, partition_expression=known)
        return any(pd.FileSystemDataset([file], self.schema, form, here).get_fragments(filter=self.expression))


def _guarantee(column: Any, fact: Fact) -> Any:
    if fact is None:
        return column.is_null()
    low, high = fact
    if low is not None and low == high:
        return column == low
    bounds = ([] if low is None else [column >= low]) + ([] if high is None else [column <= high])
    return reduce(operator.and_, bounds, pc.scalar(True))


def parse_condition(text: str, schema: pa.Schema) -> Condition:
    """Parse a condition."""
    import sqlglot  # takes half a second

    reader = _Reader(text, schema)
    try:
        tree = sqlglot.parse_one(text, dialect="spark", into=sqlglot.exp.Condition)
        expression = reader.test(tree)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        said = " ".join(str(error).split())[:_LONGEST]
        raise UsageError(f"where {text!r}: it is no condition in SQL: {said}") from None
    return Condition(expression, schema, frozenset(reader.columns))


class _Reader:
    """Makes expressions of Arrow of what was parsed."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema
        self.columns: set[str] = set()

    def test(self, node: Any) -> Any:
        from sqlglot import exp

        found: Any
        match node:
            case exp.Paren():
                return self.test(node.this)
            case exp.Not():
                return ~self.test(node.this)
            case exp.And():
                return self.test(node.left) & self.test(node.right)
            case exp.Or():
                return self.test(node.left) | self.test(node.right)
            case exp.Is(expression=exp.Null()):
                found = pc.field(self._column(node.this)).is_null()
            case exp.In() if node.expressions:
                column = self._column(node.this)
                found = reduce(operator.or_, (self._compared(column, operator.eq, one) for one in node.expressions))
            case exp.Between():
                column = self._column(node.this)
                low = self._compared(column, operator.ge, node.args["low"])
                found = low & self._compared(column, operator.le, node.args["high"])
            case exp.NullSafeEQ():
                column = self._column(node.this)
                value = self._literal(column, node.expression)
                given = pc.field(column)
                # Equal, or both null: never null itself.
                found = given.is_null() if value is None else given.is_valid() & (given == value)
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                found = self._compared(self._column(node.this), getattr(operator, _SIGNS[node.key]), node.expression)
            case exp.Like() | exp.StartsWith() | exp.EndsWith() | exp.Contains():
                column = self._column(node.this)
                pattern = self._literal(column, node.expression)
                if not isinstance(pattern, str):
                    self._refuse(f"a text for {column}")
                found = _TEXT_TESTS[node.key](pc.field(column), pattern)
            case exp.Column():
                column = self._column(node)
                if not pa.types.is_boolean(self._schema.field(column).type):
                    self._refuse(f"a comparison of {column}")
                found = pc.field(column)
            case _:
                self._refuse(f"a comparison of a column, found {node.sql('spark')!r}")
        return ~found if node.args.get("negate") else found

    def _refuse(self, expected: str) -> NoReturn:
        raise UsageError(f"where {self._text!r}: expected {expected}")

    def _compared(self, column: str, sign: Callable[[Any, Any], Any], literal: Any) -> Any:
        value = self._literal(column, literal)
        return pc.scalar(pa.scalar(None, pa.bool_())) if value is None else sign(pc.field(column), value)

    def _column(self, node: Any) -> str:
        name: str = node.sql("spark").strip("`").lower()
        if name not in self._schema.names:
            nearest = did_you_mean(nearest_names(name, self._schema.names))
            self._refuse(f"a column, found {name!r}" + (f"; {nearest}" if nearest else ""))
        kind = self._schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind)):
            self._refuse(f"a column of numbers, text or booleans, found {name} ({kind})")
        self.columns.add(name)
        return name

    def _literal(self, column: str, node: Any) -> Any:
        from sqlglot import exp

        kind = self._schema.field(column).type
        match node:
            case exp.Null():
                return None
            case exp.Boolean() if pa.types.is_boolean(kind):
                return node.this
            case exp.Literal(is_string=True) if pa.types.is_string(kind):
                return node.this
            case exp.Literal() | exp.Neg(this=exp.Literal()) if pa.types.is_integer(kind):
                text = node.sql("spark")
                if text.lstrip("-").isdecimal() and _LEAST <= int(text) <= _LARGEST:
                    return int(text)
        return self._refuse(f"a literal of the type of {column} ({kind}), found {node.sql('spark')}")


_SIGNS = {"eq": "eq", "neq": "ne", "lt": "lt", "lte": "le", "gt": "gt", "gte": "ge"}
"""The operator of Python for each comparison."""
_TEXT_TESTS: Mapping[str, Callable[..., Any]] = {
    "like": pc.match_like,
    "startswith": pc.starts_with,
    "endswith": pc.ends_with,
    "contains": pc.match_substring,
}
