"""Starts that lie in recordings: predicted from the snapshot before, and held against what the brokers logged and left."""

import pytest

from tests.started import compare


def check(root, starts, equal, unknown=0):
    compared = compare(root)
    assert compared.different == []
    assert (compared.starts, compared.total("equal"), compared.total("unknown")) == (starts, equal, unknown)
    return compared


def test_a_start_after_a_power_cut_does_what_was_predicted(incident):
    compared = check(incident("power-cut-2.8"), 1, 43)

    assert compared.counts["truncated"]["equal"] == 7


def test_strays_of_a_start_are_those_predicted(incident):
    check(incident("recreated-topic-4.x"), 1, 21)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "starts", "equal", "unknown"),
    [
        ("power-loss-4.x", 2, 82, 4),
        ("unclean-election-2.8", 6, 404, 34),
        ("silent-divergence-4.x", 1, 19, 0),
        ("reassignment-jbod-2.8", 1, 71, 2),
        ("disk-replaced-4.x", 3, 43, 20),
        ("fast-failover-1.1", 3, 73, 2),
        ("kip101-saves-0.11", 2, 14, 0),
    ],
)
def test_every_start_does_what_was_predicted(incident, name, starts, equal, unknown):
    check(incident(name), starts, equal, unknown)
