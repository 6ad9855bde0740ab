"""Lines about leaders, followers, elections and in-sync replicas (state-change.log, controller.log, server.log).

Fields: `leader`, `leader_epoch`, `previous_leader_epoch`, `partition_epoch`, `isr`; `high_watermark`; `offset` is the
log end of a leader at the start of its epoch, and of a follower before it truncates. A shrink line carries the leader's
`high_watermark` and `log_end_offset`. A ZooKeeper controller names `all` brokers that are alive. A reassignment names the `replicas` that are to be, and those it is `adding` and `removing`.
"""

from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.formats.log_lines.shape import ANY_P, P, Shape, number, shape

_EPOCH_FROM = rb" starts at leader epoch " + number("leader_epoch") + rb" from offset " + number("offset") + rb" with "
_ISR = rb"[\[(]?(?P<isr>[0-9, ]{0,2000})[\])]?"
_STATE = (
    rb"[^\n]{0,600}?(?:leader="
    + number("leader")
    + rb", leaderEpoch="
    + number("leader_epoch")
    + rb", isr=(?:List\(|\[)?(?P<isr>(?:\d+(?:, ?)?)*+)"
    rb"|Leader:"
    + number("old_leader")
    + rb",ISR:(?P<old_isr>(?:\d+,?)*+),?LeaderEpoch:"
    + number("old_leader_epoch")
    + rb")"
)
_STATE_OF = (
    rb"(?:[A-Za-z]*PartitionState\(topicName='(?P<topic>[A-Za-z0-9._-]{1,249})', "
    rb"partitionIndex=(?P<topic_index>\d{1,9}))?" + _STATE + rb"(?:[^\n]{0,900}? for partition " + ANY_P + rb")?"
)

LEADERSHIP_SHAPES: tuple[Shape, ...] = (
    shape(
        Kind.LEADER_START,
        b"Leader ",
        P
        + rb"(?: with topic id Some\((?P<topic_id>[A-Za-z0-9_-]{22})\))?(?: with topic id None)?"
        + _EPOCH_FROM
        + rb"(?:partition epoch "
        + number("partition_epoch")
        + rb", )?high watermark "
        + number("high_watermark")
        + rb",? ISR \[(?P<isr>[0-9, ]*)\][^\n]{0,2000}?revious leader epoch was "
        + number("previous_leader_epoch"),
    ),
    shape(
        Kind.FOLLOWER_START,
        b"Follower ",
        P
        + rb"(?: with topic id Some\((?P<topic_id>[A-Za-z0-9_-]{22})\))?(?: with topic id None)?"
        + _EPOCH_FROM
        + rb"(?:partition epoch "
        + number("partition_epoch")
        + rb" and )?high watermark "
        + number("high_watermark")
        + rb"\.(?: Current leader is "
        + number("leader")
        + rb"\.)?[^\n]{0,200}?revious leader epoch was "
        + number("previous_leader_epoch"),
    ),
    # 0.11 to 2.5, the leader only; the line begins with the partition's name. 2.4 and 2.5 have no colon.
    shape(
        Kind.LEADER_START,
        b"",
        P
        + rb" starts at [Ll]eader [Ee]poch "
        + number("leader_epoch")
        + rb" from offset "
        + number("offset")
        + rb"(?: with high watermark "
        + number("high_watermark")
        + rb")?\. Previous [Ll]eader [Ee]poch was:? "
        + number("previous_leader_epoch"),
    ),
    shape(Kind.LEADER_RECOVERED, b"The topic partition ", P + rb" was marked as RECOVERING"),
    shape(Kind.LEADER_AND_ISR, b"Sending become-leader LeaderAndIsr request ", _STATE_OF),
    shape(Kind.LEADER_AND_ISR, b"Sending become-follower LeaderAndIsr request ", _STATE_OF),
    shape(Kind.LEADER_AND_ISR, b"sending become-leader LeaderAndIsr request ", _STATE_OF),
    shape(Kind.LEADER_AND_ISR, b"sending become-follower LeaderAndIsr request ", _STATE_OF),
    shape(Kind.LEADER_AND_ISR, b"Received LeaderAndIsr request ", _STATE_OF),
    shape(Kind.LEADER_AND_ISR, b"received LeaderAndIsr request ", _STATE_OF),
    shape(
        Kind.PARTITION_ONLINE,
        b"Changed partition ",
        ANY_P
        + rb" from (?P<state>[A-Za-z]{1,40}) to OnlinePartition with state LeaderAndIsr\(leader="
        + number("leader")
        + rb", leaderEpoch="
        + number("leader_epoch")
        + rb", isr=List\((?P<isr>[0-9, ]*)\)",
    ),
    shape(
        Kind.PARTITION_ONLINE,
        b"changed partition ",
        ANY_P + rb" from (?P<state>[A-Za-z]{1,40}) to OnlinePartition with leader " + number("leader"),
    ),
    # The controller removes a replica from the ISR when it is offline or deleted.
    shape(
        Kind.PARTITION_ONLINE,
        b"Partition ",
        P
        + rb" state changed to \(Leader:"
        + number("leader")
        + rb",ISR:(?P<isr>(?:\d+,?)*+),?LeaderEpoch:"
        + number("leader_epoch"),
    ),
    shape(
        Kind.REPLICAS_ASSIGNED,
        b"Changed partition ",
        ANY_P
        + rb" state from NonExistentPartition to NewPartition with assigned replicas (?:\[|List\()?(?P<replicas>[0-9, ]*)",
    ),
    shape(
        Kind.REPLICAS_ASSIGNED,
        b"changed partition ",
        ANY_P
        + rb" state from NonExistentPartition to NewPartition with assigned replicas (?:\[|List\()?(?P<replicas>[0-9, ]*)",
    ),
    shape(
        Kind.REASSIGNMENT,
        b"Sent LeaderAndIsr request ",
        rb"[^\n]{0,600}? with new replica assignment (?:Partition)?ReplicaAssignment\(replicas=(?P<all>[0-9, ]*), "
        rb"addingReplicas=(?P<adding>[0-9, ]*), removingReplicas=(?P<removing>[0-9, ]*)\) to leader "
        + number("leader")
        + rb" for partition being reassigned "
        + ANY_P,
    ),
    shape(
        Kind.REASSIGNMENT,
        b"Leader ",
        number("leader") + rb" for partition " + ANY_P + rb" being reassigned, is (?:already|not) in the new list of "
        rb"replicas (?:List\()?(?P<replicas>[0-9, ]*)",
    ),
    shape(
        Kind.REASSIGNMENT,
        b"Handling reassignment of partition ",
        ANY_P
        + rb" (?:from current replicas (?:List\()?(?P<all>[0-9, ]*)\)? )?to new replicas (?:List\()?(?P<replicas>[0-9, ]*)",
    ),
    shape(
        Kind.LEADER_SELECTED,
        b"Selected new leader and ISR ",
        rb"\{\"leader\":"
        + number("leader")
        + rb",\"leader_epoch\":"
        + number("leader_epoch")
        + rb",\"isr\":\[(?P<isr>[0-9, ]*)\]\} for offline partition "
        + ANY_P,
    ),
    shape(
        Kind.UNCLEAN_ELECTION,
        b"No broker in ISR is alive for ",
        ANY_P + rb"\. Elect leader " + number("leader") + rb" from live brokers (?P<replicas>[0-9, ]*)",
    ),
    # A partition that merely loses its leader (`leader: 1 -> -1`) is called UNCLEAN too: only the recovery state shows an unclean election.
    shape(
        Kind.UNCLEAN_ELECTION,
        b"UNCLEAN partition change for ",
        P + rb" with topic ID (?P<topic_id>[A-Za-z0-9_-]{22}): "
        rb"(?P<diff>[^\n]{0,2000}?leaderRecoveryState: RECOVERED -> RECOVERING[^\n]{0,400})",
    ),
    shape(
        Kind.PARTITION_CHANGE,
        b"UNCLEAN partition change for ",
        P + rb" with topic ID (?P<topic_id>[A-Za-z0-9_-]{22}): (?P<diff>[^\n]{0,2000})",
    ),
    shape(
        Kind.PARTITION_CHANGE,
        b"partition change for ",
        P + rb" with topic ID (?P<topic_id>[A-Za-z0-9_-]{22}): (?P<diff>[^\n]{0,2000})",
    ),
    shape(
        Kind.UNCLEAN_ELECTION,
        b"Setting new leader for topicId ",
        rb"(?P<topic_id>[A-Za-z0-9_-]{22}), partition "
        + number("partition_index")
        + rb" to "
        + number("leader")
        + rb" using an unclean election",
    ),
    shape(
        Kind.ISR_SHRINK,
        b"Shrinking ISR ",
        rb"(?:for partition "
        + ANY_P
        + rb" )?from (?P<from_isr>[0-9, ]+?) to (?P<to_isr>[0-9, ]*)(?:\. Leader: \(highWatermark: "
        + number("high_watermark")
        + rb", endOffset: "
        + number("log_end_offset")
        + rb"\)(?:\. Out of sync replicas: (?P<text>[^\n]{0,1000}?)\.? \(kafka)?)?",
    ),
    shape(
        Kind.ISR_EXPAND,
        b"Expanding ISR ",
        rb"(?:for partition " + ANY_P + rb" )?from (?P<from_isr>[0-9, ]*?) to (?P<to_isr>[0-9, ]+)",
    ),
    shape(
        Kind.ISR_UPDATED,
        b"ISR updated to ",
        _ISR
        + rb"(?: \(under-min-isr\))? ?(?:and (?:zkVersion|version) updated to \[?"
        + number("partition_epoch")
        + rb")?",
    ),
    # The controller takes all others out of every ISR, but never the last member.
    shape(
        Kind.LIVE_BROKERS,
        b"Newly added brokers: ",
        rb"[0-9,]{0,2000}, deleted brokers: [0-9,]{0,2000},(?: bounced brokers: [0-9,]{0,2000},)? all live brokers: (?P<all>[0-9,]*)",
    ),
    shape(Kind.LIVE_BROKERS, b"Currently active brokers in the cluster: ", rb"[A-Za-z.]{0,40}\((?P<all>[0-9, ]*)\)"),
    shape(Kind.PARTITION_FAILED, b"Partition ", P + rb" marked as failed"),
    shape(
        Kind.CONTROLLER_ELECTED,
        b"Completed transition to Leader",
        rb"(?:State)?\([^\n]{0,400}?epoch=" + number("controller_epoch") + rb", epochStartOffset=" + number("offset"),
    ),
)
