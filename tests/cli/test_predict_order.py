"""`kforensics predict --order`: which broker of a stopped cluster to start first, and which elections that needs."""

import json
import re
import shutil

import pytest

from kforensics.cli.app import run
from kforensics.commands.predicting.cluster import Harm, ordered
from kforensics.damage import Absent
from tests.builders.directories import copied
from tests.schemas import reason


@pytest.fixture
def cluster(fixtures, tmp_path):
    """Three brokers of which one was alone in the ISR at the end."""
    copy = tmp_path / "cluster"
    copied(fixtures / "unclean-election", copy)
    return copy


def order(capsys, *paths):
    run(["predict", *map(str, paths), "--order", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    return document["order"], document["answer"]


def test_the_brokers_come_in_the_order_of_what_the_others_would_discard(cluster, capsys):
    found, answer = order(capsys, cluster)

    assert sorted(found["brokers"]) == [1, 2, 3]
    costs = {one["broker_id"]: sum(one["committed"].values()) for one in found["firsts"]}
    leaders = {one["leader"] for one in found["elections"]}
    assert leaders <= {1, 2, 3}
    best = {(one["topic"], one["partition"]): sum(one["committed"].values()) for one in found["elections"]}
    assert sum(best.values()) <= min(costs.values()), "no single broker does better than the best leader of each"
    unclean = [
        {"topic": one["topic"], "partition": one["partition"]} for one in found["elections"] if one["unclean"] is True
    ]
    assert found["elections_json"] == {"partitions": unclean}
    by_leader = {one["broker_id"]: one["elections_json"]["partitions"] for one in found["elections_by_leader"]}
    assert sorted(map(str, unclean)) == sorted(str(one) for ones in by_leader.values() for one in ones)
    assert all(
        one["leader"] in by_leader
        and {"topic": one["topic"], "partition": one["partition"]} in by_leader[one["leader"]]
        for one in found["elections"]
        if one["unclean"] is True
    )
    assert any(f"Start broker {found['brokers'][0]} first" in line for line in answer["now"])
    (compared,) = [line for line in answer["now"] if line.startswith("In this order followers discard")]
    assert f"followers discard {sum(best.values())} record" in compared
    assert f"the worst, it is {max(costs.values())} (" in compared


def test_a_broker_that_was_not_given_is_said(cluster, capsys):
    shutil.rmtree(cluster / "broker-3")

    found, answer = order(capsys, cluster)

    assert 3 in found["missing"]
    assert any("the order may change" in line for line in answer["unknown"])
    assert answer["state"] != "starts-and-repairs"
    assert "What broker 3 holds is not known." in answer["headline"]
    assert answer["now"][0 if answer["state"] == "unknown" else 1].startswith("Give the directories of broker 3 before")


def test_what_followers_discard_in_any_order_is_in_the_first_line(incident, capsys):
    found, answer = order(capsys, incident("unclean-election-4.x") / "snapshots" / "03-old-leader-down-live")

    assert sum(one["committed"]["certain"] for one in found["elections"]) == 38
    assert answer["state"] == "loses"
    assert answer["headline"].startswith(
        "In any order of starts, followers discard at least 38 records (38 committed). "
    )
    assert answer["now"][0].startswith("Copy the log directories")


def test_one_broker_has_no_order(cluster, capsys):
    assert run(["predict", str(cluster / "broker-1"), "--order"]) == 2
    assert "--order" in capsys.readouterr().err


def test_a_broker_that_would_be_elected_and_discard_records_starts_behind_the_one_that_holds_them():
    unclean = Harm(best=2, more={1: 4, 2: 0, 3: 3}, electable=frozenset({1}))
    clean = Harm(best=1, more={1: 0, 2: 50, 3: 60}, electable=frozenset({1}))

    assert ordered([1, 2, 3], [clean]) == [1, 2, 3]
    assert ordered([1, 2, 3], [unclean, clean]) == [2, 1, 3]
    # Where no metadata show who may be elected, the one whose election would discard more waits.
    unknown = [one._replace(electable=Absent.UNKNOWN) for one in (unclean, clean)]
    assert ordered([1, 2, 3], unknown) == [1, 2, 3]


def test_elections_that_may_be_unclean_are_in_the_file_too(cluster, capsys):
    for broker in (1, 2, 3):
        shutil.rmtree(cluster / f"broker-{broker}" / "__cluster_metadata-0", ignore_errors=True)
    shutil.rmtree(cluster / "controller-100", ignore_errors=True)

    found, answer = order(capsys, cluster)

    assert found["elections"]
    assert {reason(one, "unclean") for one in found["elections"]} == {"unknown"}
    assert len(found["elections_json"]["partitions"]) == len(found["elections"])
    assert any("may need an unclean election" in line for line in answer["now"])


def test_a_node_at_two_moments_is_no_calm_start_and_no_other_holder(incident, capsys):
    snapshots = incident("power-loss-4.x") / "snapshots"
    then, broken, final = (
        snapshots / one / "broker-1"
        for one in ("02-killed-before-page-cache-loss", "03-after-power-loss-before-restart", "99-final")
    )
    run(["predict", str(final), str(then), "--format", "json"])
    calm = json.loads(capsys.readouterr().out)["answer"]
    run(["predict", str(broken), str(then), "--format", "json"])
    loses = json.loads(capsys.readouterr().out)["answer"]

    assert calm["state"] == "unknown"
    assert any("Which of these is the state that is started" in words for words in calm["unknown"])
    assert f"Keep the copy of broker 1 at {then}, which holds what ledger-2 of broker 1 discards." in loses["now"]


def test_a_controller_without_a_version_on_record_gives_the_brokers_none(coordinators, capsys):
    run(["predict", str(coordinators("transactions-3.5") / "snapshots" / "99-final"), "--format", "json"])
    document = json.loads(capsys.readouterr().out)

    assert document["kafka"].startswith("3.5.")
    assert document["kafka_source"] == "metadata-log"
    assert f"Kafka {document['kafka']} " in document["answer"]["headline"]
    assert any(
        re.search(r"controller 100 is started with: Kafka .* is assumed", one) for one in document["answer"]["unknown"]
    )
