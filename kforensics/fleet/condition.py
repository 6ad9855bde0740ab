"""A condition over the columns of the data source, in the SQL of `where`: asked of rows, and of files before they are opened.

    condition := conjunction ["or" conjunction]*     conjunction := term ["and" term]*     term := "not" term | "(" condition ")" | test
    test := column (= | == | <=> | != | <> | < | <= | > | >=) literal | column ["not"] "in" "(" literal, … ")" | column "is" ["not"] "null"
            | column ["not"] "between" literal "and" literal | column ["not"] "like" text | column
            | ("startswith" | "endswith" | "contains") "(" column "," text ")"
    literal := integer | text | "true" | "false" | "null"

Logic is SQL's, with three values: a comparison with null is neither true nor false.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'[^'\\]*'|"[^"\\]*")|(?P<number>-?[0-9]+)(?![\w.])|`(?P<quoted>\w+)`|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<sign><=>|<=|>=|<>|!=|==|[=<>(),]))""",
    re.ASCII,
)
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<=>": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "==": operator.eq,
    "=": operator.eq,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_TEXT_TESTS: dict[str, Callable[..., Any]] = {
    "like": pc.match_like,
    "startswith": pc.starts_with,
    "endswith": pc.ends_with,
    "contains": pc.match_substring,
}
_LEAST, _LARGEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of rows: an expression of Arrow, which has SQL's logic of three values."""

    expression: Any
    schema: pa.Schema
    columns: frozenset[str]
    """The columns that it asks for."""

    def mask(self, rows: pa.RecordBatch) -> pa.ChunkedArray:
        """Return whether each row passes: true, false or null.

        Args:
            rows: with the columns that it asks for.
        """
        scanner = pd.dataset(pa.table(rows)).scanner(columns={"passes": self.expression}, use_threads=False)
        return scanner.to_table()["passes"]

    def may_hold(self, facts: Facts) -> bool:
        """Whether it may hold for some row; false only where the facts exclude it.

        Args:
            facts: what is known of columns of all rows.
        """
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
    """Parse a condition.

    Args:
        schema: the columns that it may name.

    Raises:
        UsageError: it is not understood, or names a column that is not there.
    """
    parser = _Parser(text, schema)
    return Condition(parser.parse(), schema, frozenset(parser.columns))


class _Parser:
    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema
        self._tokens = list(self._split())
        self._at = 0
        self.columns: set[str] = set()

    def parse(self) -> Any:
        found = self._either()
        if self._at < len(self._tokens):
            self._refuse(f"nothing, found {self._tokens[self._at][1]!r}")
        return found

    def _split(self) -> Iterator[tuple[str, str]]:
        position, end = 0, len(self._text.rstrip())
        while position < end:
            found = _TOKEN.match(self._text, position)
            if found is None:
                self._refuse(f"a column, a sign or a literal, found {self._text[position:].strip()!r}")
            kind = str(found.lastgroup)
            yield kind, found[kind] if kind in {"text", "quoted"} else found[kind].lower()
            position = found.end()

    def _refuse(self, expected: str) -> NoReturn:
        raise UsageError(f"where {self._text!r}: expected {expected}")

    def _peek(self, *wanted: str) -> bool:
        """Return whether these words or signs follow; a quoted name is none."""
        following = self._tokens[self._at : self._at + len(wanted)]
        return [value for kind, value in following if kind in {"word", "sign"}] == list(wanted)

    def _take(self, *wanted: str) -> bool:
        is_there = self._peek(*wanted)
        self._at += len(wanted) if is_there else 0
        return is_there

    def _need(self, *wanted: str) -> None:
        if not self._take(*wanted):
            self._refuse(f"{' '.join(wanted)!r}{self._where()}")

    def _where(self) -> str:
        return f", found {self._tokens[self._at][1]!r}" if self._at < len(self._tokens) else " at the end"

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            self._refuse("more at the end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _either(self) -> Any:
        left = self._both()
        while self._take("or"):
            left |= self._both()
        return left

    def _both(self) -> Any:
        left = self._term()
        while self._take("and"):
            left &= self._term()
        return left

    def _term(self) -> Any:
        if self._take("not"):
            return ~self._term()
        if self._take("("):
            inner = self._either()
            self._need(")")
            return inner
        return self._test()

    def _test(self) -> Any:
        for name, test in _TEXT_TESTS.items():
            if self._take(name, "("):
                column = self._column()
                self._need(",")
                found = test(pc.field(column), self._pattern(column))
                self._need(")")
                return found
        column = self._column()
        if self._take("is"):
            is_negated = self._take("not")
            self._need("null")
            found = pc.field(column).is_null()
        else:
            is_negated = self._take("not")
            found = self._rest(column, is_required=is_negated)
        return ~found if is_negated else found

    def _rest(self, column: str, *, is_required: bool) -> Any:
        if self._take("in", "("):
            found = [self._compared(column, "=")]
            while self._take(","):
                found.append(self._compared(column, "="))
            self._need(")")
            return reduce(operator.or_, found)
        if self._take("between"):
            low = self._compared(column, ">=")
            self._need("and")
            return low & self._compared(column, "<=")
        if self._take("like"):
            return pc.match_like(pc.field(column), self._pattern(column))
        if is_required:
            self._refuse(f"'in', 'between' or 'like'{self._where()}")
        for sign in _SIGNS:
            if self._take(sign):
                return self._compared(column, sign)
        if not pa.types.is_boolean(self._schema.field(column).type):
            self._refuse(f"a comparison behind {column}{self._where()}")
        return pc.field(column)

    def _compared(self, column: str, sign: str) -> Any:
        given, value = pc.field(column), self._literal(column)
        if value is None:
            return given.is_null() if sign == "<=>" else pc.scalar(pa.scalar(None, pa.bool_()))
        if sign == "<=>":  # equal, or both null: never null itself
            return given.is_valid() & (given == value)
        return _SIGNS[sign](given, value)

    def _column(self) -> str:
        kind, name = self._next()
        known: Sequence[str] = self._schema.names
        if kind not in {"word", "quoted"} or name.lower() not in known:
            nearest = did_you_mean(nearest_names(name, known))
            self._refuse(f"a column, found {name!r}" + (f"; {nearest}" if nearest else ""))
        kind_of = self._schema.field(name.lower()).type
        if not (pa.types.is_integer(kind_of) or pa.types.is_boolean(kind_of) or pa.types.is_string(kind_of)):
            self._refuse(f"a column of numbers, text or booleans, found {name} ({kind_of})")
        self.columns.add(name.lower())
        return name.lower()

    def _literal(self, column: str) -> Any:
        kind, value = self._next()
        kind_of = self._schema.field(column).type
        if kind == "word" and value == "null":
            return None
        if kind == "number" and pa.types.is_integer(kind_of) and _LEAST <= int(value) <= _LARGEST:
            return int(value)
        if kind == "text" and pa.types.is_string(kind_of):
            return value[1:-1]
        if kind == "word" and value in {"true", "false"} and pa.types.is_boolean(kind_of):
            return value == "true"
        return self._refuse(f"a literal of the type of {column} ({kind_of}), found {value}")

    def _pattern(self, column: str) -> str:
        value = self._literal(column)
        if not isinstance(value, str):
            self._refuse(f"a text for {column}")
        return value
