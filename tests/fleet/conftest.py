"""One Spark session for all tests of the fleet: starting it costs more than the tests."""

import json
import os

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from kforensics.fleet.session import open_session

    events = tmp_path_factory.mktemp("spark-events")
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.driver.memory": "512m",
        # Each query runs once: compiling code a second time, to make it fast, takes longer than it saves.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    before = dict(os.environ)
    with open_session("local[2]", settings) as session:
        session.kforensics_events = events
        yield session
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def run_audit(spark, tmp_path):
    """Audits sources into a new directory and gives the summary and the tables' place."""
    from kforensics.ask.model import Ask
    from kforensics.fleet.auditing import audit
    from kforensics.fleet.sources import read_sources
    from kforensics.fleet.storage import parse_location
    from kforensics.fleet.summary import summarise

    count = 0

    def run(*sources, out=None, since=None, options=None, most=1_000, keep_going=False, progress=None, **more):
        nonlocal count
        count += 1
        target = parse_location(str(out)) if out else tmp_path / f"tables-{count}"
        given = read_sources([str(one) for one in sources])
        tables = audit(
            lambda: spark,
            given,
            target,
            options=options or Ask(),
            since=since,
            keep_going=keep_going,
            progress=progress,
            **more,
        )
        return summarise(tables, most=most), target

    return run


@pytest.fixture
def plain():
    """A value as the JSON document has it, in a form that can be sorted and compared."""
    from kforensics.evidence.plain import to_plain

    return lambda value: json.dumps(to_plain(value), sort_keys=True)


@pytest.fixture
def audit_here(monkeypatch, tmp_path):
    """Audits sources without Spark, each task and each group by itself in this process, and gives the tables."""
    from kforensics.ask.model import Ask
    from kforensics.fleet import auditing, stages
    from kforensics.fleet.sources import read_sources

    monkeypatch.setattr(stages, "_run", lambda _session, scan, *_: stages.scan_here(scan))
    monkeypatch.setattr(auditing, "cores_of", lambda _: 2)
    count = 0

    def run(*sources, out=None, groups=4, options=None, **more):
        nonlocal count
        count += 1
        monkeypatch.setattr(auditing, "groups_of", lambda *_: groups)
        given = read_sources([str(one) for one in sources])
        target = out or tmp_path / f"tables-{count}"
        return auditing.audit(lambda: None, given, target, options=options or Ask(), **more)

    return run
