"""Lines about truncation, most of them in server.log (ReplicaFetcherThread, Log/UnifiedLog, LocalLog, KafkaRaftClient).

Fields: `offset` is the target, the first offset removed; `log_end_offset` the log end before; `high_watermark`;
`leader`; `leader_epoch` and `end_offset` are the leader's answer; `rule` names what decided.
"""

from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.formats.log_lines.shape import ANY_P, P, Shape, number, shape

_FOLLOWER = rb"(?:follower's|replica's) leader epoch, leader replied with "
_OFFSET = number("offset")
_EPOCH_ANSWER = (
    rb"leader epoch and offset (?:Optional\[)?EpochEndOffset\(errorCode=-?\d+, partition=\d+, leaderEpoch="
    + number("leader_epoch")
    + rb", endOffset="
    + number("end_offset")
)

TRUNCATION_SHAPES: tuple[Shape, ...] = (
    # UnifiedLog.truncateTo; the identity in brackets names the partition since 1.0.
    shape(Kind.TRUNCATION, b"Truncating to offset ", _OFFSET),
    shape(
        Kind.TRUNCATION_WITHOUT_EFFECT,
        b"Truncating to ",
        _OFFSET + rb" has no effect as the largest offset in the log is " + number("last_offset"),
    ),
    shape(Kind.TRUNCATION, b"Truncating log ", ANY_P + rb" to offset " + _OFFSET + rb"\.?"),
    shape(Kind.FULL_TRUNCATION, b"Truncate and start at offset ", _OFFSET),
    shape(Kind.FULL_TRUNCATION, b"Truncate and start log ", rb"'" + ANY_P + rb"' (?:at offset|to) " + _OFFSET),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Truncating partition ",
        P + rb" with TruncationState\(offset=" + _OFFSET + rb", completed=(?:true|false)\) due to " + _EPOCH_ANSWER,
        rule="epoch",
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Truncating partition ",
        P
        + rb" with TruncationState\(offset="
        + _OFFSET
        + rb", completed=(?:true|false)\) due to local high watermark "
        + number("high_watermark"),
        rule="high-watermark",
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Truncating partition ",
        P + rb" to local high watermark (?P<offset>-?\d{1,19})",
        rule="high-watermark",
    ),
    shape(
        Kind.TRUNCATION_BELOW_HIGH_WATERMARK,
        b"Truncating ",
        rb"(?:future )?" + ANY_P + rb" to offset " + _OFFSET + rb" below high watermark " + number("high_watermark"),
    ),
    shape(
        Kind.TRUNCATION_WITHOUT_EFFECT,
        b"Truncating ",
        ANY_P + rb" to " + _OFFSET + rb" has no effect as the largest offset in the log is " + number("last_offset"),
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Based on ",
        _FOLLOWER
        + rb"an offset "
        + number("offset")
        + rb" >= the (?:follower|replica)'s log end offset "
        + number("log_end_offset")
        + rb" in "
        + ANY_P,
        rule="epoch",
        needed=False,
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Based on ",
        _FOLLOWER
        + rb"an unknown offset in "
        + ANY_P
        + rb"\. (?:High watermark|The initial fetch offset) "
        + _OFFSET
        + rb" will be used",
        rule="high-watermark",
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Based on ",
        _FOLLOWER
        + rb"epoch "
        + number("leader_epoch")
        + rb" unknown to the replica for "
        + ANY_P
        + rb"\. Will truncate to "
        + _OFFSET,
        rule="epoch",
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Based on ",
        _FOLLOWER
        + rb"epoch "
        + number("leader_epoch")
        + rb" below any replica's tracked epochs for "
        + ANY_P
        + rb"\. The leader's offset only "
        + _OFFSET,
        rule="leader-offset",
    ),
    shape(
        Kind.TRUNCATION_DECISION,
        b"Leader or replica is on protocol version ",
        rb"where leader epoch is not considered in the OffsetsForLeaderEpoch response\. The leader's offset "
        + _OFFSET
        + rb" will be used for truncation in "
        + ANY_P,
        rule="leader-offset",
    ),
    *(
        shape(
            Kind.FETCH_OFFSET_RESET,
            b"Reset fetch offset for partition ",
            ANY_P + rb" from " + number("log_end_offset") + rb" to (?:the )?current " + target + rb" offset " + _OFFSET,
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
            number("replica")
            + rb" for partition "
            + ANY_P
            + rb" reset its fetch offset from "
            + number("log_end_offset")
            + rb" to current leader "
            + number("leader")
            + rb"'s "
            + target
            + rb" offset "
            + _OFFSET,
            rule=rule,
        )
        for target, rule in ((rb"latest", "leader-end"), (rb"start", "leader-start"))
    ),
    shape(
        Kind.FULL_TRUNCATION,
        b"Truncate fully and reset fetch offset for partition ",
        P + rb" from " + number("log_end_offset") + rb" to the current leader's start offset " + _OFFSET,
        rule="leader-start",
    ),
    shape(
        Kind.TRUNCATION_REFUSED,
        b"Exiting because log truncation is not allowed for ",
        rb"(?:topic |partition )"
        + ANY_P
        + rb", [Cc]urrent leader "
        + number("leader")
        + rb"'s latest offset "
        + number("offset")
        + rb" is less than replica "
        + number("replica")
        + rb"'s latest offset "
        + number("log_end_offset"),
    ),
    shape(
        Kind.SEGMENTS_TRUNCATED,
        b"Deleting segments as part of log truncation: ",
        rb"LogSegment\(baseOffset=" + number("base_offset"),
    ),
    shape(
        Kind.METADATA_TRUNCATION,
        b"Truncated to offset ",
        _OFFSET + rb" from Fetch response from leader " + number("leader"),
        rule="epoch",
    ),
    shape(
        Kind.METADATA_TRUNCATION,
        b"Fully truncated the log at ",
        rb"\((?:LogOffsetMetadata\(offset=|offset=)?" + _OFFSET + rb"[^\n]{0,400}? after downloading snapshot ",
        rule="snapshot",
    ),
)
