"""Lines about loading, recovery, high watermarks, leader epochs and log start offsets (server.log).

Fields: `log_end_offset`, `log_start_offset`, `high_watermark`, `offset` (a target or a place in the log), `base_offset`
of a segment, `position` in bytes, `directory` or `path` as the broker knows it, `topic_name` of a whole topic.
"""

from kforensics.formats.log_lines.event import EMPTIED_SEGMENT
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.formats.log_lines.shape import ANY_P, P, Shape, number, shape

_END = number("log_end_offset")
_DIRECTORY = rb"(?P<directory>[^\n]{1,4096}?)"
_PATH = rb"(?P<path>[^\n]{1,4096}?)"
_OF_PARTITION = rb" (?:of|in|for) log " + ANY_P

RECOVERY_SHAPES: tuple[Shape, ...] = (
    shape(
        Kind.CLEAN_START,
        b"Found clean shutdown file. Skipping recovery for all logs in data directory",
        rb":? ?'?" + _DIRECTORY + rb"'?(?: \(|\n|$)",
    ),
    shape(
        Kind.CLEAN_START,
        b"Skipping recovery ",
        rb"(?:for all|of \d+) logs (?:in|from) " + _DIRECTORY + rb" since clean shutdown file was found",
    ),
    shape(
        Kind.RECOVERY_START,
        b"Attempting recovery for all logs in ",
        _DIRECTORY + rb" since no clean shutdown file was found",
    ),
    shape(
        Kind.RECOVERY_START,
        b"Recovering ",
        rb"\d+ logs from " + _DIRECTORY + rb" since no clean shutdown file was found",
    ),
    shape(
        Kind.SEGMENT_RECOVERY,
        b"Recovering unflushed segment ",
        number("base_offset") + rb"(?:" + _OF_PARTITION + rb"|\. [0-9/]+ recovered for (?P<old_text>\S+))?",
    ),
    shape(
        Kind.INVALID_RECORDS,
        b"Found invalid messages in log segment ",
        _PATH + rb" at byte offset " + number("position") + rb"(?:: (?P<reason>[^\n]{0,400}))?",
    ),
    shape(
        Kind.RECOVERY_TRUNCATION,
        b"Corruption found in segment ",
        number("base_offset") + rb"(?:" + _OF_PARTITION + rb")?, truncating to offset " + number("offset"),
    ),
    shape(
        Kind.RECOVERY_TRUNCATION,
        b"Found invalid offset during recovery",
        rb"(?: for log (?P<directory>[^\n]{1,4096}?))?"
        rb"\. Deleting the corrupt segment and creating an empty one with starting offset " + number("offset"),
        reason=EMPTIED_SEGMENT,
    ),
    shape(
        Kind.SEGMENTS_DELETED,
        b"Deleting segments as part of log recovery: ",
        rb"LogSegment\(baseOffset=" + number("base_offset"),
        reason="recovery",
    ),
    shape(
        Kind.SEGMENTS_DELETED,
        b"Deleting all segments because logEndOffset ",
        rb"\(" + _END + rb"\) is smaller than logStartOffset \(?" + number("log_start_offset"),
        reason="log end below log start",
    ),
    shape(
        Kind.LOG_LOADED,
        b"Completed load of log ",
        rb"(?:"
        + ANY_P
        + rb" )?with \d+ (?:log )?segments(?:, log start offset "
        + number("log_start_offset")
        + rb")? and log end offset "
        + _END,
    ),
    shape(Kind.LOG_LOADED, b"Completed load of log ", ANY_P + rb" with log end offset " + _END),
    shape(
        Kind.LOG_LOADED,
        b"Completed load of ",
        rb"(?:Unified)?Log\(dir=(?P<directory>[^\n,]{1,4096}), (?:topicId=(?P<topic_id>[^,\n]{0,64}), )?"
        rb"topic=(?P<topic>[A-Za-z0-9._-]{1,249}), partition=(?P<topic_index>\d{1,9}), highWatermark="
        + number("high_watermark")
        + rb", lastStableOffset=-?\d+, logStartOffset="
        + number("log_start_offset")
        + rb", logEndOffset="
        + _END
        + rb"\)",
    ),
    shape(Kind.PRODUCER_SNAPSHOT, b"Writing producer snapshot at offset ", number("offset")),
    shape(Kind.PRODUCER_SNAPSHOT, b"Wrote producer snapshot at offset ", number("offset")),
    shape(Kind.INDEX_REBUILT, b"Could not find offset index file corresponding to log file ", _PATH + rb", r"),
    shape(
        Kind.INDEX_REBUILT,
        b"Found a corrupted index file ",
        rb"(?:corresponding to log file " + _PATH + rb" )?due to (?P<reason>[^\n]{0,400})",
    ),
    shape(Kind.INDEX_REBUILT, b"Found an orphaned index file ", _PATH + rb", with no corresponding"),
    shape(
        Kind.CHECKPOINT_UNREADABLE,
        b"Error occurred while reading ",
        rb"(?P<path>[a-z-]{1,64}) file of directory " + _DIRECTORY + rb", resetting",
    ),
    shape(
        Kind.HIGH_WATERMARK_LOADED,
        b"Log loaded for partition ",
        P + rb" with initial high watermark " + number("high_watermark"),
    ),
    shape(
        Kind.HIGH_WATERMARK_LOADED,
        b"Replica loaded for partition ",
        P + rb" with initial high watermark " + number("high_watermark"),
    ),
    shape(Kind.HIGH_WATERMARK_MISSING, b"No checkpointed highwatermark is found for partition ", ANY_P),
    shape(
        Kind.HIGH_WATERMARK_REGRESSION,
        b"Non-monotonic update of high watermark from ",
        rb"[^\n]{0,40}?" + number("high_watermark") + rb"[^\n]{0,200}? to [^\n]{0,40}?" + number("offset"),
    ),
    shape(Kind.STRAY_LOG, b"Found stray log dir ", rb"(?P<path>[^\n]{1,4096}?): (?P<reason>[^\n]{0,400})"),
    shape(Kind.STRAY_LOG, b"Log in ", _DIRECTORY + rb" marked stray and renamed to (?P<path>\S+)"),
    shape(Kind.STRAY_LOG, b"Loaded stray log: ", rb"(?P<path>\S+)"),
    shape(Kind.LOG_CREATED, b"Created log for partition ", ANY_P + rb" in " + _DIRECTORY + rb" with properties "),
    shape(
        Kind.LOG_DISCARDED,
        b"Log for partition ",
        ANY_P + rb" is renamed to (?P<path>\S{1,4096}-delete) and is scheduled for deletion",
    ),
    shape(
        Kind.TOPIC_DELETED,
        b"Deletion of topic ",
        rb"(?P<topic_name>[A-Za-z0-9._-]{1,249}) successfully completed",
    ),
    shape(
        Kind.EPOCH_ASSIGNED,
        b"Updated PartitionLeaderEpoch. New: ",
        rb"\{epoch:"
        + number("leader_epoch")
        + rb", offset:"
        + number("offset")
        + rb"\}, Current: \{epoch:"
        + number("previous_leader_epoch")
        + rb", offset:?-?\d+\} for Partition: "
        + ANY_P,
    ),
    shape(
        Kind.EPOCH_CONFLICT,
        b"New epoch entry ",
        rb"EpochEntry[(\[]epoch="
        + number("leader_epoch")
        + rb", startOffset="
        + number("offset")
        + rb"[)\]] caused truncation",
    ),
    shape(
        Kind.EPOCH_CONFLICT,
        b"Cleared latest ",
        rb"(?P<old_text>[^\n]{0,2000}?) ?entries from epoch cache based on passed offset "
        + number("offset")
        + rb" leaving \d+ in EpochFile for partition "
        + ANY_P,
    ),
    shape(Kind.LOG_START_MOVED, b"Incrementing log start offset to ", number("log_start_offset")),
    shape(
        Kind.LOG_START_MOVED,
        b"Incremented log start offset to ",
        number("log_start_offset") + rb"(?: due to (?:reason )?(?P<reason>[a-z]{1,30}(?: [a-z]{1,30}){0,5}))?",
    ),
    shape(
        Kind.BATCH_SKIPPED,
        b"Skipping batch ",
        rb"[^\n]{0,600}? from an origin of REPLICATION because its partition leader epoch "
        + number("leader_epoch")
        + rb" is higher than the replica's current leader epoch "
        + number("previous_leader_epoch"),
    ),
    shape(
        Kind.FETCH_CORRUPTION,
        b"Found invalid messages during fetch for partition ",
        ANY_P + rb" offset " + number("offset"),
    ),
)
