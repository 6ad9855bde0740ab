"""A last stable offset that is stuck is part of the answer of `explain`, be anything lost or not."""

import pytest

from tests.builders.explained import explain


@pytest.mark.parametrize("name", ["transactions-2.8", "transactions-4.1"])
def test_a_hanging_transaction_is_named_where_nothing_is_lost(name, coordinators, capsys):
    moment = coordinators(name) / "snapshots" / "02-hanging-live"

    document, code = explain(capsys, moment, "--topic", "orders")
    answer = document["answer"]
    (partition,) = (one for one in document["partitions"] if one["hanging_transactions"])
    (hanging,) = partition["hanging_transactions"]

    assert {"nothing-lost": 1, "unknown": 3}[answer["state"]] == code
    assert [] == document["losses"]
    assert answer["headline"].endswith("stuck in orders-1.")
    assert ("orders", 1, 19, "hanging") == (
        partition["topic"],
        partition["partition"],
        hanging["last_stable_offset"],
        hanging["verdict"],
    )
    assert any("get nothing from offset 19 on" in one for one in answer["tell"])
    assert ["KF308"] == [one["code"] for one in document["findings"] if one["severity"] == "error"]


def test_a_transaction_in_time_holds_nobody_up(coordinators, capsys):
    moment = coordinators("transactions-4.1") / "snapshots" / "01-none-open-live"

    document, _ = explain(capsys, moment)

    assert not any(one["hanging_transactions"] for one in document["partitions"])
    assert "read_committed" not in " ".join([document["answer"]["headline"], *document["answer"]["tell"]])
