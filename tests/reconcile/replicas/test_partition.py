from dataclasses import dataclass, replace

import pytest

from kforensics.damage import Absent
from kforensics.evidence.model import GroupCommit
from kforensics.findings.rules.replicas import partition_findings
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.committed.judge import CommitJudge
from kforensics.reconcile.logs.divergence import agreed_until
from kforensics.reconcile.logs.loaded_log import load_log
from kforensics.reconcile.observed.facts import ClusterFacts, GivenBroker
from kforensics.reconcile.replicas.report import Verdict
from kforensics.units import OffsetRange, TopicPartition
from tests.builders.history import leadership
from tests.builders.logs import HERE, MemoryReader, batch, record, replica
from tests.builders.reports import report_on


@dataclass(frozen=True)
class Facts(ClusterFacts):
    states: tuple = ()
    groups: tuple = ()
    unclean: tuple = ()
    minimum: int = 1

    def leaderships(self, partition, topic_id):
        return self.states

    def commits(self, partition):
        return self.groups

    def unclean_restarts(self, broker_id):
        return self.unclean

    def needed_in_sync(self, topic):
        return self.minimum


def judge(*replicas, facts=None, records=None, **options):
    return report_on(replicas, reader=MemoryReader(records or {}), facts=facts, **options)


def report_of(report, broker):
    return next(r for r in report.replicas if r.view.replica.broker_id == broker)


OLD_LEADER = replica(1, [batch(0, 59, 0), batch(60, 102, 0, 7)], high_watermark=60)
NEW_LEADER = replica(2, [batch(0, 59, 0), batch(60, 84, 1, 8)], high_watermark=85)


def test_the_old_leader_is_cut_where_the_new_one_began():
    report = judge(OLD_LEADER, NEW_LEADER)

    assert 2 == report.leader.broker_id
    assert "inferred" == report.leader.source
    assert Verdict.WILL_TRUNCATE is report.verdict
    truncation = report_of(report, 1).truncation
    assert (60, 43) == (truncation.offset, truncation.counts.records)
    assert (0, 43, 0) == (truncation.counts.certain, truncation.counts.possible, truncation.counts.no)
    assert report_of(report, 2).truncation is None


def test_what_each_leader_would_lose():
    since_2_8 = (replace(one, topic_id="a") for one in (OLD_LEADER, NEW_LEADER))
    by_leader = {w.leader.replica.broker_id: w for w in judge(*since_2_8).what_if}

    assert (25, 0) == (by_leader[1].lost_certain, by_leader[1].lost_possible)
    assert (0, 43) == (by_leader[2].lost_certain, by_leader[2].lost_possible)


def test_a_leader_whose_directory_knows_nothing_of_its_term_was_copied_before_unless_it_stopped_in_order():
    facts = Facts(states=(leadership(1, 0, {1, 2}, 10), leadership(2, 1, {1, 2}, 20)))
    stopped = [replica(broker, [batch(0, 59, 0)], high_watermark=60) for broker in (1, 2)]
    running = [replace(one, clean_shutdown=False) for one in stopped]

    assert 1 == judge(*running, facts=facts).later_epoch
    assert Absent.NOT_APPLICABLE is judge(*stopped, facts=facts).later_epoch


def test_a_leader_alone_in_sync_committed_what_it_wrote():
    facts = Facts(
        states=(leadership(1, 0, {1, 2}, 10), leadership(1, 0, {1}, 20), leadership(2, 1, {2}, 30, unclean=True))
    )

    truncation = report_of(judge(OLD_LEADER, NEW_LEADER, facts=facts), 1).truncation

    assert (43, 0, 0) == (truncation.counts.certain, truncation.counts.possible, truncation.counts.no)
    assert "alone" in truncation.runs[0].reason


def test_a_leader_alone_commits_nothing_where_more_replicas_are_required():
    facts = Facts(states=(leadership(1, 0, {1}, 20), leadership(2, 1, {2}, 30, unclean=True)), minimum=2)

    assert 0 == report_of(judge(OLD_LEADER, NEW_LEADER, facts=facts), 1).truncation.counts.certain


def test_a_clean_successor_proves_that_the_tail_was_never_committed():
    facts = Facts(states=(leadership(1, 0, {1, 2}, 10), leadership(2, 1, {2}, 30)))

    truncation = report_of(judge(OLD_LEADER, NEW_LEADER, facts=facts), 1).truncation

    assert (0, 0, 43) == (truncation.counts.certain, truncation.counts.possible, truncation.counts.no)


def test_a_successor_that_lost_its_disk_cache_proves_nothing():
    facts = Facts(states=(leadership(1, 0, {1, 2}, 10), leadership(2, 1, {2}, 30)), unclean=(25,))

    assert 43 == report_of(judge(OLD_LEADER, NEW_LEADER, facts=facts), 1).truncation.counts.possible


def test_a_group_that_read_in_the_same_epoch_proves_commitment():
    commit = GroupCommit(TopicPartition("orders", 0), group="g", offset=70, leader_epoch=0, time_ms=0, citation=HERE)
    in_other_epoch = GroupCommit(
        TopicPartition("orders", 0), group="g", offset=80, leader_epoch=1, time_ms=0, citation=HERE
    )

    truncation = report_of(judge(OLD_LEADER, NEW_LEADER, facts=Facts(groups=(commit, in_other_epoch))), 1).truncation

    assert (10, 33, 0) == (truncation.counts.certain, truncation.counts.possible, truncation.counts.no)


def test_a_commit_marker_proves_the_transaction_before_it():
    old = replica(
        1,
        [
            batch(0, 59, 0),
            batch(60, 69, 0, 7, attributes=16, producer=5),
            batch(70, 70, 0, 9, attributes=48, producer=5),
            batch(71, 80, 0),
        ],
        high_watermark=60,
    )
    marker = record(70, b"\x00\x00\x00\x01", b"\x00" * 6, control=True, transactional=True, producer=5)

    truncation = report_of(judge(old, NEW_LEADER, records={"b1/t-0": [marker]}), 1).truncation

    assert (10, 10, 1) == (truncation.counts.certain, truncation.counts.possible, truncation.counts.markers)


def test_a_cut_to_the_high_watermark_leaves_divergence_behind():
    one = replica(1, [batch(0, 0, -1, 1, magic=1), batch(1, 1, -1, 2, magic=1)], high_watermark=2, checkpoint=())
    other = replica(2, [batch(0, 0, -1, 1, magic=1), batch(1, 1, -1, 3, magic=1)], high_watermark=2, checkpoint=())
    records = {
        "b1/t-0": [record(0, b"m0", magic=1), record(1, b"m1", magic=1)],
        "b2/t-0": [record(0, b"m0", magic=1), record(1, b"m2", magic=1)],
    }

    report = judge(one, other, records=records)

    assert Verdict.SILENT_DIVERGENCE is report.verdict
    assert {ProtocolName.HW} == {r.protocol.name for r in report.replicas if r.verdict is not Verdict.LEADER}
    assert 1 == next(r.divergence.offset for r in report.replicas if r.divergence)


def test_a_topic_of_another_id_is_never_compared():
    old = replica(1, [batch(0, 9, 0, 5)], topic_id="A" * 21 + "x")
    report = judge(
        old, replica(2, [batch(0, 3, 0, 6)], topic_id="B" * 22), replica(3, [batch(0, 3, 0, 6)], topic_id="B" * 22)
    )

    assert Verdict.DIFFERENT_TOPIC is report_of(report, 1).verdict
    assert Verdict.CONSISTENT is report_of(report, 3).verdict or Verdict.LEADER is report_of(report, 3).verdict
    assert all(r.divergence is None and r.truncation is None for r in report.replicas)


def test_a_high_watermark_past_every_end_is_loss():
    report = judge(replica(1, [batch(0, 58, 0)], high_watermark=72), replica(2, [batch(0, 58, 0)], high_watermark=59))

    assert Verdict.LOST is report.verdict
    assert 72 == report_of(report, 1).past_end.value


def test_a_future_replica_follows_its_own_broker():
    current = replica(1, [batch(0, 9, 0), batch(10, 19, 0)])
    moving = replica(1, [batch(0, 9, 0)], state="future")

    report = judge(current, moving, replica(2, [batch(0, 9, 0), batch(10, 19, 0)]))

    future = next(r for r in report.replicas if r.view.replica.state == "future")
    assert Verdict.BEHIND is future.verdict
    assert 1 == future.compared_with.replica.broker_id
    assert {1, 2} == {w.leader.replica.broker_id for w in report.what_if}


def test_deleted_and_stray_directories_are_set_aside():
    report = judge(replica(1, [batch(0, 9, 0)]), replica(2, [batch(0, 9, 0, 77)], state="deleted"))

    assert Verdict.LEADER is report.verdict
    assert ["deleted"] == [r.state for r in report.set_aside]


@pytest.mark.parametrize(
    ("known", "topic_id", "is_deleted"), [(True, "a", True), (False, "a", False), (True, Absent.UNKNOWN, False)]
)
def test_a_topic_that_the_metadata_no_longer_knows_was_deleted(known, topic_id, is_deleted):
    """A compacted metadata log holds no record of its removal; a log that is no voter's may be old."""

    class Forgotten(ClusterFacts):
        def has_metadata_log(self):
            return True

        def is_newest_metadata(self):
            return known

    report = judge(replica(1, [batch(0, 9, 0)], state="deleted", topic_id=topic_id), facts=Forgotten())

    assert is_deleted is report.is_deleted


@pytest.mark.parametrize("wanted", [1, 2])
def test_the_leader_can_be_given(wanted):
    report = judge(OLD_LEADER, NEW_LEADER, wanted_leader=wanted)

    assert (wanted, "option") == (report.leader.broker_id, report.leader.source)


def test_a_missing_checkpoint_is_rebuilt_from_batches():
    from dataclasses import replace

    report = judge(replace(OLD_LEADER, checkpoint_epochs=Absent.NOT_WRITTEN), NEW_LEADER)

    assert "batches" == report_of(report, 1).view.epochs_from
    assert 60 == report_of(report, 1).truncation.offset


def test_without_a_leader_the_next_of_the_isr_is_taken():
    facts = Facts(states=(leadership(1, 0, {1, 2}, 10), leadership(Absent.NOT_APPLICABLE, 1, {1}, 20)))

    leader = judge(OLD_LEADER, NEW_LEADER, facts=facts).leader

    assert (1, "metadata") == (leader.broker_id, leader.source)
    assert "names no leader" in leader.reason


@pytest.mark.parametrize(
    ("eligible", "options", "found"),
    [
        ({2}, {"is_stopped": True}, (2, True)),
        ({2}, {}, (1, True)),
        ({2, 3}, {"is_stopped": True}, (2, False)),
        ((), {"is_stopped": True}, (1, True)),
    ],
)
def test_a_leader_that_stopped_uncleanly_leaves_its_place_to_an_eligible_replica(eligible, options, found):
    """Broker 1 was alone in the ISR when it was killed and lost its tail; the controller takes it out of the ISR when it registers (KIP-966)."""
    short = replace(replica(1, [batch(0, 19, 0)]), clean_shutdown=False)
    state = replace(leadership(1, 0, {1}, 10), eligible=frozenset(eligible))
    report = judge(short, replica(2, [batch(0, 27, 0)], high_watermark=24), facts=Facts(states=(state,)), **options)

    assert found == (report.leader.broker_id, report.leader.is_known)
    clean = judge(replace(short, clean_shutdown=True), facts=Facts(states=(state,)), **options)
    assert 1 == clean.leader.broker_id


def test_a_leader_that_is_not_here_is_said():
    leader = judge(OLD_LEADER, NEW_LEADER, wanted_leader=77).leader

    assert (2, "inferred") == (leader.broker_id, leader.source)
    assert "broker 77 holds no replica here" in leader.reason


def test_a_high_watermark_of_a_log_without_a_common_offset_proves_nothing():
    behind = load_log(replica(1, [batch(0, 49, 0)], high_watermark=40))
    ahead = load_log(replica(2, [batch(60, 99, 1)], high_watermark=100))

    judge_of_both = CommitJudge(
        [behind, ahead], lambda one, other: agreed_until(one, other, None), ClusterFacts(), MemoryReader({})
    )
    runs = judge_of_both.runs(behind, OffsetRange(30, 49))

    assert [((30, 39), "certain"), ((40, 49), "possible")] == [(run.offsets, run.certainty) for run in runs]


def test_a_clean_successor_after_an_unclean_election_proves_nothing_of_terms_before_it():
    first = replica(1, [batch(0, 59, 0), batch(60, 102, 0, 7)], high_watermark=60)
    second = replica(2, [batch(0, 59, 0), batch(60, 79, 1, 8), batch(80, 84, 2, 9)], high_watermark=60)
    states = (
        leadership(1, 0, {1, 2}, 10),
        leadership(3, 1, {3}, 20, unclean=True),
        leadership(3, 1, {2, 3}, 30),
        leadership(2, 2, {2, 3}, 40),
    )

    truncation = report_of(judge(first, second, facts=Facts(states=states)), 1).truncation

    assert (0, 43, 0) == (truncation.counts.certain, truncation.counts.possible, truncation.counts.no)


WRITTEN_BY_1 = replica(1, [batch(0, 9, 0), batch(10, 14, 0, 7), batch(15, 29, 0)], high_watermark=30)
WRITTEN_BY_2 = replica(2, [batch(0, 9, 0), batch(10, 14, 0, 8), batch(15, 29, 0)], high_watermark=30)


def test_what_both_hold_again_behind_a_difference_is_held_by_none_alone():
    report = judge(WRITTEN_BY_1, WRITTEN_BY_2)

    assert [(1, OffsetRange(10, 14)), (2, OffsetRange(10, 14))] == [
        (one.view.replica.broker_id, one.offsets) for one in report.sole_holders
    ]
    assert [5, 5] == [one.lost_certain + one.lost_possible for one in report.what_if]


def test_a_high_watermark_proves_nothing_of_what_differs_below_what_was_copied_from_the_other():
    unknown = judge(WRITTEN_BY_1, WRITTEN_BY_2)
    led = judge(WRITTEN_BY_1, WRITTEN_BY_2, facts=Facts(states=(leadership(2, 0, {1, 2}),), minimum=2))

    assert [(0, 5), (0, 5)] == [(one.counts.certain, one.counts.possible) for one in unknown.sole_holders]
    assert [(1, 0, 5), (2, 5, 0)] == [
        (one.view.replica.broker_id, one.counts.certain, one.counts.possible) for one in led.sole_holders
    ]


def test_a_high_watermark_proves_what_no_later_record_of_the_other_follows_since_followers_compare_epochs():
    old = replica(1, [batch(0, 9, 0), batch(10, 14, 0, 7)], high_watermark=15)
    new = replica(2, [batch(0, 9, 0), batch(10, 19, 1, 8)], high_watermark=20)

    def certain(*replicas):
        return [(one.view.replica.broker_id, one.counts.certain) for one in judge(*replicas).sole_holders]

    assert [(1, 0), (2, 0)] == certain(old, new)  # up to 2.7 the one may have followed the other with what it held
    assert [(1, 5), (2, 10)] == certain(replace(old, topic_id="a"), replace(new, topic_id="a"))


def test_a_partition_of_other_brokers_than_the_emptied_one_it_is_assigned_to_is_judged():
    """Its former replicas are there, and no broker leads a log of it."""
    log = [batch(0, 59, 0)]
    state = replace(leadership(3, 1, {3}), replicas=(3,))
    given = {3: GivenBroker(broker_id=3, directory_ids=frozenset(), is_empty=True)}

    report = report_on([replica(1, log), replica(2, log)], facts=Facts(states=(state,)), given=given)

    assert () == report.what_if
    assert [Verdict.NOT_ASSIGNED] == [one.verdict for one in report.replicas]
    assert [(3, True)] == [(one.broker_id, one.is_electable) for one in report.emptied]


@dataclass(frozen=True)
class OldFacts(Facts):
    halts: bool | Absent = False

    def halts_out_of_range(self, topic):
        return self.halts


@pytest.mark.parametrize(
    ("halts", "offset", "is_stopped"), [(True, None, True), (False, 45, False), (Absent.UNKNOWN, 45, False)]
)
def test_a_broker_of_0_10_that_halts_keeps_what_only_it_holds(halts, offset, is_stopped):
    facts = OldFacts(states=(leadership(2, 1, {2}),), halts=halts)
    longer = replica(1, [batch(0, 44, -1, 1, magic=1), batch(45, 59, -1, 2, magic=1)], high_watermark=60)
    report = judge(longer, replica(2, [batch(0, 44, -1, 1, magic=1)], high_watermark=45), facts=facts)
    found = report_of(report, 1)

    assert offset == (None if found.truncation is None else found.truncation.offset)
    assert is_stopped == any(one.code == "KF218" for one in partition_findings(report))
    assert (Verdict.WILL_TRUNCATE is found.verdict) is not is_stopped


def test_an_assigned_replica_whose_directory_differs_in_case_only_is_not_gone():
    facts = Facts(states=(leadership(1, 0, (1, 2)),))
    given = GivenBroker(broker_id=2, directory_ids=frozenset(), is_empty=False)
    logs = [replica(1, [batch(0, 9, 0)])]

    assert [2] == [one.broker_id for one in judge(*logs, facts=facts, given={2: given}).emptied]
    same_disk = replace(given, other_case=frozenset({logs[0].topic_partition}))
    report = judge(*logs, facts=facts, given={2: same_disk})
    assert ((), (2,)) == (report.emptied, report.missing_replicas)
