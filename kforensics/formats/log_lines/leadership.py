"""Lines about leaders, followers, elections and in-sync replicas (state-change.log, controller.log, server.log).

Fields: `leader`, `leader_epoch`, `previous_leader_epoch`, `partition_epoch`, `isr`; `high_watermark`; `offset` is the
log end of a leader at the start of its epoch, and of a follower before it truncates. A shrink line carries the leader's
`high_watermark` and `log_end_offset`. A ZooKeeper controller names `all` brokers that are alive. A reassignment names the `replicas` that are to be, and those it is `adding` and `removing`.
"""

from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.formats.log_lines.shape import Shape, shape

_STATE_OF = (
    rb"(?:[A-Za-z]*PartitionState\(topicName='(?P<topic>[A-Za-z0-9._-]{1,249})', partitionIndex=(?P<topic_index>\d{1,9}))?"
    rb"[^\n]{0,600}?(?:leader={leader}, leaderEpoch={leader_epoch}, isr=(?:List\(|\[)?(?P<isr>(?:\d+(?:, ?)?)*+)"
    rb"|Leader:{old_leader},ISR:(?P<old_isr>(?:\d+,?)*+),?LeaderEpoch:{old_leader_epoch})"
    rb"(?:[^\n]{0,900}? for partition {any_partition})?"
)

# What a controller told a broker that keeps its role: only the ISR, the replicas or their directories changed. 3.3 to 4.1, then 4.2 and later.
_KEPT_ROLE = (
    rb"{partition} with topic id Some\({topic_id}\)(?: and partition state |, partition registration )[^\n]{0,2000}?(?:"
    rb"leader={leader}, leaderEpoch={leader_epoch}, isr=\[{isr}\], partitionEpoch={partition_epoch}, replicas=\[{replicas}\]"
    rb"[^\n]{0,300}?leaderRecoveryState=(?P<recovery_state>\d)"
    rb"|isr=\[(?P<old_isr>[0-9, ]*)\][^\n]{0,1000}? elr=\[{elr}\][^\n]{0,1000}? leader=(?P<old_leader>-?\d{1,10}), leaderRecoveryState=(?P<old_recovery_state>[A-Z]{1,20}), "
    rb"leaderEpoch=(?P<old_leader_epoch>\d{1,10}), partitionEpoch=(?P<old_partition_epoch>\d{1,10}))"
)

LEADERSHIP_SHAPES: tuple[Shape, ...] = (
    shape(
        Kind.LEADER_START,
        b"Leader ",
        rb"{partition}(?: with topic id Some\({topic_id}\))?(?: with topic id None)? starts at leader epoch "
        rb"{leader_epoch} from offset {offset} with (?:partition epoch {partition_epoch}, )?high watermark "
        rb"{high_watermark},? ISR \[{isr}\][^\n]{0,2000}?revious leader epoch was {previous_leader_epoch}",
    ),
    shape(
        Kind.FOLLOWER_START,
        b"Follower ",
        rb"{partition}(?: with topic id Some\({topic_id}\))?(?: with topic id None)? starts at leader epoch "
        rb"{leader_epoch} from offset {offset} with (?:partition epoch {partition_epoch} and )?high watermark "
        rb"{high_watermark}\.(?: Current leader is {leader}\.)?[^\n]{0,200}?revious leader epoch was "
        rb"{previous_leader_epoch}",
    ),
    # 0.11 to 2.5, the leader only; the line begins with the partition's name. 2.4 and 2.5 have no colon.
    shape(
        Kind.LEADER_START,
        b"",
        rb"{partition} starts at [Ll]eader [Ee]poch {leader_epoch} from offset {offset}(?: with high watermark "
        rb"{high_watermark})?\. Previous [Ll]eader [Ee]poch was:? {previous_leader_epoch}",
    ),
    shape(Kind.LEADER_RECOVERED, b"The topic partition ", rb"{partition} was marked as RECOVERING"),
    shape(Kind.PARTITION_STATE, b"Skipped the become-leader state change for ", _KEPT_ROLE),
    shape(Kind.PARTITION_STATE, b"Skipped the become-follower state change for ", _KEPT_ROLE),
    shape(Kind.LEADER_AND_ISR, b"Sending become-leader LeaderAndIsr request ", _STATE_OF),
    shape(Kind.LEADER_AND_ISR, b"Sending become-follower LeaderAndIsr request ", _STATE_OF),
    shape(Kind.LEADER_AND_ISR, b"sending become-leader LeaderAndIsr request ", _STATE_OF),
    shape(Kind.LEADER_AND_ISR, b"sending become-follower LeaderAndIsr request ", _STATE_OF),
    shape(Kind.LEADER_AND_ISR, b"Received LeaderAndIsr request ", _STATE_OF),
    shape(Kind.LEADER_AND_ISR, b"received LeaderAndIsr request ", _STATE_OF),
    shape(
        Kind.PARTITION_ONLINE,
        b"Changed partition ",
        rb"{any_partition} from (?P<state>[A-Za-z]{1,40}) to OnlinePartition with state "
        rb"LeaderAndIsr\(leader={leader}, leaderEpoch={leader_epoch}, isr=List\({isr}\)",
    ),
    shape(
        Kind.PARTITION_ONLINE,
        b"changed partition ",
        rb"{any_partition} from (?P<state>[A-Za-z]{1,40}) to OnlinePartition with leader {leader}",
    ),
    # The controller removes a replica from the ISR when it is offline or deleted.
    shape(
        Kind.PARTITION_ONLINE,
        b"Partition ",
        rb"{partition} state changed to \(Leader:{leader},ISR:(?P<isr>(?:\d+,?)*+),?LeaderEpoch:{leader_epoch}",
    ),
    shape(
        Kind.REPLICAS_ASSIGNED,
        b"Changed partition ",
        rb"{any_partition} state from NonExistentPartition to NewPartition with assigned replicas "
        rb"(?:\[|List\()?{replicas}",
    ),
    shape(
        Kind.REPLICAS_ASSIGNED,
        b"changed partition ",
        rb"{any_partition} state from NonExistentPartition to NewPartition with assigned replicas "
        rb"(?:\[|List\()?{replicas}",
    ),
    shape(
        Kind.REASSIGNMENT,
        b"Sent LeaderAndIsr request ",
        rb"[^\n]{0,600}? with new replica assignment (?:Partition)?ReplicaAssignment\(replicas={all}, "
        rb"addingReplicas={adding}, removingReplicas={removing}\) to leader {leader} for partition being "
        rb"reassigned {any_partition}",
    ),
    shape(
        Kind.REASSIGNMENT,
        b"Leader ",
        rb"{leader} for partition {any_partition} being reassigned, is (?:already|not) in the new list of replicas "
        rb"(?:List\()?{replicas}",
    ),
    shape(
        Kind.REASSIGNMENT,
        b"Handling reassignment of partition ",
        rb"{any_partition} (?:from current replicas (?:List\()?{all}\)? )?to new replicas (?:List\()?{replicas}",
    ),
    shape(
        Kind.LEADER_SELECTED,
        b"Selected new leader and ISR ",
        rb"\{\"leader\":{leader},\"leader_epoch\":{leader_epoch},\"isr\":\[{isr}\]\} for offline partition "
        rb"{any_partition}",
    ),
    shape(
        Kind.UNCLEAN_ELECTION,
        b"No broker in ISR is alive for ",
        rb"{any_partition}\. Elect leader {leader} from live brokers {replicas}",
    ),
    # A partition that merely loses its leader (`leader: 1 -> -1`) is called UNCLEAN too: only the recovery state shows an unclean election.
    shape(
        Kind.UNCLEAN_ELECTION,
        b"UNCLEAN partition change for ",
        rb"{partition} with topic ID {topic_id}: (?P<diff>[^\n]{0,2000}?leaderRecoveryState: RECOVERED -> "
        rb"RECOVERING[^\n]{0,400})",
    ),
    shape(
        Kind.PARTITION_CHANGE,
        b"UNCLEAN partition change for ",
        rb"{partition} with topic ID {topic_id}: (?P<diff>[^\n]{0,2000})",
    ),
    shape(
        Kind.PARTITION_CHANGE,
        b"partition change for ",
        rb"{partition} with topic ID {topic_id}: (?P<diff>[^\n]{0,2000})",
    ),
    shape(
        Kind.UNCLEAN_ELECTION,
        b"Setting new leader for topicId ",
        rb"{topic_id}, partition {partition_index} to {leader} using an unclean election",
    ),
    shape(
        Kind.ISR_SHRINK,
        b"Shrinking ISR ",
        rb"(?:for partition {any_partition} )?from (?P<from_isr>[0-9, ]+?) to {to_isr}(?:\. Leader: "
        rb"\(highWatermark: {high_watermark}, endOffset: {log_end_offset}\)(?:\. Out of sync replicas: "
        rb"(?P<text>[^\n]{0,1000}?)\.? \(kafka)?)?",
    ),
    shape(
        Kind.ISR_EXPAND,
        b"Expanding ISR ",
        rb"(?:for partition {any_partition} )?from (?P<from_isr>[0-9, ]*?) to (?P<to_isr>[0-9, ]+)",
    ),
    shape(
        Kind.ISR_UPDATED,
        b"ISR updated to ",
        rb"[\[(]?(?P<isr>[0-9, ]{0,2000})[\])]?(?: \(under-min-isr\))? ?(?:and (?:zkVersion|version) updated to "
        rb"\[?{partition_epoch})?",
    ),
    shape(Kind.ISR_REFUSED, b"Cached zkVersion ", rb"\[?\d{1,10}\]? not equal to that in zookeeper, skip updating ISR"),
    # 2.7 and later, up to 3.2 and from 3.3; some are asked for again, and an update follows where one is given.
    shape(Kind.ISR_REFUSED, b"Failed to update ISR to ", rb"Pending"),
    shape(Kind.ISR_REFUSED, b"Failed to alter partition to ", rb"Pending"),
    # The controller takes all others out of every ISR, but never the last member.
    shape(
        Kind.LIVE_BROKERS,
        b"Newly added brokers: ",
        rb"[0-9,]{0,2000}, deleted brokers: [0-9,]{0,2000},(?: bounced brokers: [0-9,]{0,2000},)? all live brokers: (?P<all>[0-9,]*)",
    ),
    shape(Kind.LIVE_BROKERS, b"Currently active brokers in the cluster: ", rb"[A-Za-z.]{0,40}\((?P<all>[0-9, ]*)\)"),
    shape(Kind.PARTITION_FAILED, b"Partition ", rb"{partition} marked as failed"),
    shape(
        Kind.CONTROLLER_ELECTED,
        b"Completed transition to Leader",
        rb"(?:State)?\([^\n]{0,400}?epoch={controller_epoch}, epochStartOffset={offset}",
    ),
)
