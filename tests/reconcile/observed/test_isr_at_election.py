"""A clean election proves only with the ISR of that moment: the last one that lines of brokers name is not it where a KRaft controller changed it since."""

import pytest

from kforensics.damage import Absent
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import KafkaVersion
from kforensics.reconcile.committed.judge import CommitJudge
from kforensics.reconcile.history.causes import CauseEvidence, CauseName, cause_of
from kforensics.reconcile.history.topic_incarnations import Incarnation
from kforensics.reconcile.logs.divergence import agreed_until
from kforensics.reconcile.logs.loaded_log import load_log
from kforensics.reconcile.observed.broker_log_facts import facts_from_logs
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.observed.leadership import account_of
from tests.builders.history import PARTITION, logged_events, shifted, truncation
from tests.builders.logs import MemoryReader, batch, replica

ID = "Zq8KIhTgQRGCODuoiRsCKA"
RUNS = "[UnifiedLog partition=other-0, dir=/data] Rolled new log segment at offset 7 in 1 ms."
LEADS = (
    f"[Broker id={{0}}] Leader t-0 with topic id Some({ID}) starts at leader epoch {{1}} from offset {{2}} with partition epoch {{3}}, high watermark {{2}},"
    " ISR [{4}], adding replicas [] and removing replicas [] . Previous leader None and previous leader epoch was -1."
)
KEEPS = (
    f"[Broker id=1] Skipped the become-{{role}} state change for t-0 with topic id Some({ID}) and partition state LeaderAndIsrPartitionState(topicName='t',"
    " partitionIndex=0, controllerEpoch=-1, leader=1, leaderEpoch=0, isr=[{isr}], partitionEpoch={number}, replicas=[1, 2, 3], addingReplicas=[], removingReplicas=[],"
    " isNew=false, leaderRecoveryState={recovery}) since it is already a {role} with leader epoch 0."
)
KEEPS_SINCE_4_2 = (
    f"[Broker id=1] Skipped the become-{{role}} state change for t-0 with topic id Some({ID}), partition registration PartitionRegistration(replicas=[1, 2, 3],"
    " directories=[AAAAAAAAAAAAAAAAAAAAAA], isr=[{isr}], removingReplicas=[], addingReplicas=[], elr=[{elr}], lastKnownElr=[], leader=1, leaderRecoveryState={recovery},"
    " leaderEpoch=0, partitionEpoch={number}) and isNew=false since it is already the {role} with leader epoch 0. Current high watermark 60, ISR [1], adding replicas [] and"
    " removing replicas []."
)
RECOVERING = "[Broker id=2] The topic partition t-0 was marked as RECOVERING. Marking the topic partition as RECOVERED."
OLD, NEW = load_log(replica(1, [batch(0, 29, 0)])), load_log(replica(2, [batch(0, 19, 0), batch(20, 29, 1)]))
OPEN = "whether broker 2 was in sync when it became leader in leader epoch 1"


def keeps(isr, number, *, role="leader", recovery=0):
    return KEEPS.format(isr=isr, number=number, role=role, recovery=recovery)


def since_4_2(isr, number, *, elr="", role="leader", recovery="RECOVERED"):
    return KEEPS_SINCE_4_2.format(isr=isr, number=number, elr=elr, role=role, recovery=recovery)


def facts_of(*between, number=2, before_elected=(), more=()):
    """Broker 1 leads, these lines follow, and broker 2 leads in the next leader epoch: who was in sync then, is to be told from them."""
    first = logged_events(RUNS, LEADS.format(1, 0, 0, 0, "1,2,3"), *between)
    other = logged_events(RUNS, *before_elected, LEADS.format(2, 1, 20, number, "2"), *more, node=2)
    late = [shifted(event, 20_000) for event in other[1:]]
    end = [shifted(event, 40_000) for node in (1, 2, 3) for event in logged_events(RUNS, node=node)]
    third = logged_events(RUNS, node=3)
    return facts_from_logs([*first[:1], *other[:1], *third, *first[1:], *late, *end], ClusterFacts())


def never(facts):
    judge = CommitJudge([OLD, NEW], lambda one, other: agreed_until(one, other, 20), facts, MemoryReader({}))
    found = judge.never_after(0, 0, 1)
    return None if found is None else found.offset


def open_questions(facts):
    return [gap.words for gap in account_of(PARTITION, "", facts).gaps]


@pytest.mark.parametrize(
    "between",
    [
        (),
        # Not the state that the election followed, but the one before that.
        (keeps("1, 2", 1),),
        (keeps("1, 2", 1), keeps("1", 2)),
        (keeps("1, 2", 1), keeps("1", 2, role="follower")),
        (since_4_2("1, 2", 1), since_4_2("1", 2)),
        # A later line about an earlier state is no news.
        (keeps("1", 2), keeps("1, 2", 1)),
        ("[Partition t-0 broker=1] ISR updated to 1,3  and version updated to 2",),
    ],
)
def test_a_leader_that_no_line_calls_in_sync_at_its_election_proves_nothing(between):
    facts = facts_of(*between, number=3)

    assert never(facts) is None
    assert OPEN in open_questions(facts)


@pytest.mark.parametrize(
    "between",
    [
        (keeps("1, 2", 1), keeps("1, 2", 2)),
        (keeps("1, 2, 3", 1), keeps("1, 2", 2, role="follower")),
        ("[Partition t-0 broker=1] ISR updated to 1,2  and version updated to 2",),
        (since_4_2("", 2, elr="1, 2"),),
    ],
)
def test_a_leader_in_sync_in_the_state_before_its_election_proves_what_it_lacked(between):
    facts = facts_of(*between, number=3)

    assert 20 == never(facts)
    assert OPEN not in open_questions(facts)


def test_a_zookeeper_controller_raises_the_leader_epoch_where_it_changes_the_isr():
    old = LEADS.replace(f" with topic id Some({ID})", "").replace("partition epoch {3}, ", "")
    roles = "KafkaConfig values:\n\tprocess.roles = {}\n"

    def led(value):
        events = logged_events(RUNS, roles.format(value), old.format(1, 0, 0, 0, "1,2"))
        other = [shifted(one, 20_000) for one in logged_events(old.format(2, 1, 20, 0, "2"), node=2)]
        return facts_from_logs([*events, *other], ClusterFacts()).by_partition[PARTITION]

    assert [True, False] == [led(value)[1].is_next(led(value)[0]) for value in ("[]", "[broker]")]


@pytest.mark.parametrize(
    "lines",
    [
        {"before_elected": (RECOVERING,)},
        {"more": (RECOVERING, keeps("2, 3", 4).replace("leader=1, leaderEpoch=0", "leader=2, leaderEpoch=1"))},
        {"more": (keeps("2", 4, recovery=1).replace("leader=1, leaderEpoch=0", "leader=2, leaderEpoch=1"),)},
        {
            "more": (
                since_4_2("2", 4, recovery="RECOVERING")
                .replace("leader=1,", "leader=2,")
                .replace("leaderEpoch=0", "leaderEpoch=1"),
            )
        },
    ],
)
def test_a_leader_that_has_to_recover_was_elected_uncleanly(lines):
    facts = facts_of(keeps("1, 2", 2), number=3, **lines)
    account = account_of(PARTITION, "", facts)
    evidence = CauseEvidence(leaderships=account.states, truncations=(), incarnation=Incarnation(), account=account)
    cause = cause_of(
        truncation(30, 20, leader_epoch=1),
        evidence,
        protocol=ProtocolName.KIP_595,
        none_committed=False,
        is_by_protocol=True,
    )

    assert [2] == [one.state.leader for one in account.risky]
    assert (CauseName.UNCLEAN_ELECTION, "proven") == (cause.name, cause.confidence)
    assert never(facts) is None


@pytest.mark.parametrize(
    ("properties", "needed"),
    [
        ("{min.insync.replicas=2, unclean.leader.election.enable=true}", 2),
        ("{compression.type -> producer, min.insync.replicas -> 3, segment.bytes -> 1}", 3),
        # The topic has none of its own.
        ("{}", 1),
    ],
)
def test_a_topics_own_setting_is_in_the_lines_about_its_logs(properties, needed):
    created = f"Created log for partition t-0 in /d/t-0 with properties {properties} (kafka.log.LogManager)"
    facts = facts_from_logs(logged_events(created), ClusterFacts(), configured=(1,))

    assert needed == facts.needed_in_sync("t")
    assert 1 == facts.needed_in_sync("other")


@pytest.mark.parametrize(
    ("version", "allowed", "halts"),
    [
        (None, (), Absent.UNKNOWN),
        (None, (True,), False),
        (KafkaVersion(0, 10, 2), (False,), True),
        (KafkaVersion(2, 0, 0), (), False),
    ],
)
def test_whether_a_broker_halts_out_of_range_is_known_by_version_and_setting(version, allowed, halts):
    facts = facts_from_logs([], ClusterFacts(), newest_version=version, unclean_elections=allowed)

    assert halts == facts.halts_out_of_range("orders")
