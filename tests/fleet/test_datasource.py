"""Data directories as tables, with conditions that reach the files."""

import random
import shutil
from collections import Counter

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.evidence.content import find_range
from kforensics.fleet import datasource, level_rows
from kforensics.fleet.condition import parse_condition
from kforensics.fleet.datasource import KforensicsDataSource, KforensicsReader, register
from kforensics.fleet.level_rows import LEVELS
from tests.builders.directories import copied
from tests.builders.repeating import times

pytestmark = pytest.mark.spark

ORDERS = "orders-0/00000000000000000000.log"


@pytest.fixture
def place(incident):
    return incident("unclean-election-4.x") / "snapshots" / "02-old-leader-killed"


@pytest.fixture
def stopped(incident, tmp_path):
    """Brokers that stopped cleanly, with segments and indexes of several entries."""
    copied(incident("silent-divergence-4.x") / "snapshots" / "99-final", tmp_path / "stopped")
    for one in (tmp_path / "stopped").rglob("meta.properties"):
        one.with_name(".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    return tmp_path / "stopped"


def rows_of(place, names=None, **options):
    """What the reader gives, without Spark."""
    reader = KforensicsReader({"path": str(place), **options}, names)
    return [row for piece in reader.partitions() for part in reader.read(piece) for row in part.to_pylist()]


def paths_of(place, **options):
    """The files that are opened."""
    return {
        row["path"] for piece in KforensicsReader({"path": str(place), **options}).partitions() for row in piece.rows
    }


CONDITIONS = {
    "records": [
        "batch_base_offset <= 40",
        "batch_base_offset = 35 and topic = 'orders'",
        "not record_offset between 10 and 100",
        "timestamp_ms > 1 and key_length is not null and partition_leader_epoch >= 1",
        "topic like 'pay%' or node_id = 2 and not is_control",
        "sequence <=> null and record_offset in (3, 4, null)",
    ],
    "batches": [
        "last_offset >= 60 and crc_valid",
        "max_timestamp_ms > 0 and base_offset <> 0",
        "record_count not in (7)",
    ],
    "segments": ["base_offset > 0 or record_count > 100", "partition = 0 and not is_deleted", "last_offset < 80"],
    "replicas": ["state = 'live' and high_watermark >= 65", "topic = 'orders' or high_watermark is null"],
}


@pytest.mark.parametrize("level", LEVELS)
def test_a_condition_leaves_the_rows_that_pass_it(place, level):
    every = rows_of(place, level=level)
    table = pa.RecordBatch.from_pylist(every, schema=LEVELS[level])
    for text in CONDITIONS[level]:
        passing = parse_condition(text, LEVELS[level]).mask(table).to_pylist()
        expected = [row for row, one in zip(every, passing, strict=True) if one]
        assert expected == rows_of(place, level=level, where=text), text
        assert 0 < len(expected) < len(every), text


@pytest.mark.parametrize("level", LEVELS)
def test_columns_are_those_asked_for(place, level):
    whole = rows_of(place, level=level)
    names = (LEVELS[level].names[-1], "topic")
    where = "partition = 0"

    chosen = rows_of(place, level=level, columns=", ".join(names), where=where)

    assert [{name: row[name] for name in names} for row in whole if row["partition"] == 0] == chosen
    assert chosen == rows_of(place, names, level=level, where=where)


def test_a_condition_chooses_the_files(place):
    chosen = paths_of(place, level="records", where="topic = 'orders' and partition in (0, 1) and record_offset > 3")
    assert {"orders-0", "orders-1"} == {path.split("/")[-2] for path in chosen}
    assert not paths_of(place, level="segments", where="node_id = 99 or base_offset > 1000")


def test_names_choose_segments_where_they_are_trusted(tmp_path, place):
    copied(place, tmp_path, dirs_exist_ok=True)
    directory = next(tmp_path.rglob("orders-0"))
    shutil.copy(directory / "00000000000000000000.log", directory / "00000000000000005000.log")
    where = "topic = 'orders' and partition = 0 and record_offset < 40"

    assert 80 == len(rows_of(tmp_path, level="records", where=where))
    assert 40 == len(rows_of(tmp_path, level="records", where=where, trust_names="true"))
    assert 1 == len(paths_of(tmp_path, level="records", where=f"{where} and path like '%'", trust_names="true"))


TIMES = (
    "{column} >= {time}",
    "{column} > {time} and partition = 0",
    "not {column} < {time}",
    "{column} = {time} or node_id = 2 and {column} > {other}",
    "{column} between {time} and {other}",
    "{column} in ({time}, {other})",
    "{column} is null or {column} >= {time}",
    "{column} < {time}",
    "not ({column} <= {time} or {column} is null)",
)


@pytest.mark.parametrize("level", ["segments", "batches", "records"])
@pytest.mark.some("batches")
def test_times_choose_segments_and_their_parts_by_sound_indexes(stopped, level, monkeypatch):
    column = "timestamp_ms" if level == "records" else "max_timestamp_ms"
    every = rows_of(stopped, level=level)
    table = pa.RecordBatch.from_pylist(every, schema=LEVELS[level])
    moments = sorted({row[column] for row in every if row[column] is not None})
    chosen = random.Random(7)
    left_out = 0
    begun = []

    def counted(*place, **wanted):
        begun.append(find_range(*place, **wanted))
        return begun[-1]

    monkeypatch.setattr(datasource, "find_range", counted)

    for form in TIMES:
        for _ in range(times(1, 3)):
            given = {"time": chosen.choice(moments) + chosen.choice((-1, 0, 1)), "other": chosen.choice(moments)}
            where = form.format(column=column, **given)
            passing = parse_condition(where, LEVELS[level]).mask(table).to_pylist()
            expected = [row for row, one in zip(every, passing, strict=True) if one]
            reader = KforensicsReader({"path": str(stopped), "level": level, "where": where, "trust_indexes": "true"})
            pieces = reader.partitions()
            shown = [row for piece in pieces for part in reader.read(piece) for row in part.to_pylist()]
            left_out += sum(reader._first_wanted(one.task, row) is None for one in pieces for row in one.rows)
            assert without_times(expected) == without_times(shown), where
    assert left_out > 10
    assert level == "segments" or any(one.start for one in begun)


def without_times(rows):
    """Rows without the moment at which they were read."""
    return [{name: value for name, value in row.items() if name != "scanned_ns"} for row in rows]


def test_an_index_that_nothing_vouches_for_chooses_nothing(stopped):
    where = f"timestamp_ms > {1 << 60}"
    for one in stopped.rglob(".kafka_cleanshutdown"):
        one.unlink()
    for one in stopped.rglob("recovery-point-offset-checkpoint"):
        one.write_text("0\n0\n")
    reader = KforensicsReader({"path": str(stopped), "level": "records", "where": where, "trust_indexes": "true"})

    assert {0} == {reader._first_wanted(one.task, row) for one in reader.partitions() for row in one.rows}


def test_columns_that_are_not_asked_for_are_not_made(place, monkeypatch):
    made: Counter[str] = Counter()
    assembled = level_rows._assembled

    def counting(count, where, schema, column):
        def counted(one):
            made[one.name] += 1
            return column(one)

        return assembled(count, where, schema, counted)

    monkeypatch.setattr(level_rows, "_assembled", counting)
    monkeypatch.setattr(level_rows, "slice_nullable", None)

    assert rows_of(place, level="records", payloads="true", columns="sequence", where="is_control = false")
    assert {"sequence", "is_control"} == set(made)
    made.clear()
    assert rows_of(place, ("crc",), level="batches")
    assert {"crc"} == set(made)


def test_a_file_that_vanishes_is_an_error_or_a_row(tmp_path, place):
    copied(place, tmp_path, dirs_exist_ok=True)
    log = next(tmp_path.rglob(ORDERS))
    for level in LEVELS:
        options = {"path": str(tmp_path), "level": level, "where": "topic = 'orders' and node_id > 0"}
        stopping, going = KforensicsReader(options), KforensicsReader({**options, "problems": "rows"})
        pieces = stopping.partitions()
        if level == "replicas":
            continue
        kept = log.read_bytes()
        log.unlink()
        with pytest.raises(EvidenceUnreadable, match=r"no such file.*problems=rows"):
            [list(stopping.read(one)) for one in pieces]
        rows = [row for one in pieces for part in going.read(one) for row in part.to_pylist()]
        log.write_bytes(kept)
        assert [(ORDERS, "orders", "there is no such file")] == [
            (row["path"][-len(ORDERS) :], row["topic"], row["problem"]) for row in rows if row["problem"]
        ]
        assert len(rows) > 1


def test_damage_is_a_row_beside_the_records(tmp_path, place):
    copied(place, tmp_path, dirs_exist_ok=True)
    log = next(tmp_path.rglob(ORDERS))
    data = bytearray(log.read_bytes())
    data[500] ^= 1
    log.write_bytes(data)
    options = {"level": "records", "where": "topic = 'orders' and partition = 0"}

    rows = rows_of(tmp_path, problems="rows", **options)

    assert 1 == len([row for row in rows if row["problem"]])
    assert 96 == len(rows) - 1 == len(rows_of(tmp_path, **options))
    assert next(row["problem"] for row in rows if row["problem"]).startswith("at byte ")


def test_what_is_asked_wrongly(place):
    for options, words in (
        ({"level": "words"}, "expected one of"),
        ({"level": "records"}, "needs a path"),
        ({"columns": "topic, offsets"}, "columns offsets: expected some of"),
        ({"problems": "none"}, "expected error or rows"),
        ({"level": "records", "payloads": "yes"}, "expected true or false"),
        ({"were": "topic = 'a'"}, "option were"),
        ({"where": "offset = 1"}, "did you mean"),
    ):
        with pytest.raises(UsageError, match=words):
            KforensicsReader(options).partitions()
    with pytest.raises(UsageError, match="expected one of"):
        KforensicsDataSource({"level": "words"}).schema()


def test_spark_counts_as_the_reader_does(spark, place):
    register(spark)

    def load(level, **options):
        return spark.read.format("kforensics").option("level", level).options(**options).load(str(place))

    records = load("records")
    whole = records.count()
    low, high = records.where("record_offset < 50"), records.where("record_offset >= 50")

    # One DataFrame, several filters: what one query asks for must not reach another.
    assert 42 == records.where("topic = 'orders' and partition = 0 and batch_base_offset <= 40").count()
    assert 540 == whole == low.union(high).count()
    pair = "topic = 'orders' and partition = 0 and record_offset "
    shown = load("records", payloads="true", where=pair + "between 60 and 64", columns="record_offset, key, key_length")
    found = shown.collect()
    assert ([60, 61, 62, 63, 64], {True}) == (
        sorted(row.record_offset for row in found),
        {len(row.key) == row.key_length for row in found},
    )
    assert {"key", "value", "headers"}.isdisjoint(records.columns)
    named = spark.read.format("kforensics").schema("last_offset long, crc_valid boolean")
    batches = named.options(level="batches", where="topic = 'orders' and partition = 0").load(str(place))
    assert [(102, True, 16)] == [
        tuple(row) for row in batches.selectExpr("max(last_offset)", "min(crc_valid)", "count(*)").collect()
    ]


def conditions_of(chosen, rows, schema):
    """Conditions of every supported column and operator, with values that occur and values beside them."""
    for one in schema:
        values = (
            sorted({row[one.name] for row in rows if row[one.name] is not None}, key=str)
            if not pa.types.is_nested(one.type)
            else []
        )
        if pa.types.is_boolean(one.type):
            yield from (one.name, f"not {one.name}", f"{one.name} <=> null", f"{one.name} <> true")
        elif pa.types.is_integer(one.type) or pa.types.is_string(one.type):
            is_text = pa.types.is_string(one.type)
            shown = [
                f"'{value}'" if is_text else str(value)
                for value in chosen.choices(values or ["" if is_text else 0], k=3)
            ]
            yield from (
                f"{one.name} {sign} {shown[0]}" for sign in ("=", "==", "<=>", "!=", "<>", "<", "<=", ">", ">=")
            )
            yield f"{one.name} not in ({', '.join(shown)}, null) or {one.name} is not null"
            yield f"{one.name} in ({', '.join(shown)}) and not {one.name} between {shown[1]} and {shown[2]}"
            if is_text:
                some = shown[0].strip("'")[:3]
                yield from (f"{one.name} like '%{some}%'", f"startswith({one.name}, {shown[1]})")


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_conditions_are_what_the_filter_of_spark_is(spark, stopped, level):
    every = rows_of(stopped, level=level)
    schema = LEVELS[level]
    spark.createDataFrame(pa.Table.from_pylist(every, schema=schema)).cache().createOrReplaceTempView("every_row")
    chosen = random.Random(11)
    simple = list(conditions_of(chosen, every, schema))
    joined = [
        f"({a}) {sign} not ({b})"
        for a, b, sign in zip(simple, chosen.sample(simple, 60), ("and", "or") * len(simple), strict=False)
    ]
    asked = [*simple, *joined]
    counts = spark.sql("select " + ", ".join(f"count_if({one})" for one in asked) + " from every_row").first()
    for where, count in zip(asked, counts, strict=True):
        assert count == len(rows_of(stopped, level=level, where=where, trust_indexes="true", trust_names="true")), where
