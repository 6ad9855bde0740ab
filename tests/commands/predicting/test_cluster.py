"""What several nodes do to each other: their followers are compared with what was read for the starts."""

import pickle
from typing import Any

from kforensics.ask.model import Ask
from kforensics.case import cluster as known
from kforensics.commands import comparing, diff, predict
from kforensics.commands.predicting import cluster
from kforensics.commands.predicting.log_starts import Conditions, LogStarts
from kforensics.damage import Absent
from kforensics.evidence.model import NO_DIGESTS
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import KafkaVersion
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


def test_replicas_share_what_their_logs_have_in_common():
    found = predict.run(Ask(paths=BROKERS, jobs=1))
    held = [one for log in found.body.logs for one in (log.before, log.after, log.files, log.due)]

    assert len({id(one) for one in held}) == len(set(held)) < len(held)


def test_a_log_that_another_process_described_shares_what_others_have():
    logs = predict.run(Ask(paths=BROKERS, jobs=1)).body.logs
    conditions: Any = None
    starts = LogStarts(conditions, Conditions(version=KafkaVersion(4, 1), now_ms=0), conditions, None, {})
    here = [starts.shared(one) for one in logs]
    sent = [starts.shared(one) for one in pickle.loads(pickle.dumps(logs))]

    assert sent == here == list(logs)
    assert all(one.files is other.files and one.before is other.before for one, other in zip(here, sent, strict=True))


def test_reports_are_kept_without_tables_and_name_each_segment_once():
    results = diff.run(Ask(paths=BROKERS, jobs=1)).body.partitions
    logs = [one.view for each in results if each.report is not None for one in each.report.replicas]
    segments = [one for log in logs for one in log.segments]

    assert segments
    assert all(one.digests is NO_DIGESTS and one.batches is Absent.NOT_WRITTEN for one in segments)
    assert all(any(one is other for other in log.replica.segments) for log in logs for one in log.segments)
