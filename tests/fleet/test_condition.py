"""A condition says of rows what SQL says, and of a file never less than its rows."""

import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")
pytest.importorskip("sqlglot")

import pyarrow as pa

from kforensics.errors import UsageError
from kforensics.fleet.condition import parse_condition

SCHEMA = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("is_control", pa.bool_())]
)

TEXTS = ("orders", "payments", "ord", "o_ders", "")
NUMBERS = st.integers(-3, 6)


def literals(column):
    values = st.sampled_from([f"'{one}'" for one in TEXTS]) if column == "topic" else NUMBERS.map(str)
    return st.one_of(values, st.just("null")) if column != "is_control" else st.sampled_from(["true", "false", "null"])


@st.composite
def comparisons(draw):
    column = draw(st.sampled_from(SCHEMA.names))
    literal = literals(column)
    signs = ["=", "==", "<=>", "!=", "<>"] + ([] if column == "is_control" else ["<", "<=", ">", ">="])
    forms = [st.builds(lambda sign, value: f"`{column}` {sign} {value}", st.sampled_from(signs), literal)]
    forms.append(st.sampled_from([f"`{column}` is null", f"{column} IS NOT NULL"]))
    negated = st.sampled_from(["", "not "])
    if column == "is_control":
        forms.append(st.just("is_control"))
    else:
        some = st.lists(literal, min_size=1, max_size=3).map(", ".join)
        forms.append(st.builds(lambda no, values: f"`{column}` {no}in ({values})", negated, some))
        forms.append(st.builds(lambda no, a, b: f"`{column}` {no}between {a} and {b}", negated, literal, literal))
    if column == "topic":
        pattern = st.sampled_from(["ord%", "%s", "o_ders", "%", "", "%yme%"])
        forms.append(st.builds(lambda no, one: f"topic {no}like '{one}'", negated, pattern))
        names = st.sampled_from(["startswith", "endswith", "contains"])
        forms.append(
            st.builds(lambda name, one: f"{name}(topic, '{one}')", names, st.sampled_from(["or", "s", "o_d", ""]))
        )
    return draw(st.one_of(forms))


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.builds(lambda a, b, sign: f"({a} {sign} {b})", inner, inner, st.sampled_from(["and", "or", "AND"])),
        inner.map(lambda one: f"not ({one})"),
    ),
    max_leaves=5,
)
ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from(TEXTS)),
        st.one_of(st.none(), NUMBERS),
        st.one_of(st.none(), NUMBERS),
        st.one_of(st.none(), st.booleans()),
    ),
    min_size=1,
    max_size=8,
)


def by_sqlite(text, rows):
    """What another program makes of the same condition."""
    with sqlite3.connect(":memory:") as base:
        base.execute("pragma case_sensitive_like = on")
        for name, holds in (("startswith", str.startswith), ("endswith", str.endswith), ("contains", str.__contains__)):
            base.create_function(name, 2, lambda a, b, holds=holds: None if a is None or b is None else holds(a, b))
        base.execute("create table rows (number, topic, `partition`, `offset`, is_control)")
        base.executemany("insert into rows values (?, ?, ?, ?, ?)", [(n, *row) for n, row in enumerate(rows)])
        asked = text.replace("<=>", "is")
        return [row[0] for row in base.execute(f"select number from rows where {asked} order by number")]


@given(CONDITIONS, ROWS)
def test_rows_pass_as_in_sql(text, rows):
    batch = pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)

    passing = parse_condition(text, SCHEMA).mask(batch).to_pylist()

    assert by_sqlite(text, rows) == [number for number, one in enumerate(passing) if one]


@given(CONDITIONS, ROWS, st.sets(st.sampled_from(SCHEMA.names)))
def test_a_file_is_left_out_only_where_no_row_can_pass(text, rows, known):
    condition = parse_condition(text, SCHEMA)
    facts: dict[str, tuple[Any, Any] | None] = {}
    for place, name in enumerate(SCHEMA.names):
        values = {row[place] for row in rows}
        if name in known and None not in values and name != "is_control":
            facts[name] = (min(values), max(values))
        elif name in known and len(values) == 1:
            facts[name] = None if values == {None} else (min(values), max(values))

    batch = pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
    assert condition.may_hold(facts) or True not in condition.mask(batch).to_pylist()


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"topic": ("orders", "orders")}, "topic = 'payments' and offset > 1"),
        ({"partition": (3, 3)}, "not partition in (3, 4)"),
        ({"offset": (100, None)}, "offset < 100"),
        ({"offset": (0, 99)}, "offset between 100 and 200"),
        ({"topic": ("orders", "orders")}, "topic like 'pay%' or topic is null"),
    ],
)
def test_files_without_wanted_rows_are_left_out(facts, text):
    assert not parse_condition(text, SCHEMA).may_hold(facts)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("topc = 'a'", "found 'topc'; did you mean topic?"),
        ("topic = 3", "a literal of the type of topic"),
        ("offset", "a comparison of offset"),
        ("offset < 1.5", "found 1.5"),
        ("1 < offset", "a column, found '1'"),
        ("offset in (select 1)", "a comparison of a column"),
        ("upper(topic) = 'A'", "a column, found"),
        ("topic like 3", "a literal of the type of topic"),
        ("(" * 5_000, "no condition in SQL"),
        ("offset < 99999999999999999999", "a literal of the type of offset"),
        ("offset in (1", "no condition in SQL"),
        ("topic = 'a' drop", "no condition in SQL"),
        ("", "no condition in SQL"),
    ],
)
def test_what_is_not_understood_is_refused(text, words):
    with pytest.raises(UsageError, match=words):
        parse_condition(text, SCHEMA)
