"""Lines about truncation, most of them in server.log (ReplicaFetcherThread, Log/UnifiedLog, LocalLog, KafkaRaftClient).

Fields: `offset` is the target, the first offset removed; `log_end_offset` the log end before; `high_watermark`;
`leader`; `leader_epoch` and `end_offset` are the leader's answer; `rule` names what decided.
"""

from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.formats.log_lines.shape import Shape, shape

_FOLLOWER = rb"(?:follower's|replica's) leader epoch, leader replied with "
_EPOCH_ANSWER = (
    rb"leader epoch and offset (?:Optional\[)?EpochEndOffset\(errorCode=-?\d+, partition=\d+, "
    rb"leaderEpoch={leader_epoch}, endOffset={end_offset}"
)

TRUNCATION_SHAPES: tuple[Shape, ...] = (
    # UnifiedLog.truncateTo; the identity in brackets names the partition since 1.0.
    # It is written only where something goes; the text of 0.11 and before always is.
    shape(Kind.TRUNCATION, b"Truncating to offset ", rb"{offset}", shortens=True),
    shape(
        Kind.TRUNCATION_WITHOUT_EFFECT,
        b"Truncating to ",
        rb"{offset} has no effect as the largest offset in the log is {last_offset}",
    ),
    shape(Kind.TRUNCATION, b"Truncating log ", rb"{any_partition} to offset {offset}\.?"),
    shape(Kind.FULL_TRUNCATION, b"Truncate and start at offset ", rb"{offset}"),
    shape(Kind.FULL_TRUNCATION, b"Truncate and start log ", rb"'{any_partition}' (?:at offset|to) {offset}"),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Truncating partition ",
        rb"{partition} with TruncationState\(offset={offset}, completed=(?:true|false)\) due to " + _EPOCH_ANSWER,
        rule="epoch",
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Truncating partition ",
        rb"{partition} with TruncationState\(offset={offset}, completed=(?:true|false)\) due to local high "
        rb"watermark {high_watermark}",
        rule="high-watermark",
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Truncating partition ",
        rb"{partition} to local high watermark {offset}",
        rule="high-watermark",
    ),
    shape(
        Kind.TRUNCATION_BELOW_HIGH_WATERMARK,
        b"Truncating ",
        rb"(?:future )?{any_partition} to offset {offset} below high watermark {high_watermark}",
    ),
    shape(
        Kind.TRUNCATION_WITHOUT_EFFECT,
        b"Truncating ",
        rb"{any_partition} to {offset} has no effect as the largest offset in the log is {last_offset}",
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Based on ",
        _FOLLOWER
        + rb"an offset {offset} >= the (?:follower|replica)'s log end offset {log_end_offset} in {any_partition}",
        rule="epoch",
        needed=False,
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Based on ",
        _FOLLOWER
        + rb"an unknown offset in {any_partition}\. (?:High watermark|The initial fetch offset) {offset} will be used",
        rule="high-watermark",
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Based on ",
        _FOLLOWER + rb"epoch {leader_epoch} unknown to the replica for {any_partition}\. Will truncate to {offset}",
        rule="epoch",
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Based on ",
        _FOLLOWER
        + rb"epoch {leader_epoch} below any replica's tracked epochs for {any_partition}\. The leader's offset only "
        rb"{offset}",
        rule="leader-offset",
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Leader or replica is on protocol version ",
        rb"where leader epoch is not considered in the OffsetsForLeaderEpoch response\. The leader's offset "
        rb"{offset} will be used for truncation in {any_partition}",
        rule="leader-offset",
    ),
    *(
        shape(
            Kind.FETCH_OFFSET_RESET,
            b"Reset fetch offset for partition ",
            rb"{any_partition} from {log_end_offset} to (?:the )?current " + target + rb" offset {offset}",
            rule=rule,
        )
        for target, rule in (
            (rb"leader's latest", "leader-end"),
            (rb"leader's start", "leader-start"),
            (rb"local replica's end", "local-end"),
        )
    ),
    *(
        shape(
            Kind.FETCH_OFFSET_RESET,
            b"Replica ",
            rb"{replica} for partition {any_partition} reset its fetch offset from {log_end_offset} to current leader "
            rb"{leader}'s " + target + rb" offset {offset}",
            rule=rule,
        )
        for target, rule in ((rb"latest", "leader-end"), (rb"start", "leader-start"))
    ),
    shape(
        Kind.FULL_TRUNCATION,
        b"Truncate fully and reset fetch offset for partition ",
        rb"{partition} from {log_end_offset} to the current leader's start offset {offset}",
        rule="leader-start",
    ),
    shape(
        Kind.TRUNCATION_REFUSED,
        b"Exiting because log truncation is not allowed for ",
        rb"(?:topic |partition ){any_partition}, [Cc]urrent leader {leader}'s latest offset {offset} is less than "
        rb"replica {replica}'s latest offset {log_end_offset}",
    ),
    shape(
        Kind.SEGMENTS_TRUNCATED,
        b"Deleting segments as part of log truncation: ",
        rb"LogSegment\(baseOffset={base_offset}",
    ),
    shape(
        Kind.METADATA_TRUNCATION,
        b"Truncated to offset ",
        rb"{offset} from Fetch response from leader {leader}",
        rule="epoch",
    ),
    shape(
        Kind.METADATA_TRUNCATION,
        b"Fully truncated the log at ",
        rb"\((?:LogOffsetMetadata\(offset=|offset=)?{offset}[^\n]{0,400}? after downloading snapshot ",
        rule="snapshot",
    ),
)
