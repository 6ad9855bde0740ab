"""`kforensics metadata` on recorded clusters."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kforensics.cli.app import run

Incident = Callable[[str], Path]
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def metadata(capsys: pytest.CaptureFixture[str]) -> Call:
    def call(*arguments: object) -> tuple[int, str, str]:
        code = run(["metadata", *map(str, arguments)])
        captured = capsys.readouterr()
        return int(code), captured.out, captured.err

    return call


@pytest.fixture
def cluster(incident: Incident) -> Path:
    return incident("unclean-election-4.x") / "snapshots/99-final"


def test_history_of_a_partition(cluster: Path, metadata: Call, untouched: Callable[..., Any]) -> None:
    with untouched(cluster / "controller-100"):
        code, out, err = metadata(cluster, "--topic", "orders", "--partition", 0)

    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert " ".join(lines[:2]) == (
        "Metadata log of node 100 (the newest of 4 logs): offsets 0..159, leader epoch 1, metadata.version 27."
    )
    election = next(line for line in lines if "unclean-election" in line)
    assert election.split() == (
        [
            "82",
            "2026-11-21T06:40:07.719Z",
            "unclean-election",
            "orders-0",
            "leader",
            "1",
            "->",
            "2,",
            "epoch",
            "1;",
            "the",
            "ISR",
            "was",
            "[1]",
        ]
    )
    assert not any("orders-1" in line for line in lines)


def test_everything(cluster: Path, metadata: Call) -> None:
    code, out, _ = metadata(cluster, "-v")
    assert code == 0
    assert "controller-change" in out
    assert "snapshot" not in out
    assert "topic orders: min.insync.replicas = 1" in out


def test_state_at_an_offset(cluster: Path, metadata: Call) -> None:
    code, out, _ = metadata(cluster / "controller-100", "--at", 81)
    assert code == 0
    assert next(line for line in out.splitlines() if "orders-0" in line).split()[1:3] == ["leader", "1"]
    assert "unclean-election" not in out
    code, out, _ = metadata(cluster / "controller-100", "--at", 82, "--format", "json")
    document = json.loads(out)
    orders = next(topic for topic in document["state"]["topics"] if topic["name"] == "orders")
    assert (orders["partitions"][0]["leader"], orders["partitions"][0]["leader_recovery_state"]) == (2, "recovering")
    assert max(event["offset"] for event in document["events"]) == 82


def test_document(cluster: Path, metadata: Call) -> None:
    code, out, _ = metadata(cluster, "--topic", "orders", "--partition", 1, "--format", "json")
    document = json.loads(out)
    assert (code, document["exit_code"], document["schema"]) == (0, 0, "kforensics/metadata/2")
    assert [log["node_id"] for log in document["logs"]] == [1, 2, 3, 100]
    assert [topic["name"] for topic in document["state"]["topics"]] == ["orders"]
    assert [one["partition"] for one in document["state"]["topics"][0]["partitions"]] == [1]
    unclean = [event for event in document["events"] if event["kind"] == "unclean-election"]
    assert [(event["leader_epoch"], event["broker_id"], event["offset"]) for event in unclean] == [(3, 2, 83)]
    assert unclean[0]["citations"][0]["path"] == "__cluster_metadata-0/00000000000000000000.log"
    assert unclean[0]["citations"][0]["length"] > 61


def test_history_of_a_broker(cluster: Path, metadata: Call) -> None:
    code, out, _ = metadata(cluster / "controller-100", "--broker", 1, "--format", "jsonl")
    kinds = [json.loads(line)["kind"] for line in out.splitlines()]
    assert code == 0
    assert kinds[0] == "broker-registered"
    assert "broker-fenced" in kinds
    assert "feature-change" not in kinds


def test_controllers_that_disagree(incident: Incident, metadata: Call) -> None:
    code, out, _ = metadata(incident("kraft-quorum-3x") / "snapshots/03-old-controller-down-live")
    assert code == 0  # a majority holds other records there: what one node holds alone was never committed
    assert "1 node of 5 holds records that the newest log does not hold" in out
    assert "88..92 differ (leader epoch 2)" in out
    assert "A majority of the voters 101, 102 and 103 holds everything below 98." in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--partition", 0), 2),
        (("--topic", "nothing"), 2),
        (("--topic", "orders", "--partition", 99), 2),
        (("--broker", 77), 2),
        (("--at", 100_000), 2),
    ],
)
def test_questions_without_an_answer(cluster: Path, metadata: Call, arguments: tuple[object, ...], code: int) -> None:
    found, out, err = metadata(cluster / "controller-100", *arguments)
    assert (found, out) == (code, "")
    assert err.startswith("kforensics: ")


def test_no_metadata_log(incident: Incident, metadata: Call) -> None:
    code, out, err = metadata(incident("hw-loss-0.10") / "snapshots/99-final")
    assert (code, out) == (3, "")
    assert "no KRaft metadata log" in err


def test_damage_makes_the_look_incomplete(cluster: Path, metadata: Call, tmp_path: Path) -> None:
    target = tmp_path / "__cluster_metadata-0"
    target.mkdir()
    data = bytearray((cluster / "controller-100/__cluster_metadata-0/00000000000000000000.log").read_bytes())
    data[4000] ^= 0x10
    (target / "00000000000000000000.log").write_bytes(data)
    code, out, err = metadata(target)
    assert code == 3
    assert "crc at byte" in err
    assert "orders-0" in out


def test_the_end_that_no_majority_holds_is_spoken_of_once(incident: Incident, metadata: Call) -> None:
    _, out, _ = metadata(incident("kraft-quorum-3x") / "snapshots/99-final")

    screen = " ".join(out.split())
    assert (
        "Whether offset 179 was ever committed: no majority of the voters holds it in the logs given, which need not be of one moment."
        in screen
    )
    assert "can't be shown to be committed" not in screen
    assert "179..179" not in screen
