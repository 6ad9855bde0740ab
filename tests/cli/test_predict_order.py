"""`kforensics predict --order`: which broker of a stopped cluster to start first, and which elections that needs."""

import json
import shutil

import pytest

from kforensics.cli.app import run
from tests.builders.directories import copied


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
    assert any(f"Start broker {found['brokers'][0]} first" in line for line in answer["now"])


def test_a_broker_that_was_not_given_is_said(cluster, capsys):
    shutil.rmtree(cluster / "broker-3")

    found, answer = order(capsys, cluster)

    assert 3 in found["missing"]
    assert any("the order may change" in line for line in answer["unknown"])


def test_one_broker_has_no_order(cluster, capsys):
    assert run(["predict", str(cluster / "broker-1"), "--order"]) == 2
    assert "--order" in capsys.readouterr().err
