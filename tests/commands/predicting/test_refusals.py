"""A broker that does not start truncates nothing before it is mended: comparisons and predictions give one answer."""

import shutil

import pytest

from kforensics.ask.model import Ask
from kforensics.commands import diff, predict
from kforensics.protocol.loading.starts import StartResult
from tests.conftest import FIXTURES


@pytest.fixture
def brokers(tmp_path):
    """Brokers of which one is to truncate, and has an epoch that is no number."""
    root = tmp_path / "cluster"
    shutil.copytree(FIXTURES / "unclean-election", root)
    (root / "broker-1" / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\nx 0\n")
    return root


def test_what_is_truncated_waits_for_a_start_that_fails(brokers):
    compared = diff.run(Ask(paths=(brokers,), jobs=1)).answer
    started = predict.run(Ask(paths=(brokers,), jobs=1))

    (first,) = {one.exception for one in started.body.starts if one.result is StartResult.EXITS}
    assert first == "NumberFormatException"
    assert "once started, will discard" in compared.headline
    assert f"does not start as it is (Kafka 4.1.0, {first}: orders-0:" in compared.headline
    assert compared.headline in started.answer.headline


def test_a_broker_that_starts_truncates_at_once():
    compared = diff.run(Ask(paths=(FIXTURES / "unclean-election",), jobs=1)).answer

    assert "once started" not in compared.headline
    assert "does not start" not in compared.headline
