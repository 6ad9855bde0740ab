"""`groups` and `transactions` over captures: what they say of the directories, and what a capture does not hold."""

import shutil

import pytest

from kforensics.ask.model import Ask
from kforensics.commands.capture import run as capture
from kforensics.commands.transactions import run as transactions
from kforensics.formats.index import ProducerEntry, encode_producers
from tests.builders.coordinators import NOW, batch, marker
from tests.builders.directories import copied
from tests.captures import differences, document, nodes_of

OPTIONS = {"groups": ("--history",), "transactions": ("--all",)}


def captured(snapshot, folder, **options):
    folder.mkdir()
    for node in nodes_of(snapshot):
        capture(Ask(paths=(node,), out=folder / f"{node.name}.kfc", jobs=1, **options))
    return folder


@pytest.mark.parametrize(
    ("command", "name", "moment", "expected"),
    [
        ("transactions", "transactions-3.9", "03-prepared", 1),
        ("groups", "groups-4.1", "99-final", 1),
        ("groups", "share-4.1", "99-final", 0),
    ],
)
@pytest.mark.some(1)
def test_captures_of_every_node_say_the_same(coordinators, tmp_path, command, name, moment, expected):
    snapshot = coordinators(name) / "snapshots" / moment

    of_directories, code = document(command, [snapshot], *OPTIONS[command])
    of_captures, its_code = document(command, [captured(snapshot, tmp_path / "kfc")], *OPTIONS[command])

    assert code == its_code == expected
    assert list(differences(of_directories, of_captures)) == []


@pytest.mark.parametrize(("command", "name"), [("transactions", "transactions-3.9"), ("groups", "groups-4.1")])
@pytest.mark.slow
def test_records_that_stayed_on_the_broker_are_named_and_leave_the_state_unknown(coordinators, tmp_path, command, name):
    moment = "01-before-live" if command == "groups" else "03-prepared"
    snapshot = coordinators(name) / "snapshots" / moment
    folder = captured(snapshot, tmp_path / "kfc", redact_key=b"k" * 32)

    found, code = document(command, [folder], *OPTIONS[command])

    # Of a partition with an open transaction one broker alone holds committed records, which is known and graver.
    assert (found["answer"]["state"], code) == (("at-risk", 1) if command == "transactions" else ("unknown", 3))
    topic = "__consumer_offsets" if command == "groups" else "__transaction_state"
    words = {one["message"].partition(": read ")[0] for one in found["problems"] if topic in one["path"]}
    assert words == {"the capture does not hold its bytes"}
    verdicts = {each["verdict"] for one in found.get("partitions", ()) for each in one["open"]}
    assert verdicts == ({"unknown"} if command == "transactions" else set())
    assert found.get("commits", []) == []


def log_dir(folder, *, with_snapshot):
    """A partition whose last leader epochs begin far above its first transactions, of which one is open."""
    log = folder / "orders-0"
    log.mkdir(parents=True)
    (folder / "meta.properties").write_text("version=0\nbroker.id=1\n")
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (folder / name).write_text("0\n1\norders 0 300002\n")
    (log / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n1 299000\n2 299500\n")
    records = [(b"k", b"v")]
    content = batch(0, records, producer=7, transactional=True) + batch(1, records, producer=8, transactional=True)
    (log / f"{0:020d}.log").write_bytes(content)
    later = batch(300_000, records, epoch=2) + marker(300_001, 8, commits=True, epoch=2)
    (log / f"{299_500:020d}.log").write_bytes(later)
    if with_snapshot:
        entries = [
            ProducerEntry(
                producer_id=producer,
                producer_epoch=0,
                last_sequence=0,
                last_offset=first,
                offset_delta=0,
                timestamp=NOW,
                coordinator_epoch=-1,
                current_transaction_first_offset=first,
            )
            for producer, first in ((7, 0), (8, 1))
        ]
        (log / f"{299_500:020d}.snapshot").write_bytes(encode_producers(entries))
    return folder


@pytest.mark.parametrize("with_snapshot", [True, False])
def test_what_is_open_below_the_captured_batches_is_in_a_producer_snapshot_or_unknown(tmp_path, with_snapshot):
    folder = log_dir(tmp_path / "data", with_snapshot=with_snapshot)
    capture(Ask(paths=(folder,), out=tmp_path / "one.kfc", jobs=1))

    (whole,) = transactions(Ask(paths=(folder,), all=True, jobs=1)).body.partitions
    result = transactions(Ask(paths=(tmp_path / "one.kfc",), all=True, jobs=1))

    (replica,) = result.body.partitions
    assert replica.replica.read_from > 1
    # The marker of producer 8 ends what it wrote below: nothing is torn.
    assert (replica.torn, replica.replica.lone) == ((), ())
    wanted = [(7, 0)] if with_snapshot else []
    assert [(one.open.producer_id, one.open.first_offset) for one in replica.open] == wanted
    assert [(one.open.producer_id, one.open.first_offset) for one in whole.open] == [(7, 0)]
    assert result.answer.state == "unknown"
    named = [one.path for one in result.problems]
    assert named == ([] if with_snapshot else [f"orders-0/{0:020d}.log"])


def test_a_follower_alone_is_not_judged_as_the_leader(coordinators, tmp_path):
    snapshot = coordinators("transactions-3.9") / "snapshots" / "03-prepared"
    whole = transactions(Ask(paths=(snapshot,), jobs=1))
    leaders = {
        str(one.topic_partition): one.replica.place.state.broker_id for one in whole.body.partitions if one.leads
    }
    copied(snapshot, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / f"broker-{leaders['orders-1']}")

    result = transactions(Ask(paths=(tmp_path / "copy",), jobs=1))

    ((one,),) = (each.open for each in result.body.partitions if str(each.topic_partition) == "orders-1")
    assert one.judgement.verdict == "unknown"
    assert f"broker {leaders['orders-1']} leads orders-1" in one.judgement.reason
    assert "abort" not in " ".join(each.to_end_it for each in result.body.endings.values())
