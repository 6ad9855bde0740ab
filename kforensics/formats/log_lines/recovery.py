"""Lines about loading, recovery, high watermarks, leader epochs and log start offsets (server.log).

Fields: `log_end_offset`, `log_start_offset`, `high_watermark`, `offset` (a target or a place in the log), `base_offset`
of a segment, `position` in bytes, `directory` or `path` as the broker knows it, `topic_name` of a whole topic.
"""

from kforensics.formats.log_lines.event import EMPTIED_SEGMENT
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.formats.log_lines.shape import Shape, shape

_OF_PARTITION = rb" (?:of|in|for) log {any_partition}"

RECOVERY_SHAPES: tuple[Shape, ...] = (
    shape(
        Kind.CLEAN_START,
        b"Found clean shutdown file. Skipping recovery for all logs in data directory",
        rb":? ?'?{directory}'?(?: \(|\n|$)",
    ),
    shape(
        Kind.CLEAN_START,
        b"Skipping recovery ",
        rb"(?:for all|of \d+) logs (?:in|from) {directory} since clean shutdown file was found",
    ),
    shape(
        Kind.RECOVERY_START,
        b"Attempting recovery for all logs in ",
        rb"{directory} since no clean shutdown file was found",
    ),
    shape(Kind.RECOVERY_START, b"Recovering ", rb"\d+ logs from {directory} since no clean shutdown file was found"),
    shape(
        Kind.SEGMENT_RECOVERY,
        b"Recovering unflushed segment ",
        rb"{base_offset}(?:" + _OF_PARTITION + rb"|\. [0-9/]+ recovered for (?P<old_text>\S+))?",
    ),
    shape(
        Kind.INVALID_RECORDS,
        b"Found invalid messages in log segment ",
        rb"{path} at byte offset {position}(?:: (?P<reason>[^\n]{0,400}))?",
    ),
    shape(
        Kind.RECOVERY_TRUNCATION,
        b"Corruption found in segment ",
        rb"{base_offset}(?:" + _OF_PARTITION + rb")?, truncating to offset {offset}",
    ),
    shape(
        Kind.RECOVERY_TRUNCATION,
        b"Found invalid offset during recovery",
        rb"(?: for log {directory})?\. Deleting the corrupt segment and creating an empty one with starting offset "
        rb"{offset}",
        reason=EMPTIED_SEGMENT,
    ),
    shape(
        Kind.SEGMENTS_DELETED,
        b"Deleting segments as part of log recovery: ",
        rb"LogSegment\(baseOffset={base_offset}",
        reason="recovery",
    ),
    shape(
        Kind.SEGMENTS_DELETED,
        b"Deleting all segments because logEndOffset ",
        rb"\({log_end_offset}\) is smaller than logStartOffset \(?{log_start_offset}",
        reason="log end below log start",
    ),
    shape(
        Kind.LOG_LOADED,
        b"Completed load of log ",
        rb"(?:{any_partition} )?with \d+ (?:log )?segments(?:, log start offset {log_start_offset})? and log end "
        rb"offset {log_end_offset}",
    ),
    shape(Kind.LOG_LOADED, b"Completed load of log ", rb"{any_partition} with log end offset {log_end_offset}"),
    shape(
        Kind.LOG_LOADED,
        b"Completed load of ",
        rb"(?:Unified)?Log\(dir=(?P<directory>[^\n,]{1,4096}), (?:topicId=(?P<topic_id>[^,\n]{0,64}), "
        rb")?topic=(?P<topic>[A-Za-z0-9._-]{1,249}), partition=(?P<topic_index>\d{1,9}), "
        rb"highWatermark={high_watermark}, lastStableOffset=-?\d+, logStartOffset={log_start_offset}, "
        rb"logEndOffset={log_end_offset}\)",
    ),
    shape(Kind.PRODUCER_SNAPSHOT, b"Writing producer snapshot at offset ", rb"{offset}"),
    shape(Kind.PRODUCER_SNAPSHOT, b"Wrote producer snapshot at offset ", rb"{offset}"),
    shape(Kind.SEGMENT_ROLLED, b"Rolled new log segment at offset ", rb"{offset} in \d+ ms"),
    shape(Kind.INDEX_REBUILT, b"Could not find offset index file corresponding to log file ", rb"{path}, r"),
    shape(
        Kind.INDEX_REBUILT,
        b"Found a corrupted index file ",
        rb"(?:corresponding to log file {path} )?due to (?P<reason>[^\n]{0,400})",
    ),
    shape(Kind.INDEX_REBUILT, b"Found an orphaned index file ", rb"{path}, with no corresponding"),
    shape(
        Kind.CHECKPOINT_UNREADABLE,
        b"Error occurred while reading ",
        rb"(?P<path>[a-z-]{1,64}) file of directory {directory}, resetting",
    ),
    shape(
        Kind.HIGH_WATERMARK_LOADED,
        b"Log loaded for partition ",
        rb"{partition} with initial high watermark {high_watermark}",
    ),
    shape(
        Kind.HIGH_WATERMARK_LOADED,
        b"Replica loaded for partition ",
        rb"{partition} with initial high watermark {high_watermark}",
    ),
    shape(Kind.HIGH_WATERMARK_MISSING, b"No checkpointed highwatermark is found for partition ", rb"{any_partition}"),
    shape(
        Kind.HIGH_WATERMARK_REGRESSION,
        b"Non-monotonic update of high watermark from ",
        rb"[^\n]{0,40}?{high_watermark}[^\n]{0,200}? to [^\n]{0,40}?{offset}",
    ),
    shape(Kind.STRAY_LOG, b"Found stray log dir ", rb"{path}: (?P<reason>[^\n]{0,400})"),
    shape(Kind.STRAY_LOG, b"Log in ", rb"{directory} marked stray and renamed to (?P<path>\S+)"),
    shape(Kind.STRAY_LOG, b"Loaded stray log: ", rb"(?P<path>\S+)"),
    shape(
        Kind.LOG_CREATED,
        b"Created log for partition ",
        rb"{any_partition} in {directory} with properties (?:\{[^}\n]{0,4000}?min\.insync\.replicas(?:=| -> ){min_insync_replicas})?",
    ),
    shape(
        Kind.LOG_DISCARDED,
        b"Log for partition ",
        rb"{any_partition} is renamed to (?P<path>\S{1,4096}-delete) and is scheduled for deletion",
    ),
    shape(Kind.TOPIC_DELETED, b"Deletion of topic ", rb"(?P<topic_name>[A-Za-z0-9._-]{1,249}) successfully completed"),
    shape(
        Kind.EPOCH_ASSIGNED,
        b"Updated PartitionLeaderEpoch. New: ",
        rb"\{epoch:{leader_epoch}, offset:{offset}\}, Current: \{epoch:{previous_leader_epoch}, offset:?-?\d+\} "
        rb"for Partition: {any_partition}",
    ),
    shape(
        Kind.EPOCH_CONFLICT,
        b"New epoch entry ",
        rb"EpochEntry[(\[]epoch={leader_epoch}, startOffset={offset}[)\]] caused truncation",
    ),
    shape(
        Kind.EPOCH_CONFLICT,
        b"Cleared latest ",
        rb"(?P<old_text>[^\n]{0,2000}?) ?entries from epoch cache based on passed offset {offset} leaving \d+ in "
        rb"EpochFile for partition {any_partition}",
    ),
    shape(Kind.LOG_START_MOVED, b"Incrementing log start offset to ", rb"{log_start_offset}"),
    shape(
        Kind.LOG_START_MOVED,
        b"Incremented log start offset to ",
        rb"{log_start_offset}(?: due to (?:reason )?(?P<reason>[a-z]{1,30}(?: [a-z]{1,30}){0,5}))?",
    ),
    shape(
        Kind.BATCH_SKIPPED,
        b"Skipping batch ",
        rb"[^\n]{0,600}? from an origin of REPLICATION because its partition leader epoch {leader_epoch} is higher "
        rb"than the replica's current leader epoch {previous_leader_epoch}",
    ),
    shape(
        Kind.FETCH_CORRUPTION,
        b"Found invalid messages during fetch for partition ",
        rb"{any_partition} offset {offset}",
    ),
)
