"""Data directories as tables, with filters that reach the files."""

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThan

from kforensics.errors import UsageError
from kforensics.fleet.datasource import KforensicsDataSource, KforensicsReader, register

pytestmark = pytest.mark.spark


@pytest.fixture
def place(incident):
    return incident("unclean-election-4.x") / "snapshots" / "02-old-leader-killed"


@pytest.fixture
def read(spark, place):
    register(spark)

    def load(level, **options):
        return spark.read.format("kforensics").option("level", level).options(**options).load(str(place))

    return load


def test_every_level_is_a_table(read):
    counts = {
        level: read(level).where("topic = 'orders' and partition = 0").count() for level in ("replicas", "segments")
    }
    batches = read("batches").where("topic = 'orders' and partition = 0")
    batches.createOrReplaceTempView("batches")

    row = batches.sparkSession.sql(
        "select count(*) n, sum(record_count) records, max(last_offset) last, min(crc_valid) sound from batches"
    ).collect()[0]

    assert {"replicas": 1, "segments": 1} == counts
    assert (16, 103, 102, True) == (row.n, row.records, row["last"], row.sound)


def test_payloads_are_shown_only_when_asked_for(read):
    wanted = "topic = 'orders' and partition = 0 and offset >= 60 and offset < 65"

    hidden = read("records").where(wanted)
    shown = read("records", payloads="true").where(wanted).orderBy("offset").collect()

    assert {"key", "value", "headers"}.isdisjoint(hidden.columns)
    assert 5 == hidden.count()
    assert [60, 61, 62, 63, 64] == [row.offset for row in shown]
    assert all(len(row.key) == row.key_length for row in shown)


def test_filters_choose_the_files(place):
    reader = KforensicsReader({"path": str(place), "level": "records"})
    filters = [EqualTo(("topic",), "orders"), In(("partition",), (0, 1))]

    assert filters == list(reader.pushFilters(filters))

    paths = [row["path"] for piece in reader.partitions() for row in piece.rows]
    assert {"orders-0", "orders-1"} == {path.split("/")[-2] for path in paths}


def test_offsets_choose_segments(incident):
    place = incident("all-codecs-4.x") / "snapshots" / "99-final"

    def chosen(*filters):
        reader = KforensicsReader({"path": str(place), "level": "records"})
        list(reader.pushFilters(list(filters)))
        return {row["path"] for piece in reader.partitions() for row in piece.rows}

    everything = chosen()
    assert chosen(GreaterThanOrEqual(("offset",), 0)) == everything
    assert chosen(LessThan(("offset",), 1)) <= everything
    later = chosen(GreaterThanOrEqual(("offset",), 10**9))
    assert later < everything or len(everything) == len(later)


def test_what_is_asked_wrongly(place):
    with pytest.raises(UsageError, match="expected one of"):
        KforensicsDataSource({"level": "words"}).schema()
    with pytest.raises(UsageError, match="needs a path"):
        KforensicsReader({"level": "records"}).partitions()
