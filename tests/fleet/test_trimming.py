"""What a history holds after its old audits were removed, wherever that work ends."""

import json
import time

import pytest

from kforensics.ask.fleet import FleetAsk
from kforensics.ask.model import Ask
from kforensics.cli.app import run
from kforensics.errors import UsageError
from kforensics.fleet.audit_tables import DAY_NS, TRIMMED, open_audit, open_audits, trim_history
from kforensics.fleet.commands import run_report, run_trend
from kforensics.fleet.lock import LOCK
from kforensics.fleet.tables import Tables
from kforensics.units import Depth
from tests.builders.audits import one_finding, write_audit
from tests.fleet.test_keeping import append, cluster, content  # noqa: F401 - a fixture


@pytest.fixture
def history(tmp_path):
    return tmp_path / "history"


@pytest.fixture
def aged(history):
    """Make audits older: those that are named, by so many days."""

    def make(days):
        for name, number in days.items():
            path = history / "_audits" / f"{name}.json"
            manifest = json.loads(path.read_text())
            manifest["audited_ns"] = time.time_ns() - number * DAY_NS
            path.write_text(json.dumps(manifest))

    return make


@pytest.fixture
def nights(history, aged):
    """Three nights of a history, of 100, 99 and 0 days ago."""
    for name, partitions in (("1", (3,)), ("2", (3, 4)), ("3", (3, 4))):
        write_audit(history, [one_finding(partition=one) for one in partitions], audit_id=name, is_history=True)
    aged({"1": 100, "2": 99})
    return history


def ids(history):
    return [one.audit_id for one in open_audits(history)]


def seen_first(history):
    return {row["partition"]: row["first_seen"] for row in open_audit(history).rows("changes")}


def test_old_audits_go_and_open_findings_keep_their_age(nights, capsys):
    before = seen_first(nights)

    assert 0 == run(["fleet", "history", str(nights), "--keep", "90d"])

    assert "2 audits were removed" in capsys.readouterr().out
    assert ["3"] == ids(nights)
    assert before == seen_first(nights)
    assert not [one for one in nights.rglob("*") if one.name.startswith(("1-", "2-", "1.", "2.", ".trimmed"))]
    open_audit(nights).check_parts()
    again = trim_history(Tables(nights), 90)
    assert ((), 0) == (again.trimmed_audits, again.removed_files)


def test_the_latest_of_each_cluster_and_depth_stays(history, aged):
    for name, more in (("a", {}), ("b", {"cluster": "other"}), ("c", {"depth": Depth.TAILS}), ("d", {}), ("e", {})):
        write_audit(history, [one_finding()], audit_id=name, is_history=True, **more)
    aged({"a": 100, "b": 99, "c": 98, "d": 97})

    found = trim_history(Tables(history), 90)

    assert (("b", "c", "e"), ("a", "d")) == (found.audits, found.trimmed_audits)


@pytest.mark.slow
def test_rows_that_later_audits_have_stay(audit_here, cluster, history, aged):  # noqa: F811 - the fixture
    more = {"out": history, "is_history": True, "options": Ask(leader=2)}
    for at, name in ((5, "one"), (6, "two"), (7, "three")):
        audit_here(cluster, audit_id=name, **more)
        append(cluster, 2, at)
    aged({"one": 100, "two": 99})
    expected = content(open_audit(history))

    trim_history(Tables(history), 90)

    assert ["three"] == ids(history)
    assert expected == content(open_audit(history))
    later = audit_here(cluster, audit_id="four", **more)
    assert ("one", "two", "three") == later.kept_from
    assert content(audit_here(cluster, options=Ask(leader=2))) == content(later)
    with pytest.raises(UsageError, match="holds rows of the audit one, which was trimmed"):
        audit_here(cluster, audit_id="one", **more)


@pytest.mark.parametrize("steps", [0, 1, 2, 12, 21, 22, 23])
@pytest.mark.some(3)
def test_a_trim_that_is_killed_leaves_one_state_or_the_other(nights, monkeypatch, steps):
    left = steps

    def counted(method):
        def removing(self, *values):
            nonlocal left
            if not left and not values[0].startswith(LOCK):
                raise KeyboardInterrupt
            left -= not values[0].startswith(LOCK)
            return method(self, *values)

        return removing

    for name in ("write_manifest", "remove", "remove_file"):
        monkeypatch.setattr(Tables, name, counted(getattr(Tables, name)))
    with pytest.raises(KeyboardInterrupt):
        trim_history(Tables(nights), 90)
    monkeypatch.undo()

    assert (["3"] if (nights / TRIMMED).exists() else ["1", "2", "3"]) == ids(nights)
    for one in open_audits(nights):
        one.check_parts()
    write_audit(nights, [one_finding(partition=3)], audit_id="4", is_history=True)
    assert not (nights / TRIMMED).exists()
    trim_history(Tables(nights), 90)
    assert ["3", "4"] == ids(nights)


def test_a_reader_looks_again_where_audits_go_while_it_reads(nights, monkeypatch):
    def going(tables):
        monkeypatch.undo()
        trim_history(tables, 90)

    from kforensics.fleet import audit_tables

    real = audit_tables.every_audit

    def listed(tables):
        found = real(tables)
        going(tables)
        return found

    monkeypatch.setattr(audit_tables, "every_audit", listed)
    assert ["3"] == [one.audit_id for one in run_trend(FleetAsk(several_tables=(str(nights),))).body.lines]
    with pytest.raises(UsageError, match="has no audit 1"):
        run_report(FleetAsk(tables=str(nights), shown_audit="1"))


def test_what_is_no_history_is_refused(tmp_path, capsys):
    write_audit(tmp_path / "own", [one_finding()])
    assert 2 == run(["fleet", "history", str(tmp_path / "own"), "--keep", "90d"])
    assert 2 == run(["fleet", "history", str(tmp_path / "nothing"), "--keep", "90d"])
    assert 2 == run(["fleet", "history", str(tmp_path / "own"), "--keep", "0d"])
    assert "expected days, such as 90d or 13w" in capsys.readouterr().err
    assert not (tmp_path / "nothing").exists()
