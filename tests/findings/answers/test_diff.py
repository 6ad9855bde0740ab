"""The state of a partition and the first line over all of them, each rule by replicas made for it."""

from dataclasses import dataclass, field, replace

import pytest

from kforensics.damage import Absent, Damage, DamageKind, Span
from kforensics.evidence.model import CheckpointValue, Problem
from kforensics.findings.answers.diff import WORDS, diff_answer, judged_partition, partition_state
from kforensics.findings.answers.fleet import fleet_answer
from kforensics.findings.answers.model import State
from kforensics.findings.concern import Concern, ConcernKind, JudgedPartition
from kforensics.findings.model import Severity
from kforensics.findings.rules.replicas import partition_findings
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.observed.facts import ClusterFacts, GivenBroker, Leadership, LoggedEnd
from kforensics.reconcile.replicas.placement import partition_without_replicas, place_partition
from kforensics.reconcile.replicas.report import Verdict
from kforensics.units import Depth, OffsetRange, TopicPartition
from kforensics.words import place_of_copy
from tests.builders.fleet import fleet_summary
from tests.builders.logs import HERE, MemoryReader, batch, record, replica
from tests.builders.reports import report_on

QUORUM = "__cluster_metadata"
PATHS = tuple(f"disks/broker-{at}" for at in range(5))


@dataclass(frozen=True)
class Facts(ClusterFacts):
    states: tuple = ()
    directories: dict = field(default_factory=dict)
    deleted: bool = False
    minimum: int = 1
    ends: dict = field(default_factory=dict)

    def leaderships(self, partition, topic_id):
        return self.states

    def registered_directories(self, broker_id):
        return self.directories.get(broker_id, Absent.UNKNOWN)

    def is_deleted(self, topic, topic_id):
        return self.deleted

    def needed_in_sync(self, topic):
        return self.minimum

    def logged_ends(self, partition):
        return {broker: LoggedEnd(offset, 5, replace(HERE, line=7)) for broker, offset in self.ends.items()}


def led(leader, isr, *, epoch=0, replicas=(1, 2, 3), eligible=()):
    return Facts(
        states=(
            Leadership(
                leader=leader,
                leader_epoch=epoch,
                isr=frozenset(isr),
                eligible=frozenset(eligible),
                replicas=replicas,
                unclean=False,
                recorded_at=1,
                time_ms=1,
                citation=HERE,
            ),
        )
    )


def judged(*replicas, facts=None, records=None, **options):
    return report_on(replicas, reader=MemoryReader(records or {}), facts=facts, **options)


def answer(*reports, problems=()):
    parts = [judged_partition(one) for one in reports]
    return diff_answer(parts, paths=PATHS, problems=problems)


def log(broker, end, *, epoch=0, **options):
    rows = [batch(first, min(first + 9, end - 1), epoch) for first in range(0, end, 10)]
    return replica(broker, rows, **options)


def test_all_assigned_replicas_that_hold_the_same_agree():
    report = judged(log(1, 60), log(2, 60), log(3, 60), facts=led(1, {1, 2, 3}))

    assert (State.AGREE, "All replicas agree: 1 partition compared, every assigned replica given.") == (
        answer(report).state,
        answer(report).headline,
    )


@pytest.mark.parametrize(("end", "state"), [(60, State.AGREE), (71, State.UNKNOWN)])
def test_replicas_that_all_end_before_an_offset_that_a_broker_logged_do_not_agree(end, state):
    facts = replace(led(1, {1, 2, 3}), ends={2: end, 9: 500})
    report = judged(log(1, 60), log(2, 60), log(3, 60), facts=facts)
    said = "the log of broker 2 had reached offset 71 by line 7 of "

    assert state is answer(report).state
    assert (said in answer(report).headline) is (state is State.UNKNOWN)
    assert ("11 offsets past the end of every log of t-0" in answer(report).headline) is (state is State.UNKNOWN)


def test_a_longer_log_that_parted_from_the_leaders_does_not_hold_what_that_had_grown_to():
    led_rows, parted = [batch(0, 9, 0), batch(10, 14, 1)], [batch(0, 9, 0), batch(10, 29, 0, 7)]
    logs = (replica(1, led_rows), replica(2, led_rows), replica(3, parted))
    facts = led(1, {1, 2}, epoch=1)

    assert () == judged(*logs, facts=replace(facts, ends={1: 15, 3: 25})).logged_past_end
    (past,) = judged(*logs, facts=replace(facts, ends={1: 25})).logged_past_end
    assert (25, 15, False) == (past.end.offset, past.held, past.is_furthest)


def test_the_offsets_past_the_end_are_those_of_the_partition_that_is_named():
    facts = replace(led(1, {1, 2, 3}), ends={2: 71})
    one = judged_partition(judged(log(1, 60), log(2, 60), log(3, 60), facts=facts))

    said = diff_answer([one, one._replace(partition=TopicPartition("t", 1))], paths=PATHS).headline

    assert "the directories of 2 partitions" in said
    assert ", 11 offsets past the end of every log of t-0; that line may be of an earlier topic of the name." in said


@pytest.mark.parametrize(("since_ms", "is_open"), [(Absent.UNKNOWN, True), (6, True), (5, False)])
def test_only_a_topic_that_was_there_at_the_time_of_a_line_is_surely_the_one_it_names(since_ms, is_open):
    class WithMetadata(Facts):
        def exists_since_ms(self, topic):
            return since_ms

    facts = WithMetadata(states=led(1, {1, 2, 3}).states, ends={2: 71})

    said = answer(judged(log(1, 60), log(2, 60), log(3, 60), facts=facts)).headline

    assert is_open is ("; that line may be of an earlier topic of the name" in said)


def test_a_metadata_log_that_agrees_says_nothing_of_partitions_of_which_no_replica_is_given():
    quorum = judged_partition(judged(log(1, 60), log(2, 60), facts=led(1, {1, 2}, replicas=(1, 2))))
    alone = quorum._replace(partition=TopicPartition("__cluster_metadata", 0))
    others = [TopicPartition("orders", 1), TopicPartition("orders", 0)]

    said = diff_answer([alone], paths=PATHS, not_given=others)
    assert (State.UNKNOWN, True) == (said.state, "of 2 partitions that it names no replica" in said.headline)
    assert "orders-0 and orders-1" in said.unknown[0]
    said = diff_answer([alone], paths=PATHS)
    assert (State.AGREE, True) == (said.state, "no log of another partition was compared" in said.headline)
    assert State.AGREE is diff_answer([alone, quorum], paths=PATHS, not_given=others).state


@pytest.mark.parametrize(
    ("end_of_voter", "state", "said"),
    [(60, State.AGREE, "every voter given"), (50, State.BEHIND, "controller 2 lacks records")],
)
def test_a_copy_of_the_metadata_log_that_lacks_a_part_is_named_and_is_no_replica(end_of_voter, state, said):
    whole, voter, copy = (log(1, 60, name=QUORUM), log(2, end_of_voter, name=QUORUM), log(3, 0, name=QUORUM))
    facts = led(1, {1, 2}, replicas=(1, 2))
    partial = answer(judged(whole, voter, replace(copy, recovery_point=CheckpointValue(60, HERE)), facts=facts))
    entire = answer(judged(whole, voter, copy, facts=facts))

    assert {state} == {partial.state, entire.state}
    assert said in entire.headline
    assert f"{entire.headline} The copy of the metadata log on broker 3 lacks a part." == partial.headline
    assert partial.unknown == entire.unknown


def test_no_replica_truncates_is_not_said_beside_a_copy_of_the_metadata_log_that_may():
    """An observer that was copied after the controller holds more: the block of the log says that it may truncate."""
    voters = log(1, 60, name=QUORUM), log(2, 50, name=QUORUM)
    facts = led(1, {1, 2, 4}, replicas=(1, 2, 4))
    third = log(4, 60, name=QUORUM)

    said = answer(judged(*voters, third, log(3, 61, name=QUORUM), facts=facts))
    assert said.state is State.BEHIND
    assert said.headline.startswith("No replica of a topic will truncate; controller 2 lacks records")
    assert "metadata log on broker 3 reaches beyond its leader's: it is truncated unless" in said.headline
    without = answer(judged(*voters, third, log(3, 60, name=QUORUM), facts=facts)).headline
    assert without.startswith("No replica will truncate; controller 2 lacks records")
    assert "beyond its leader's" not in without


def cut_at(end, one):
    """A replica whose batch at an offset is damaged, with sound ones behind it."""
    (only,) = one.segments
    place = Damage(
        span=Span(end * 10, 100), kind=DamageKind.CRC, expected="1", found="2", offsets_lost=OffsetRange(end, end + 9)
    )
    rows = only.batches[only.batches["base_offset"] != end]
    return replace(
        one, segments=(replace(only, damage=(place,), batches=rows, record_count=50, recovered_end_offset=end),)
    )


def test_what_recovery_discards_of_the_only_voters_metadata_is_open_though_brokers_hold_it():
    voter, copy = log(1, 60, name=QUORUM), log(2, 60, name=QUORUM)
    report = judged(cut_at(20, voter), copy, facts=led(1, {1}, replicas=(1,)))
    said = answer(report)

    assert said.state is State.UNKNOWN
    assert "recovery at the start of controller 1 will discard 30 records of the metadata log" in said.headline
    assert "it then ends at 20 on controller 1, and no majority of the voters is shown to hold more." in said.headline
    assert "No voter copies back what broker 2 holds beyond that." in said.headline
    assert ["KF210"] == [one.code for one in partition_findings(report) if one.severity is Severity.WARNING]
    # A broker that discards what the voter holds copies it again.
    assert answer(judged(voter, cut_at(20, copy), facts=led(1, {1}, replicas=(1,)))).state is State.AGREE


@pytest.mark.parametrize(
    ("damaged", "state", "severities"),
    [
        (1, State.BEHIND, {Severity.NOTE}),
        (2, State.UNKNOWN, {Severity.WARNING}),
        (3, State.UNKNOWN, {Severity.WARNING}),
    ],
)
def test_what_recovery_discards_of_a_voters_metadata_is_open_unless_a_majority_holds_it(damaged, state, severities):
    voters = [log(broker, 60, name=QUORUM) for broker in (1, 2, 3)]
    voters = [cut_at(20, one) if one.broker_id <= damaged else one for one in voters]
    report = judged(*voters, facts=led(3, {1, 2, 3}))

    assert state is answer(report).state
    assert severities == {one.severity for one in partition_findings(report) if one.code == "KF210"}


@pytest.mark.parametrize("given", [(1, 2), (1, 3), (2,)])
def test_a_replica_that_is_not_given_is_named_and_nothing_is_said_to_agree(given):
    report = judged(*(log(broker, 60) for broker in given), facts=led(1, {1, 2, 3}))
    missing = sorted({1, 2, 3} - set(given))
    said = answer(report)

    assert State.UNKNOWN is said.state
    assert all(str(broker) in said.headline for broker in missing)
    assert "agree" not in said.headline
    assert "give its data directories too" in said.unknown[0]


def test_without_an_assignment_replicas_that_agree_are_unknown_until_it_is_stated():
    replicas = (log(1, 60), log(2, 60))

    assert State.UNKNOWN is partition_state(judged(*replicas))
    asked = " ".join(answer(judged(*replicas)).unknown)
    assert "state all of them, given here or not, with --replicas." in asked
    assert "--replicas 1,2" not in asked  # with which two of three would agree
    assert State.AGREE is partition_state(judged(*replicas, stated_replicas=(1, 2)))
    assert State.UNKNOWN is partition_state(judged(*replicas, stated_replicas=(1, 2, 3)))
    assert State.UNKNOWN is partition_state(judged(log(1, 60)))


def test_a_partition_of_which_one_replica_is_given_does_not_undo_what_was_compared():
    alone = judged(log(2, 30, name="single"))
    unassigned = judged(log(1, 60), log(2, 60), log(3, 60))
    whole = [judged(log(1, 60), log(2, 60), log(3, 60), facts=led(1, {1, 2, 3})) for _ in range(51)]

    assert "UNKNOWN: nothing was compared: of 1 partition one replica is given." == answer(alone).headline
    assert (
        "UNKNOWN: the replicas given of 1 partition agree, and no input shows whether they are all. Also single-0: one replica is given."
        == answer(alone, unassigned).headline
    )
    assert (
        "UNKNOWN: of 1 partition of 52 one replica is given, compared with nothing; all replicas of 51 partitions agree."
        == answer(*whole, alone).headline
    )


def test_an_assignment_that_an_operator_stated_is_no_record():
    given = {at: GivenBroker(broker_id=at, directory_ids=frozenset(), is_empty=False) for at in (1, 2, 3)}
    stated = {"stated_replicas": (1, 2, 3), "given": given}
    whole = judged(log(1, 60), log(2, 60), log(3, 60), **stated)
    alone = judged(log(2, 30, name="single"), **stated)

    found = answer(whole, alone)

    assert found.headline == (
        "UNKNOWN: brokers 1 and 3 should hold 1 partition by --replicas, and none of their log directories among the inputs does."
        " All assigned replicas of 1 partition agree."
    )
    recorded = judged(log(2, 30), facts=led(2, {1, 2, 3}), **stated)
    assert "--replicas" not in answer(recorded).headline


def test_one_that_alone_holds_committed_records_is_the_headline():
    report = judged(log(1, 60, high_watermark=60), log(2, 48), log(3, 40), facts=led(1, {1}))
    said = answer(report)

    assert State.AT_RISK is said.state
    assert said.headline == (
        "ONLY BROKER 1 HOLDS 12 committed records of 1 partition. "
        "Start broker 1 first; do not force an unclean election while it is down."
    )
    assert 'cp -a disks/broker-1 "${SAFE:?}"/disks-broker-1' in " ".join(said.now)


def test_what_several_brokers_hold_alone_is_one_step_and_one_prohibition():
    parts = []
    for at in (1, 2):
        facts = led(at, {at}, replicas=(at, 3, 4))
        one = judged_partition(judged(log(at, 60, high_watermark=60), log(3, 48), log(4, 40), facts=facts))
        parts.append(one._replace(partition=TopicPartition("t", at)))

    steps = diff_answer(parts, paths=PATHS).now

    (copy,) = (one for one in steps if one.startswith("Copy"))
    assert copy.startswith("Copy the directories of brokers 1 and 2 before they start: ")
    (force,) = (one for one in steps if "force" in one)
    assert force == "Do not force an unclean election of t-1, t-2 while one of brokers 1 and 2 is down."


def test_with_a_replica_missing_that_is_only_perhaps_so():
    report = judged(log(1, 60, high_watermark=60), log(2, 48), facts=led(1, {1}))

    assert State.MAYBE_AT_RISK is partition_state(report)
    assert "of the replicas given" in answer(report).headline


def test_a_longer_log_that_ran_while_it_was_copied_can_not_be_judged():
    running = (log(1, 60, high_watermark=40, clean=False), log(2, 50, clean=False))
    facts = led(1, {1, 2}, replicas=(1, 2))

    assert State.UNKNOWN is partition_state(judged(*running, facts=facts))
    assert "copied while brokers ran, or after a power loss" in answer(judged(*running, facts=facts)).headline
    assert State.MAYBE_AT_RISK is partition_state(judged(*running, facts=facts, is_stopped=True))


def test_a_follower_that_lacks_what_two_others_hold_is_behind():
    report = judged(log(1, 60), log(2, 60), log(3, 40), facts=led(1, {1, 2}))

    assert State.BEHIND is partition_state(report)
    assert "broker 3 lacks records" in answer(report).headline


@pytest.mark.parametrize(("end", "state"), [(8, State.BEHIND), (10, State.AGREE)])
def test_a_replica_without_the_file_of_its_leader_epochs_is_not_said_to_keep_its_log(end, state):
    facts = led(1, {1, 2})
    bare = replace(log(3, end), checkpoint_epochs=Absent.NOT_WRITTEN)
    found = answer(judged(log(1, 10), log(2, 10), bare, facts=facts))

    assert found.state is state
    assert "No replica will truncate" not in found.headline
    assert "leader-epoch-checkpoint files of 1 partition are missing on broker 3" in found.headline
    assert found.headline.endswith("truncates these logs: t-0 to 0.")
    assert "leader-epoch-checkpoint" not in answer(judged(log(1, 10), log(2, 10), log(3, end), facts=facts)).headline


def test_an_emptied_disk_of_the_isr_is_an_alarm():
    facts = replace(led(1, {1}), directories={1: frozenset({"old"})})
    emptied = GivenBroker(broker_id=1, directory_ids=frozenset({"new"}), is_empty=True)
    options = {"facts": facts, "given": {1: emptied}}
    said = answer(judged(log(2, 60), log(3, 60), **options))

    assert State.AT_RISK is said.state
    assert said.headline.startswith("STARTING BROKER 1 DESTROYS 1 PARTITION: its disk is empty")
    assert said.headline.endswith("the ISR is [1].")
    assert "Do not start broker 1" in said.now[0]
    fenced = replace(facts, states=(replace(facts.states[0], leader=2, isr=frozenset({2, 3})),))
    assert State.BEHIND is partition_state(judged(log(2, 60), log(3, 60), facts=fenced, given={1: emptied}))


def test_a_directory_that_a_start_takes_for_a_stray_leaves_its_broker_with_an_empty_log():
    unnamed = log(1, 60)
    unnamed = replace(unnamed, topic_id=Absent.NOT_WRITTEN)
    broker = GivenBroker(broker_id=1, directory_ids=frozenset(), is_empty=False, renames_unnamed=True)

    def told(facts, **changes):
        return answer(judged(unnamed, log(2, 60), log(3, 60), facts=facts, given={1: replace(broker, **changes)}))

    said = told(led(2, {1, 2, 3}))
    assert State.AT_RISK is said.state
    assert said.headline.startswith("STARTING BROKER 1 FIRST DESTROYS 1 PARTITION: its directory has no partition.met")
    assert f"back into disks/broker-1/{unnamed.path}," in said.now[0]
    assert State.MAYBE_AT_RISK is told(led(2, {1, 2, 3}), renames_unnamed=Absent.UNKNOWN).state
    assert State.AGREE is told(led(2, {1, 2, 3}), renames_unnamed=False).state
    assert told(led(2, {2, 3})).headline.endswith("broker 1 will lack records of 1 partition of 1 that others hold.")


def test_an_election_with_an_empty_log_puts_at_risk_what_the_others_hold():
    emptied = GivenBroker(broker_id=1, directory_ids=frozenset(), is_empty=True)
    report = judged(log(2, 60), log(3, 50), facts=led(2, {1, 2, 3}), given={1: emptied})

    (concern,) = [one for one in judged_partition(report).concerns if one.kind is ConcernKind.EMPTIED]
    assert 60 == concern.certain + concern.possible
    assert ("broker 2", "broker 3") == concern.losing


def test_empty_logs_show_that_an_absent_one_was_empty_only_where_they_are_in_sync():
    emptied = GivenBroker(broker_id=1, directory_ids=frozenset(), is_empty=True)
    empty = [replace(replica(broker, []), high_watermark=CheckpointValue(0, HERE)) for broker in (2, 3)]

    def state(isr):
        return partition_state(judged(*empty, facts=led(1, isr), given={1: emptied}))

    assert State.UNKNOWN is state({1})
    assert State.AGREE is state({1, 2})


class _WithoutTopic(Facts):
    def has_metadata_log(self):
        return True


def test_directories_of_a_topic_id_that_no_metadata_log_knows_are_said_to_be():
    rows = [batch(0, 59, 0)]
    named = [replace(replica(broker, rows), topic_id="X" * 22) for broker in (1, 2)]

    said = answer(judged(*named, facts=_WithoutTopic()))

    assert State.UNKNOWN is said.state
    assert said.headline.startswith(
        "UNKNOWN: no metadata log given knows the topic id of 1 partition on brokers 1 and 2"
    )
    assert "knows the topic id" not in answer(judged(*named, facts=led(1, {1, 2}))).headline


def test_a_log_directory_that_is_not_given_is_no_emptied_disk():
    facts = replace(led(1, {1}), directories={1: frozenset({"one", "two"})})
    half = GivenBroker(broker_id=1, directory_ids=frozenset({"one"}), is_empty=True)
    report = judged(log(2, 60), log(3, 60), facts=facts, given={1: half})

    assert State.UNKNOWN is partition_state(report)
    assert (1,) == report.missing_replicas
    assert () == report.emptied


def test_a_broker_that_runs_without_the_disk_that_holds_a_partition_is_not_just_behind():
    facts = replace(led(2, {2}, epoch=1), directories={1: frozenset({"left"})})
    placed = ((1, "failed"), (2, "b"), (3, "c"))
    facts = replace(facts, states=(replace(facts.states[0], directories=placed),))
    given = GivenBroker(broker_id=1, directory_ids=frozenset({"left"}), is_empty=False)
    said = answer(judged(log(2, 60, epoch=1), log(3, 60, epoch=1), facts=facts, given={1: given}))

    assert State.UNKNOWN is said.state
    assert "none of its log directories among the inputs does" in said.headline
    moved = replace(facts, states=(replace(facts.states[0], directories=((1, "left"), *placed[1:])),))
    assert State.BEHIND is partition_state(
        judged(log(2, 60, epoch=1), log(3, 60, epoch=1), facts=moved, given={1: given})
    )


def test_a_replica_that_the_metadata_places_in_a_directory_that_is_not_here_may_get_no_leader():
    given = GivenBroker(broker_id=1, directory_ids=frozenset({"a"}), is_empty=False)
    for place, state in (
        ("a", State.AGREE),
        ("A" * 21 + "Q", State.AGREE),
        ("A" * 21 + "g", State.UNKNOWN),
        ("b", State.UNKNOWN),
    ):
        facts = led(1, {1}, replicas=(1,))
        facts = replace(facts, states=(replace(facts.states[0], directories=((1, place),)),))
        said = answer(judged(log(1, 24), facts=facts, given={1: given}))

        assert said.state is state
        assert any("in a log directory that is not here" in line for line in said.unknown) is (state is State.UNKNOWN)


def test_an_empty_directory_beside_the_log_directories_may_be_an_exchanged_disk():
    given = GivenBroker(broker_id=1, directory_ids=frozenset(), is_empty=False, empty_beside=("b",))
    elsewhere = judged(log(2, 12), given={1: given})
    said = answer(elsewhere)

    assert State.MAYBE_AT_RISK is said.state
    assert "starting broker 1 first may destroy 1 partition: b, beside its log directories, is empty" in said.headline
    assert not any(line.startswith("Start broker 1") for line in said.now)
    whole = replace(given, empty_beside=())
    assert State.UNKNOWN is partition_state(judged(log(2, 12), given={1: whole}))
    assert () == judged(log(1, 12), log(2, 12), given={1: given}).emptied


def test_logs_without_a_segment_whose_leader_epochs_began_behind_records_do_not_agree():
    said = answer(
        judged(
            *(replica(broker, checkpoint=((0, 0), (1, 18))) for broker in (1, 2)),
            facts=led(1, {1, 2}, replicas=(1, 2), epoch=1),
        )
    )

    assert said.state is State.UNKNOWN
    assert "a leader epoch began in it at offset 18" in said.headline


def test_deleted_partitions_do_not_count_as_compared():
    facts = replace(led(1, {1, 2}, replicas=(1, 2)), deleted=True)
    kept = judged(log(1, 20), log(2, 20), facts=replace(facts, deleted=False))
    deleted = judged(replace(log(1, 20), topic_partition=TopicPartition("former", 0)), facts=facts)

    assert (
        "All replicas agree: 1 partition compared, every assigned replica given (1 other partition is of a deleted topic)."
        == answer(kept, deleted).headline
    )
    assert (State.UNKNOWN, "UNKNOWN: nothing to compare: 1 partition, of a deleted topic.") == (
        answer(deleted).state,
        answer(deleted).headline,
    )
    ends = [replace(one, depth=Depth.TAILS) for one in (kept, deleted)]
    assert (
        "By leader epochs and ends all replicas agree: 1 partition, every assigned replica given. Also former-0: the topic was deleted."
        == answer(*ends).headline
    )
    assert State.UNKNOWN is answer(ends[1]).state


def test_nothing_is_expected_of_a_deleted_topic_whatever_is_left_of_it():
    facts = replace(led(1, {1, 2}, replicas=(1, 2, 3)), deleted=True)
    report = judged(log(1, 20), log(2, 30, epoch=1), facts=facts)
    placement = place_partition(report, facts=facts, audited={1, 2, 3}, racks={1: "a", 2: "a", 3: "b"})

    assert (Absent.UNKNOWN, (), ()) == (placement.assigned, placement.missing, placement.excess)
    assert (False, False, False) == (placement.is_offline, placement.is_under_replicated, placement.shares_rack)
    assert {Verdict.NOT_ASSIGNED} == {one.verdict for one in report.replicas}
    assert () == report.what_if
    assert [] == list(partition_findings(report))

    kept = judged(log(1, 20), log(2, 30, epoch=1), facts=replace(facts, deleted=False))
    assert (3,) == place_partition(kept, facts=replace(facts, deleted=False), audited={1, 2, 3}, racks={}).missing
    assert kept.what_if


def test_partitions_of_deleted_topics_do_not_count_in_the_headline_of_a_fleet():
    summary = replace(
        fleet_summary(""),
        states={"agree": 7},
        partition_count=7,
        deleted_partitions=4,
        damage_by_disk=(),
        problem_count=0,
        findings_by_severity={},
    )

    assert (
        "All replicas of 3 partitions agree on 2 nodes, every assigned replica given (4 other partitions are of deleted topics)."
        == fleet_answer(summary).headline
    )
    gone = fleet_answer(replace(summary, partition_count=4, states={"agree": 4}))
    assert (State.UNKNOWN, "Nothing to judge: 4 partitions, of deleted topics.") == (gone.state, gone.headline)


def test_one_that_may_lack_an_end_that_others_hold_is_not_started_first():
    alone = judged(log(1, 24), log(2, 20), facts=led(1, {1}, replicas=(1, 2)))
    lacking = judged(log(1, 20, clean=False), log(2, 28, high_watermark=24), facts=led(1, {1}, replicas=(1, 2)))
    lacking = replace(lacking, partition=TopicPartition("others", 0))
    first, both = answer(alone), answer(alone, lacking)

    assert any(line.startswith("Start broker 1 first") for line in first.now)
    assert not any(line.startswith("Start broker 1 first") for line in both.now)
    assert any(line.startswith("Copy the directory of broker 1") for line in both.now)


def test_a_broker_of_which_another_log_directory_is_not_given_is_not_started_first():
    alone = judged(log(1, 24), log(2, 20), facts=led(1, {1}, replicas=(1, 2)))
    given = GivenBroker(broker_id=1, directory_ids=frozenset({"a"}), is_empty=False)
    facts = replace(led(1, {1}, replicas=(1, 2)), directories={1: frozenset({"a", "b"})})
    facts = replace(facts, states=(replace(facts.states[0], directories=((1, "b"), (2, "c"))),))
    elsewhere = judged(log(2, 20), facts=facts, given={1: given})
    elsewhere = replace(elsewhere, partition=TopicPartition("others", 0))
    said = answer(alone, elsewhere)

    assert any("other log directories of broker 1" in line for line in said.unknown)
    assert not any("Start broker 1 first" in line for line in (said.headline, *said.now))
    assert any(line.startswith("Copy the directory of broker 1") for line in said.now)


def test_a_guessed_leader_makes_nothing_certain():
    old = replica(1, [batch(0, 59, 0), batch(60, 102, 0, 7)], high_watermark=103)
    new = replica(2, [batch(0, 59, 0), batch(60, 84, 1, 8)], high_watermark=85)
    guessed = judged(replace(old, topic_id="a"), replace(new, topic_id="a"), stated_replicas=(1, 2))

    assert not guessed.leader.is_known
    assert State.AT_RISK is partition_state(guessed)  # whichever replica leads, the other discards what was committed
    assert "whichever replica leads" in answer(guessed).headline or "ONLY BROKER" in answer(guessed).headline
    open_ended = judged(old, new)
    assert State.MAYBE_AT_RISK is partition_state(open_ended)
    headline = answer(open_ended).headline
    assert "if broker 2 leads (guessed" in headline
    assert "broker 1 will discard 43 possibly committed records" in headline


def test_a_finding_is_no_surer_than_its_partition():
    leader = replica(1, [batch(0, 59, 0)], clean=False)
    follower = replica(2, [batch(0, 59, 0), batch(60, 69, 0)], high_watermark=70)
    by_1 = {"facts": led(1, {1, 2}, replicas=(1, 2))}

    def codes(*replicas, **options):
        report = judged(*replicas, **options)
        return partition_state(report), {one.code for one in partition_findings(report)} & {"KF201", "KF202"}

    assert (State.MAYBE_AT_RISK, {"KF202"}) == codes(leader, follower, **by_1)
    assert (State.AT_RISK, {"KF201"}) == codes(replace(leader, clean_shutdown=True), follower, **by_1)


def test_a_tie_is_not_broken():
    one, two = replica(1, [batch(0, 59, 0, 7)]), replica(2, [batch(0, 59, 0, 8)])
    report = judged(one, two, stated_replicas=(1, 2))

    assert ((2,), False) == (report.leader.tied_with, report.leader.is_known)


def test_metadata_older_than_the_logs_names_no_leader():
    report = judged(log(1, 60, epoch=4), log(2, 60, epoch=4), facts=led(1, {1}, epoch=3, replicas=(1, 2)))

    assert ("inferred", False) == (report.leader.source, report.leader.is_known)
    assert Absent.UNKNOWN is report.isr


def test_an_assumed_protocol_that_matters_is_said():
    old = replica(1, [batch(0, 9, 0), batch(10, 14, 1)], high_watermark=10)
    new = replica(2, [batch(0, 9, 0), batch(10, 11, 0), batch(12, 19, 2)])
    both = (ProtocolName.KIP_279, ProtocolName.KIP_101)
    unsure = judged(old, new, wanted_leader=2, stated_replicas=(1, 2), possible_protocols={1: both, 2: both})
    follower = next(one for one in unsure.replicas if one.view.replica.broker_id == 1)

    assert ((ProtocolName.KIP_101, 12),) == follower.by_other_protocols
    assert State.MAYBE_AT_RISK is partition_state(unsure)
    told = judged(old, new, wanted_leader=2, stated_replicas=(1, 2), wanted_protocol=ProtocolName.KIP_279)
    assert () == next(one for one in told.replicas if one.view.replica.broker_id == 1).by_other_protocols


def test_what_the_leader_holds_is_copied_again_if_it_stays_up():
    leader = log(2, 60, high_watermark=60)
    follower = log(1, 60, high_watermark=45)
    report = judged(follower, leader, facts=led(2, {1, 2}, replicas=(1, 2)), wanted_protocol=ProtocolName.HW)
    said = answer(report)

    assert State.UNCOMMITTED_ONLY is said.state
    assert "broker 2 must stay up until then" in said.headline
    assert "Keep broker 2 up" in said.now[0]


def test_a_replica_of_no_assignment_is_not_judged_but_may_be_the_last_full_copy():
    full = log(4, 60, high_watermark=60)
    report = judged(log(1, 40), log(2, 40), full, facts=led(1, {1, 2}, replicas=(1, 2)))
    outside = next(one for one in report.replicas if one.view.replica.broker_id == 4)

    assert ("not-assigned", None) == (outside.verdict.value, outside.truncation)
    assert {1, 2} == {choice.leader.replica.broker_id for choice in report.what_if}
    assert State.MAYBE_AT_RISK is partition_state(report)
    assert "that are no replica any more hold 20 committed records" in answer(report).headline


def test_silent_divergence_counts_as_loss_of_either_leader():
    one = replica(1, [batch(0, 9, 0), batch(10, 19, 0, 7)], high_watermark=20)
    two = replica(2, [batch(0, 9, 0), batch(10, 19, 0, 8)], high_watermark=20)
    report = judged(one, two, facts=led(1, {1, 2}, replicas=(1, 2)))

    assert State.DIVERGED is partition_state(report)
    assert {1: 10, 2: 10} == {choice.leader.replica.broker_id: choice.lost_certain for choice in report.what_if}
    assert {0} == {choice.discarded.certain for choice in report.what_if}


def test_the_same_records_on_two_followers_are_counted_once():
    tail = [batch(0, 59, 0), batch(60, 79, 0)]
    report = judged(
        replica(1, [batch(0, 59, 0)], checkpoint=[(0, 0), (1, 60)]),
        replica(2, tail, high_watermark=80),
        replica(3, tail, high_watermark=80),
        facts=led(1, {1}, epoch=1),
    )
    chosen = next(choice for choice in report.what_if if choice.leader.replica.broker_id == 1)

    assert (20, 20) == (chosen.discarded.certain, chosen.lost_certain)
    assert "discard 20 committed records of 1 partition" in answer(report).headline


def test_a_deleted_topic_expects_no_replica():
    report = judged(log(1, 60), facts=replace(led(1, {1, 2}), deleted=True))

    assert State.AGREE is partition_state(report)
    assert () == report.missing_replicas


def test_compaction_is_explained_by_any_replica_and_else_a_question():
    def cleaned(broker, kept):
        rows = [batch(0, 9, 0, 40 + broker, count=kept), batch(10, 19, 0)]
        return replica(broker, rows[:1], rows[1:], cleaned=10)

    lacking, holding, third = cleaned(1, 0), cleaned(2, 1), cleaned(3, 1)
    records = {"b2/t-0": [record(4, b"a"), record(12, b"z")], "b1/t-0": [record(12, b"z")]}
    facts = led(1, {1, 2}, replicas=(1, 2))
    question = judged(lacking, holding, facts=facts, records=records)
    successor = {**records, "b3/t-0": [record(4, b"a"), record(7, b"a", None), record(12, b"z")]}
    explained = judged(lacking, holding, third, facts=led(1, {1, 2, 3}), records=successor)

    assert State.UNKNOWN is partition_state(question)
    assert [ConcernKind.COMPACTION] == [one.kind for one in judged_partition(question).concerns]
    assert ConcernKind.COMPACTION not in {one.kind for one in judged_partition(explained).concerns}
    assert ConcernKind.DIVERGENCE not in {one.kind for one in judged_partition(explained).concerns}


def test_a_wrapper_that_holds_the_offset_is_dropped_whole():
    old = replica(1, [batch(0, 9, -1, 5, magic=0), batch(10, 19, -1, 6, magic=0)], high_watermark=15)
    new = replica(2, [batch(0, 9, -1, 5, magic=0), batch(10, 19, -1, 6, magic=0)], high_watermark=20)
    report = judged(old, new, wanted_leader=2, stated_replicas=(1, 2))
    truncation = next(one for one in report.replicas if one.view.replica.broker_id == 1).truncation

    assert (10, 15, (10, 19)) == (
        truncation.offset,
        truncation.target_offset,
        (truncation.dropped.first, truncation.dropped.last),
    )


def test_what_could_not_be_read_makes_nothing_certain():
    report = judged(log(1, 60, high_watermark=60), log(2, 48), facts=led(1, {1}, replicas=(1, 2)))
    unread = (Problem(input=1, path="t-0", message="torn"),)

    assert State.AT_RISK is partition_state(report)
    assert State.MAYBE_AT_RISK is partition_state(report, unread)
    agreeing = judged(log(1, 60), log(2, 60), facts=led(1, {1, 2}, replicas=(1, 2)))
    assert State.UNKNOWN is partition_state(agreeing, unread)
    assert State.UNKNOWN is answer(agreeing, problems=unread).state


def test_a_log_that_its_own_checkpoints_reach_beyond_is_not_just_behind():
    torn = log(3, 40, high_watermark=60)
    facts = led(1, {1, 2})

    said = answer(judged(log(1, 60), log(2, 60), torn, facts=facts))
    assert (State.UNKNOWN, "Offsets 40 to 59" in said.headline) == (said.state, True)
    running = replace(torn, clean_shutdown=False)
    assert State.BEHIND is partition_state(judged(log(1, 60), log(2, 60), running, facts=facts))
    emptied = replica(3, [], high_watermark=60, clean=False)
    assert State.UNKNOWN is partition_state(judged(log(1, 60), log(2, 60), emptied, facts=facts))
    first = answer(judged(log(1, 60), log(2, 60), emptied, facts=led(1, {1, 2, 3})))
    assert first.headline.startswith(
        "MAYBE AT RISK: starting broker 3 first may destroy 1 partition: its log is empty, "
    )
    stopped = replace(emptied, clean_shutdown=True)
    first = answer(judged(log(1, 60), log(2, 60), stopped, facts=led(1, {1, 2, 3})))
    assert first.headline.startswith("STARTING BROKER 3 FIRST DESTROYS 1 PARTITION: its log is empty, ")
    alone = answer(judged(log(2, 60), stopped, facts=led(3, {3}, replicas=(2, 3))))
    assert alone.headline.startswith("STARTING BROKER 3 DESTROYS 1 PARTITION: its log is empty, ")


def test_a_future_directory_alone_is_no_replica():
    facts = led(1, {1, 2}, replicas=(1, 2, 3))
    given = {at: GivenBroker(broker_id=at, directory_ids=frozenset(), is_empty=False) for at in (1, 2, 3)}
    moving = replace(log(3, 60), state="future")
    report = judged(log(1, 60), log(2, 60), moving, facts=facts, given=given)

    assert State.AGREE is not partition_state(report)
    assert ["it holds a future directory of it alone"] == [one.reason for one in report.emptied]


def test_a_partition_named_by_a_checkpoint_alone_is_unknown_without_an_assignment():
    named = CheckpointValue(value=60, citation=HERE)
    lost = GivenBroker(
        broker_id=2,
        directory_ids=frozenset(),
        is_empty=False,
        named={log(1, 60).topic_partition: named},
    )
    report = judged(log(1, 60), stated_replicas=(1, 2), given={2: lost})

    assert State.UNKNOWN is partition_state(report)
    assert "the log of t-0 on broker 2 is not here" in answer(report).headline
    assert ["KF116"] == [one.code for one in partition_findings(report)]


def test_a_partition_of_which_every_broker_is_given_and_none_holds_a_directory_is_unknown():
    facts = led(1, {1, 2}, replicas=(1, 2))
    given = {at: GivenBroker(broker_id=at, directory_ids=frozenset(), is_empty=False) for at in (1, 2)}
    report = partition_without_replicas(TopicPartition("u", 0), facts.states[0], facts=facts, given=given)

    assert [1, 2] == [one.broker_id for one in report.emptied]
    assert "UNKNOWN: no live replica of 1 partition is among the inputs." == answer(report).headline


@pytest.mark.parametrize(
    ("path", "copy"),
    [
        ("evidence/broker-1", "evidence-broker-1"),
        ("cases/evidence/broker-1/", "evidence-broker-1"),
        ("/var/lib/kafka/data", "kafka-data"),
        ("/data", "data"),
        ("broker-1", "broker-1"),
        ("../broker-1", "broker-1"),
        (".", "data"),
        ("a b/broker-1", "'a b-broker-1'"),
    ],
)
def test_a_copy_goes_to_another_disk_under_a_name_of_its_own(path, copy):
    assert place_of_copy(path) == f'"${{SAFE:?}}"/{copy}'


def test_every_kind_of_concern_has_its_words_and_those_that_decide_a_headline_a_sentence():
    assert set(WORDS) == set(ConcernKind)
    # The state of these is always that of agreement, which has a sentence of its own.
    calm = {
        ConcernKind.DELETED,
        ConcernKind.OBSERVERS,
        ConcernKind.AHEAD,
        ConcernKind.NO_EPOCHS,
        ConcernKind.LEFT_BYTES,
    }
    assert {kind for kind, words in WORDS.items() if not words.headline} == calm
    assert all(words.short for words in WORDS.values())


def test_a_deleted_topic_decides_no_headline():
    """At depth tails, where every other partition had to be read whole."""
    whole = JudgedPartition(TopicPartition("orders", 0), ())
    deleted = Concern(state=State.SAME_ENDS, kind=ConcernKind.DELETED)
    gone = JudgedPartition(TopicPartition("old", 0), (deleted,))

    said = diff_answer([whole, gone], paths=())

    assert State.AGREE is said.state
    assert "All replicas agree: 1 partition compared" in said.headline


def test_copies_of_two_brokers_get_two_names():
    assert len({place_of_copy("/mnt/broker-1/data"), place_of_copy("/mnt/broker-2/data")}) == 2


def test_what_is_lost_if_an_emptied_broker_leads_is_said_beside_the_others():
    facts = replace(led(1, {1}), directories={1: frozenset({"old"})})
    emptied = GivenBroker(broker_id=1, directory_ids=frozenset({"new"}), is_empty=True)
    report = judged(log(2, 60, high_watermark=60), log(3, 50), facts=facts, given={1: emptied})
    by_leader = {one.leader.replica.broker_id: one for one in report.what_if}

    assert {1: (60, 0), 2: (0, 0), 3: (10, 0)} == {
        broker: (one.lost_certain, one.lost_possible) for broker, one in by_leader.items()
    }
    assert (True, False) == (by_leader[1].is_emptied, by_leader[2].is_emptied)
    assert {2: 0, 3: 0} == {view.replica.broker_id: cut.offset for view, cut in by_leader[1].truncations}
    assert by_leader[1].discarded.certain == 60
    assert 1 not in {one.view.replica.broker_id for one in report.replicas}
    fenced = replace(facts, states=(replace(facts.states[0], leader=2, isr=frozenset({2, 3})),))
    report = judged(log(2, 60), log(3, 60), facts=fenced, given={1: emptied})
    assert {2, 3} == {one.leader.replica.broker_id for one in report.what_if}


def test_a_renamed_directory_that_holds_more_than_the_replicas_is_the_alarm():
    facts = led(1, {1, 2}, replicas=(1, 2), epoch=1)
    replicas = [replica(at, [batch(0, 19, 0), batch(20, 29, 1, 7)], topic_id="now") for at in (1, 2)]
    stray = replica(3, [batch(0, 19, 0), batch(20, 59, 0)], topic_id="now", state="stray", high_watermark=60)
    deleted = replace(
        stray, state="deleted", broker_id=2, input=2, path="b2/t-0.0123456789abcdef0123456789abcdef-delete"
    )
    said = answer(judged(*replicas, stray, deleted, facts=facts))

    # Both hold the same 40 records, which count once; the checkpoint's line is of the replica that bears the name.
    assert State.MAYBE_AT_RISK is said.state
    assert (
        "directories of brokers 2 and 3 that are no replica any more hold 40 possibly committed records"
        in said.headline
    )
    there = '"${SAFE:?}"/disks-broker-3'
    assert f"mkdir -p {there} && cp -a disks/broker-3/b3/t-0 {there}" in said.now[0]
    assert "which deletes some of them" in said.now[0]
    shorter = replica(3, [batch(0, 19, 0)], topic_id="now", state="stray")
    other = replace(stray, topic_id="before")
    assert State.AGREE is partition_state(judged(*replicas, shorter, other, facts=facts))


def test_replicas_that_agree_after_an_unclean_election_do_not_say_that_nothing_was_lost():
    states = [
        replace(state, leader=leader, leader_epoch=epoch, isr=frozenset(isr), unclean=unclean, recorded_at=epoch + 1)
        for state in led(1, {1}).states
        for leader, epoch, isr, unclean in ((1, 0, {1, 2}, False), (1, 0, {1}, False), (2, 1, {2}, True))
    ]
    report = judged(log(1, 60), log(2, 60), log(3, 60), facts=Facts(states=tuple(states)))
    said = answer(report)

    assert State.AGREE is said.state
    assert ["unclean"] == [one.risk.value for one in report.account.risky]
    assert "Whether records of t-0 were lost before: an unclean election is on record" in " ".join(said.unknown)
    calm = answer(judged(log(1, 60), log(2, 60), log(3, 60), facts=led(1, {1, 2, 3})))
    assert () == calm.unknown


def test_one_that_alone_holds_what_others_replaced_is_copied_and_not_started_first():
    old = replica(1, [batch(0, 59, 0), batch(60, 102, 0, 7)], high_watermark=103)
    new = [replica(broker, [batch(0, 59, 0), batch(60, 84, 1, 8)], high_watermark=85) for broker in (2, 3)]
    said = answer(judged(*(replace(one, topic_id="a") for one in (old, *new)), stated_replicas=(1, 2, 3)))

    assert said.headline == (
        "ONLY BROKER 1 HOLDS 43 committed records of 1 partition, and others hold other records there. "
        "Copy its directory before it starts."
    )
    assert not any("Start broker 1 first" in line or "Do not force" in line for line in said.now)


def test_what_only_a_broker_outside_of_the_assignment_holds_is_said_though_it_was_never_committed():
    """A clean election without it proves that: acks=1 may have been answered all the same, and its directory is the last that holds it."""
    before = led(4, {1, 2, 4}, replicas=(1, 2, 4)).states[0]
    after = replace(led(1, {1, 2}, epoch=1, replicas=(1, 2)).states[0], recorded_at=2, time_ms=2)
    new = [[batch(0, 39, 0)], [batch(40, 49, 1)]]
    report = judged(
        replica(1, *new), replica(2, *new), replica(4, [batch(0, 59, 0)]), facts=Facts(states=(before, after))
    )
    said = answer(report)

    assert (0, 0, 20) == (
        report.unassigned_counts.certain,
        report.unassigned_counts.possible,
        report.unassigned_counts.no,
    )
    assert State.UNCOMMITTED_ONLY is said.state
    assert "directories of broker 4 that are no replica any more hold 20 records" in said.headline
    assert "agree" not in said.headline
    assert any("Copy these directories" in str(one) for one in said.now)


def out_of_order(one, *, position=0):
    """A replica in whose first segment the offsets do not rise at a place, as verify knows it."""
    place = Damage(span=Span(position, 100), kind=DamageKind.ORDER, expected="a base offset above 9", found="3")
    first, *others = one.segments
    return replace(one, segments=(replace(first, damage=(place,)), *others))


def test_replicas_that_are_damaged_have_no_vote_on_one_that_is_not():
    rows, other = [batch(0, 9, 0), batch(10, 29, 0)], [batch(0, 9, 0), batch(10, 29, 0, 7)]
    damaged = [out_of_order(replica(at, rows)) for at in (1, 2, 4)]
    sound = replica(3, other)

    said = answer(judged(*damaged, sound, facts=led(1, {1, 2, 3, 4}, replicas=(1, 2, 3, 4))))

    assert State.DIVERGED is said.state
    assert (
        "The odd ones out: brokers 1, 2 and 4 (its log is damaged: expected a base offset above 9, found 3)."
        in said.headline
    )
    assert said.now[0].startswith(
        "Have broker 3 lead t-0, of which all is intact there, then let brokers 1, 2 and 4 copy it again"
    )
    assert not any("let broker 3" in words for words in said.now)
    # Damage behind the place in another segment says nothing of it: these have a vote.
    later = Damage(span=Span(0, 100), kind=DamageKind.ORDER, expected="a base offset above 50", found="3")
    behind = [replica(at, rows, [batch(30, 60, 0)]) for at in (1, 2)]
    behind = [replace(one, segments=(one.segments[0], replace(one.segments[1], damage=(later,)))) for one in behind]
    said = answer(judged(*behind, replica(3, other, [batch(30, 60, 0)]), facts=led(1, {1, 2, 3})))
    assert "The odd one out: broker 3 (2 of the 3 replicas given hold the same there)." in said.headline
    assert said.now[0].startswith(
        "Empty and delete no replica of t-0. No other one given is known to hold all that broker 3 holds"
    )


def test_where_no_replica_is_intact_none_is_the_odd_one():
    rows, other = [batch(0, 9, 0), batch(10, 29, 0)], [batch(0, 9, 0), batch(10, 29, 0, 7)]
    logs = [out_of_order(replica(1, rows)), out_of_order(replica(2, rows)), out_of_order(replica(3, other))]

    said = answer(judged(*logs, facts=led(1, {1, 2, 3})))

    assert "odd one" not in said.headline
    assert "Don't delete anything." in said.now[0]
    assert not any("empty directory" in words for words in said.now)


def test_nothing_is_emptied_of_which_no_other_holds_all():
    rows, other = [batch(0, 9, 0), batch(10, 29, 0)], [batch(0, 9, 0), batch(10, 29, 0, 7), batch(30, 39, 0)]

    said = answer(judged(replica(1, rows), replica(2, rows), replica(3, other), facts=led(3, {1, 2, 3})))

    (kept,) = [words for words in said.now if "Empty and delete" in words]
    assert "(broker 1 0..29, broker 2 0..29, broker 3 0..39)" in kept
    assert not any("copy it again into an empty directory" in words for words in said.now)
