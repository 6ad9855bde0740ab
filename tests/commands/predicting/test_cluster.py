"""What several nodes do to each other: their followers are compared with what was read for the starts."""

from kforensics.ask.model import Ask
from kforensics.case import cluster as known
from kforensics.commands import comparing, predict
from kforensics.commands.predicting import cluster
from kforensics.protocol.truncation import ProtocolName
from tests.conftest import FIXTURES

BROKERS = (FIXTURES / "unclean-election",)


def _not_again(*_, **__):
    raise AssertionError("what was read is read again")


def test_inputs_and_metadata_are_read_once(monkeypatch):
    monkeypatch.setattr(known, "_read_metadata_logs", _not_again)
    monkeypatch.setattr(cluster, "find_inputs", _not_again)

    found = predict.run(Ask(paths=BROKERS, jobs=1))

    assert "56 committed records" in found.answer.headline


def test_followers_truncate_by_the_version_that_is_started(monkeypatch):
    hints = []

    def compared(case, **options):
        hints.append(known.cluster_of(case).protocol_hints)
        return compare(case, **options)

    compare = comparing.compare
    monkeypatch.setattr(comparing, "compare", compared)
    predict.run(Ask(paths=BROKERS, jobs=1, kafka="4.1.0"))
    predict.run(Ask(paths=BROKERS, jobs=1))

    assert set(hints[0].values()) == {ProtocolName.KIP_595}
    assert len(hints[0]) > 1
    assert hints[1] == {}
