"""`kforensics predict --ways-out`: what starts come to under changes that are played and not made."""

import json

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied
from tests.oracle.loading.made import Case, edited_files, write_files

LOG, INDEX = "00000000000000000000.log", "00000000000000000000.index"


@pytest.fixture
def broker(fixtures, tmp_path):
    """A copy of a recorded broker that was stopped cleanly, to be edited."""
    copy = tmp_path / "cluster"
    copied(fixtures / "unclean-election", copy)
    for path in copy.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (copy / "broker-1" / ".kafka_cleanshutdown").write_text("")
    return copy / "broker-1"


def ways_out(capsys, *paths, code=None):
    before = {path: path.stat().st_mtime_ns for root in paths for path in root.rglob("*")}
    got = run(["predict", *map(str, paths), "--kafka", "4.1.0", "--ways-out", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert code is None or got == code
    assert {path: path.stat().st_mtime_ns for root in paths for path in root.rglob("*")} == before
    return [way for way in document["ways_out"] if way["input"] == 0]


def kinds(way):
    return tuple(change["kind"] for change in way["changes"])


def row(ways, *wanted):
    return next(way for way in ways if kinds(way) == wanted)


def test_zeros_behind_a_clean_log_leave_several_ways_that_lose_nothing(broker, capsys):
    with (broker / "orders-0" / LOG).open("ab") as log:
        log.write(bytes(100))

    ways = ways_out(capsys, broker, code=1)

    as_it_is, without_marker = row(ways), row(ways, "marker-away")
    assert (as_it_is["outcome"], as_it_is["starts"], as_it_is["records_lost"]) == ("starts", 2, 0)
    assert (without_marker["outcome"], without_marker["starts"]) == ("starts", 1)
    assert (ways[0]["outcome"], ways[0]["starts"], ways[0]["records_lost"], ways[0]["holes"]) == ("starts", 1, 0, 0)
    aside = row(ways, "directory-away")
    assert (aside["records_lost"], aside["only_here"]) == (103, 103)
    assert aside["rank"] > without_marker["rank"]
    assert all(way["assumed"][0] == "that a copy of the log directories was made first" for way in ways)
    assert [way["rank"] for way in ways] == list(range(1, len(ways) + 1))


def test_a_flipped_bit_in_a_log_that_is_scanned_is_ranked_by_who_else_holds_it(broker, capsys):
    cluster = broker.parent
    (broker / ".kafka_cleanshutdown").unlink()
    log = broker / "orders-1" / LOG
    data = bytearray(log.read_bytes())
    data[9000] ^= 4
    log.write_bytes(data)

    ways = ways_out(capsys, *(cluster / f"broker-{at}" for at in (1, 2, 3)), code=1)

    as_it_is, with_marker = row(ways), row(ways, "marker-there")
    assert as_it_is["records_lost"] > 0
    assert (with_marker["records_lost"], with_marker["bytes_scanned"]) == (0, 0)
    assert any("without recovery a broken end stays" in words for words in with_marker["assumed"])
    aside = row(ways, "directory-away")
    assert aside["records_lost"] >= as_it_is["records_lost"]


def test_an_index_that_is_removed_from_a_damaged_segment_makes_a_hole(tmp_path, capsys):
    log_dir = tmp_path / "data"
    case = Case(batches=[[1, 40, 0, -1, "plain", 1000]] * 12, rolls=[2, 4, 6, 8, 10], recovery_point=12)
    first = "00000000000000000002"
    case.edits = [["flip", f"{first}.log", 120, 3], ["flip", "00000000000000000010.snapshot", 2, 1]]
    write_files(edited_files(case), log_dir / "orders-0")
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=M\ndirectory.id=" + "B" * 22 + "\n")
    (log_dir / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 12\n")
    (log_dir / ".kafka_cleanshutdown").write_text("")
    with (log_dir / "orders-0" / "00000000000000000010.log").open("ab") as log:
        log.write(bytes(40))

    ways = ways_out(capsys, log_dir, code=1)

    assert row(ways)["holes"] == 0
    emptied = row(ways, "checkpoint-away")
    assert emptied["records_lost"] > 0, "everything is scanned from 0 on, and truncated at the flipped bit"


def test_epochs_that_a_scan_enters_wrongly_are_counted(tmp_path, capsys):
    log_dir = tmp_path / "data"
    batches = [[1, 40, 0 if at < 6 else 1, -1, "plain", 1000] for at in range(12)]
    case = Case(batches=batches, rolls=[2, 4, 6, 8, 10], clean=False, recovery_point=12)
    case.edits = [["write", "leader-epoch-checkpoint", b"0\n2\n0 0\n".hex()]]
    write_files(edited_files(case), log_dir / "orders-0")
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=M\ndirectory.id=" + "B" * 22 + "\n")
    (log_dir / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 12\n")

    ways = ways_out(capsys, log_dir, code=1)

    assert row(ways)["outcome"] == "exits"
    away = row(ways, "epoch-file-away")
    assert (away["outcome"], away["records_lost"], away["epochs_wrong"]) == ("starts", 0, 1), "1 10 instead of 1 6"
    both = next(way for way in ways if set(kinds(way)) == {"epoch-file-away", "checkpoint-away"})
    assert (both["outcome"], both["records_lost"], both["epochs_wrong"]) == ("starts", 0, 0), "all is scanned"
    assert both["rank"] < away["rank"]


@pytest.mark.slow
def test_one_of_two_directories_of_a_partition_is_chosen(broker, capsys):
    second = broker.parent / "second"
    second.mkdir()
    meta = (broker / "meta.properties").read_text()
    lines = [f"directory.id={'B' * 22}" if line.startswith("directory.id") else line for line in meta.splitlines()]
    (second / "meta.properties").write_text("\n".join(lines) + "\n")
    (second / ".kafka_cleanshutdown").write_text("")
    copied(broker / "orders-0", second / "orders-0")

    ways = ways_out(capsys, broker, second)

    assert row(ways)["reason"].startswith("Duplicate log directories for orders-0")
    chosen = [way for way in ways if kinds(way) == ("directory-away",)]
    assert {way["outcome"] for way in chosen} == {"starts"}
    assert {tuple(change["paths"]) for way in chosen for change in way["changes"]} == {("orders-0",)}
    run(["predict", str(broker), str(second), "--format", "json"])
    steps = json.loads(capsys.readouterr().out)["answer"]["now"]
    (step,) = [
        one for one in steps if one.startswith("Take one directory of 1 partition out of the log directories of")
    ]
    assert f"{second}/orders-0 ends at " in step


def test_nothing_is_tried_where_nothing_is_wrong(broker, capsys):
    ways = ways_out(capsys, broker)

    assert [kinds(way) for way in ways] == [()]


def test_the_screen_shows_the_ways_with_what_they_assume(broker, capsys):
    (broker / "lost+found").mkdir()

    assert run(["predict", str(broker), "--ways-out"]) == 1

    out = " ".join(capsys.readouterr().out.split())
    assert "ways out of broker 1" in out
    assert "1 lost+found moved away starts, loading discards no record" in out
    assert "assumes that a copy of the log directories was made first" in out


def test_a_batch_that_fails_its_checksum_is_held_by_none(broker, tmp_path, capsys):
    with (broker / "orders-0" / LOG).open("ab") as log:
        log.write(bytes(100))
    other = copied(broker, tmp_path / "other")
    settings = other / "meta.properties"
    settings.write_text(settings.read_text().replace("node.id=1", "node.id=2"))
    held = row(ways_out(capsys, broker, other), "directory-away")
    path = other / "orders-0" / LOG
    data = bytearray(path.read_bytes())
    data[100] ^= 1  # in the records of the first batch
    path.write_bytes(data)
    damaged = row(ways_out(capsys, broker, other), "directory-away")

    assert (held["records_lost"], held["only_here"]) == (103, 0)
    assert damaged["records_lost"] == 103
    assert 0 < damaged["only_here"] < 103


@pytest.mark.slow
def test_what_another_broker_discards_too_is_held_by_none(broker, capsys):
    nodes = [broker.parent / f"broker-{at}" for at in (1, 2, 3)]
    found = []
    for damaged in (nodes[:1], nodes):
        for node in damaged:
            (node / ".kafka_cleanshutdown").unlink(missing_ok=True)
            log = node / "orders-1" / LOG
            data = bytearray((broker / "orders-1" / LOG).read_bytes() if node != broker else log.read_bytes())
            if node == broker and len(damaged) == 1:
                data[9000] ^= 4
            log.write_bytes(data)
            for index in (node / "orders-1").glob("*index"):
                index.write_bytes((broker / "orders-1" / index.name).read_bytes())
        found.append(row(ways_out(capsys, *nodes, code=1)))

    alone, together = found
    assert 0 < alone["only_here"] < alone["records_lost"]
    assert together["only_here"] == together["records_lost"] == alone["records_lost"]


def test_records_of_a_deleted_topic_are_no_loss_of_any_way(incident, capsys):
    place = incident("operator-actions-2.8")

    run(["predict", str(place / "snapshots" / "99-final"), str(place / "logs"), "--ways-out", "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    assert "discards 20 records of 1 log: " in document["answer"]["headline"]
    assert sum(way["records_lost"] for way in document["ways_out"] if not way["changes"]) == 20
