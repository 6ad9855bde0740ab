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
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from kforensics.errors import UsageError, did_you_mean, nearest_names

Truth = bool | None
"""True, false, or null."""

ANY = frozenset({True, False, None})

Fact = tuple[Any, Any] | None
"""What is known of a column of all rows of a file: that it is null, or the least and the largest value, where none is no bound."""

Facts = Mapping[str, Fact]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'[^'\\]*'|"[^"\\]*")|(?P<number>-?[0-9]+)(?![\w.])|`(?P<quoted>\w+)`|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<sign><=>|<=|>=|<>|!=|==|[=<>(),]))""",
    re.ASCII,
)
_COMPARISONS: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], bool]]] = {
    "=": (pc.equal, operator.eq),
    "<": (pc.less, operator.lt),
    "<=": (pc.less_equal, operator.le),
    ">": (pc.greater, operator.gt),
    ">=": (pc.greater_equal, operator.ge),
}
_TEXT_TESTS: dict[str, Callable[..., Any]] = {
    "like": pc.match_like,
    "startswith": pc.starts_with,
    "endswith": pc.ends_with,
    "contains": pc.match_substring,
}
_LEAST, _LARGEST = -(1 << 63), (1 << 63) - 1


class Condition:
    """A test of rows."""

    def mask(self, rows: pa.RecordBatch) -> Any:
        """Return whether each row passes: true, false or null.

        Args:
            rows: with every column that the condition names.
        """
        raise NotImplementedError

    def possible(self, facts: Facts) -> frozenset[Truth]:
        """Return what the test may be for some rows: every answer that it has for one of them is among these.

        Args:
            facts: by column, the least and the largest value of these rows, or None where all are null; a column of which nothing is known is missing.
        """
        raise NotImplementedError

    def columns(self) -> frozenset[str]:
        """Return the columns that it asks for."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _ColumnTest(Condition):
    """A test of one column."""

    column: str

    def columns(self) -> frozenset[str]:
        """Return its column."""
        return frozenset({self.column})


@dataclass(frozen=True, slots=True)
class Comparison(_ColumnTest):
    """The comparison of a column with a value; with null it is neither true nor false."""

    sign: str
    value: Any

    def mask(self, rows: pa.RecordBatch) -> Any:
        """Return the comparison of each row, null where the column or the value is."""
        column = rows.column(self.column)
        if self.value is None:
            return pa.nulls(len(rows), pa.bool_())
        return _COMPARISONS[self.sign][0](column, pa.scalar(self.value))

    def possible(self, facts: Facts) -> frozenset[Truth]:
        """Return what the least and the largest value leave possible."""
        if self.value is None:
            return frozenset({None})
        if self.column not in facts:
            return ANY
        fact = facts[self.column]
        if fact is None:
            return frozenset({None})
        low, high = fact
        if self.sign == "=":
            can_hold = (low is None or low <= self.value) and (high is None or self.value <= high)
            can_fail = not (low == high == self.value)
        else:
            holds = _COMPARISONS[self.sign][1]
            best, worst = (low, high) if self.sign in {"<", "<="} else (high, low)
            can_hold = best is None or holds(best, self.value)
            can_fail = worst is None or not holds(worst, self.value)
        return frozenset(([True] if can_hold else []) + ([False] if can_fail else []))


@dataclass(frozen=True, slots=True)
class IsNull(_ColumnTest):
    """Whether a column is null."""

    def mask(self, rows: pa.RecordBatch) -> Any:
        """Return whether the column of each row is null."""
        return pc.is_null(rows.column(self.column))

    def possible(self, facts: Facts) -> frozenset[Truth]:
        """Return whether the column is null, exactly where a fact is known."""
        return frozenset({facts[self.column] is None}) if self.column in facts else frozenset({True, False})


@dataclass(frozen=True, slots=True)
class TextTest(_ColumnTest):
    """The comparison of a column of text with a pattern."""

    name: str
    pattern: str

    def mask(self, rows: pa.RecordBatch) -> Any:
        """Return the test of each row, null where the column is."""
        return _TEXT_TESTS[self.name](rows.column(self.column), self.pattern)

    def possible(self, facts: Facts) -> frozenset[Truth]:
        """Return the test of the text where it is known, all that is possible where it is not."""
        if self.column not in facts:
            return ANY
        fact = facts[self.column]
        if fact is None:
            return frozenset({None})
        if fact[0] is None or fact[0] != fact[1]:
            return frozenset({True, False})
        return frozenset({_TEXT_TESTS[self.name](pa.scalar(fact[0]), self.pattern).as_py()})


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """The opposite; of null it is null."""

    part: Condition

    def mask(self, rows: pa.RecordBatch) -> Any:
        """Return the inverse of the part for each row, null where that is."""
        return pc.invert(self.part.mask(rows))

    def possible(self, facts: Facts) -> frozenset[Truth]:
        """Return the inverse of what is possible for the part."""
        return frozenset(None if one is None else not one for one in self.part.possible(facts))

    def columns(self) -> frozenset[str]:
        """Return those of its part."""
        return self.part.columns()


@dataclass(frozen=True, slots=True)
class Both(Condition):
    """Two tests, joined by `and`, or where `is_either` by `or`."""

    left: Condition
    right: Condition
    is_either: bool = False

    def mask(self, rows: pa.RecordBatch) -> Any:
        """Return both parts for each row, joined by SQL's logic of three values."""
        joined = pc.or_kleene if self.is_either else pc.and_kleene
        return joined(self.left.mask(rows), self.right.mask(rows))

    def possible(self, facts: Facts) -> frozenset[Truth]:
        """Return every pair of what is possible, as if both were independent: never less than what is possible."""
        strong = self.is_either
        lefts, rights = self.left.possible(facts), self.right.possible(facts)
        return frozenset(
            strong if strong in {one, other} else None if None in {one, other} else not strong
            for one in lefts
            for other in rights
        )

    def columns(self) -> frozenset[str]:
        """Return those of both."""
        return self.left.columns() | self.right.columns()


def parse_condition(text: str, schema: pa.Schema) -> Condition:
    """Parse a condition.

    Args:
        text: the SQL.
        schema: the columns that it may name.

    Raises:
        UsageError: it is not understood, or names a column that is not there.
    """
    return _Parser(text, schema).parse()


class _Parser:
    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema
        self._tokens = list(self._split())
        self._at = 0

    def parse(self) -> Condition:
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

    def _either(self) -> Condition:
        left = self._both()
        while self._take("or"):
            left = Both(left, self._both(), is_either=True)
        return left

    def _both(self) -> Condition:
        left = self._term()
        while self._take("and"):
            left = Both(left, self._term())
        return left

    def _term(self) -> Condition:
        if self._take("not"):
            return Not(self._term())
        if self._take("("):
            inner = self._either()
            self._need(")")
            return inner
        return self._test()

    def _test(self) -> Condition:
        for name in _TEXT_TESTS:
            if self._take(name, "("):
                column = self._column()
                self._need(",")
                found: Condition = TextTest(column, name, self._pattern(column))
                self._need(")")
                return found
        column = self._column()
        if self._take("is"):
            is_negated = self._take("not")
            self._need("null")
            return Not(IsNull(column)) if is_negated else IsNull(column)
        is_negated = self._take("not")
        found = self._rest(column, is_required=is_negated)
        return Not(found) if is_negated else found

    def _rest(self, column: str, *, is_required: bool) -> Condition:
        if self._take("in", "("):
            found = self._compared(column, "=")
            while self._take(","):
                found = Both(found, self._compared(column, "="), is_either=True)
            self._need(")")
            return found
        if self._take("between"):
            low = self._compared(column, ">=")
            self._need("and")
            return Both(low, self._compared(column, "<="))
        if self._take("like"):
            return TextTest(column, "like", self._pattern(column))
        if is_required:
            self._refuse(f"'in', 'between' or 'like'{self._where()}")
        for sign in ("<=>", "!=", "<>", "==", *_COMPARISONS):
            if self._take(sign):
                return self._compared(column, sign)
        if not pa.types.is_boolean(self._schema.field(column).type):
            self._refuse(f"a comparison behind {column}{self._where()}")
        return Comparison(column, "=", value=True)

    def _compared(self, column: str, sign: str) -> Condition:
        value = self._literal(column)
        if sign == "<=>":
            # Equal, or both null: never null itself.
            return IsNull(column) if value is None else Both(Not(IsNull(column)), Comparison(column, "=", value))
        if sign in {"!=", "<>"}:
            return Not(Comparison(column, "=", value))
        return Comparison(column, "=" if sign == "==" else sign, value)

    def _column(self) -> str:
        kind, name = self._next()
        known: Sequence[str] = self._schema.names
        if kind not in {"word", "quoted"} or name.lower() not in known:
            nearest = did_you_mean(nearest_names(name, known))
            self._refuse(f"a column, found {name!r}" + (f"; {nearest}" if nearest else ""))
        kind_of = self._schema.field(name.lower()).type
        if not (pa.types.is_integer(kind_of) or pa.types.is_boolean(kind_of) or pa.types.is_string(kind_of)):
            self._refuse(f"a column of numbers, text or booleans, found {name} ({kind_of})")
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
