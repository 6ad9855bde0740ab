"""The columns of every table, which are an interface; `docs/fleet-tables.md` documents them."""

import pyarrow as pa

_TEXT, _SHORT, _INT, _LONG, _BOOL = pa.string(), pa.int16(), pa.int32(), pa.int64(), pa.bool_()

DAMAGE = pa.struct(
    [
        ("path", _TEXT),
        ("position", _LONG),
        ("length", _LONG),
        ("kind", _TEXT),
        ("expected", _TEXT),
        ("found", _TEXT),
        ("gravity", _TEXT),
        ("first_offset_lost", _LONG),
        ("last_offset_lost", _LONG),
    ]
)
"""One damaged place of a file."""

EPOCH = pa.struct([("leader_epoch", _INT), ("start_offset", _LONG)])

CITATION = pa.struct([("input", _INT), ("path", _TEXT), ("position", _LONG), ("length", _LONG), ("line", _LONG)])

NODES = pa.schema(
    [
        ("input", _INT),
        ("path", _TEXT),
        ("kind", _TEXT),
        ("node_id", _INT),
        ("cluster_id", _TEXT),
        ("rack", _TEXT),
        ("kafka_version_hint", _TEXT),
        ("is_evidence", _BOOL),
        ("log_dirs", pa.list_(_TEXT)),
        ("replicas", _LONG),
        ("segments", _LONG),
        ("bytes", _LONG),
        ("problems", _LONG),
        ("absent", pa.list_(_TEXT)),
    ]
)

REPLICAS = pa.schema(
    [
        ("input", _INT),
        ("node_id", _INT),
        ("source", _TEXT),
        ("sequence", _INT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("state", _TEXT),
        ("path", _TEXT),
        ("log_dir", _TEXT),
        ("topic_id", _TEXT),
        ("checkpoint_epochs", pa.list_(EPOCH)),
        ("high_watermark", _LONG),
        ("recovery_point", _LONG),
        ("log_start", _LONG),
        ("cleaner_point", _LONG),
        ("checkpoint_lines", pa.list_(_INT)),
        ("clean_shutdown", _BOOL),
        ("producer_snapshots", pa.list_(_LONG)),
        ("orphan_indexes", pa.list_(pa.struct([("base_offset", _LONG), ("path", _TEXT)]))),
        ("segment_files", _INT),
        ("damage", pa.list_(DAMAGE)),
        ("content", _TEXT),
        ("absent", pa.list_(_TEXT)),
    ]
)
"""The facts of a partition directory; the evidence of `fleet scan`."""

JUDGED_REPLICAS = pa.schema(
    [
        *REPLICAS,
        ("segments", _INT),
        ("bytes", _LONG),
        ("damaged_places", _INT),
        ("verdict", _TEXT),
        ("log_start_offset", _LONG),
        ("log_end_offset", _LONG),
        ("protocol", _TEXT),
        ("truncate_to", _LONG),
        ("records_cut", _LONG),
        ("lost_certain", _LONG),
        ("lost_possible", _LONG),
        ("first_divergence", _LONG),
        ("divergence_kind", _TEXT),
    ]
)

SEGMENTS = pa.schema(
    [
        ("input", _INT),
        ("node_id", _INT),
        ("source", _TEXT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("directory", _TEXT),
        ("path", _TEXT),
        ("is_deleted", _BOOL),
        ("base_offset", _LONG),
        ("length", _LONG),
        ("valid_length", _LONG),
        ("first_offset", _LONG),
        ("last_offset", _LONG),
        ("recovered_end_offset", _LONG),
        ("batch_count", _LONG),
        ("record_count", _LONG),
        ("recovered_batch_count", _LONG),
        ("recovered_record_count", _LONG),
        ("magics", pa.list_(_SHORT)),
        ("max_timestamp_ms", _LONG),
        ("is_thinned", _BOOL),
        ("longest_batch", _LONG),
        ("changed", _BOOL),
        ("mtime_ns", _LONG),
        ("scanned_ns", _LONG),
        ("damage", pa.list_(DAMAGE)),
    ]
)

DIGESTS = pa.schema(
    [
        ("source", _TEXT),
        ("path", _TEXT),
        ("bucket", _LONG),
        ("low", _LONG),
        ("high", _LONG),
        ("batches", _LONG),
        ("position", _LONG),
    ]
)

LINEAGE = pa.schema([("source", _TEXT), ("path", _TEXT), ("leader_epoch", _INT), ("start_offset", _LONG)])

CARRIED_BATCHES = pa.schema(
    [
        ("path", _TEXT),
        ("base_offset", _LONG),
        ("last_offset", _LONG),
        ("position", _LONG),
        ("length", _INT),
        ("partition_leader_epoch", _INT),
        ("crc", _LONG),
        ("magic", pa.int8()),
        ("attributes", _SHORT),
        ("count", _INT),
        ("producer_id", _LONG),
        ("control", _SHORT),
    ]
)
"""Every sound batch of the segments of a partition directory; only in the evidence of `fleet scan`."""

CARRIED_RECORDS = pa.schema(
    [
        ("path", _TEXT),
        ("record_offset", _LONG),
        ("offset", _LONG),
        ("timestamp_ms", _LONG),
        ("key_digest", pa.binary()),
        ("value_digest", pa.binary()),
        ("headers_digest", pa.binary()),
        ("batch_position", _LONG),
        ("batch_base_offset", _LONG),
        ("producer_id", _LONG),
        ("magic", pa.int8()),
        ("is_transactional", _BOOL),
        ("is_control", _BOOL),
    ]
)

"""`offset`, which SQL reserves, is an alias of `record_offset` until the next release."""

CARRIED_COMMITS = pa.schema(
    [
        ("path", _TEXT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("group_id", _TEXT),
        ("group", _TEXT),
        ("committed_offset", _LONG),
        ("leader_epoch", _INT),
        ("time_ms", _LONG),
        ("position", _LONG),
    ]
)
"""The highest offset of each group in each leader epoch, by segment of the topic in which groups commit; `group`, which SQL reserves, is an alias of `group_id` until the next release."""

PARTITIONS = pa.schema(
    [
        ("cluster_id", _TEXT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("topic_id", _TEXT),
        ("state", _TEXT),
        ("verdict", _TEXT),
        ("verdict_rank", _SHORT),
        ("leader", _INT),
        ("leader_epoch", _INT),
        ("leader_source", _TEXT),
        ("holders", pa.list_(_INT)),
        ("assigned", pa.list_(_INT)),
        ("isr", pa.list_(_INT)),
        ("missing", pa.list_(_INT)),
        ("excess", pa.list_(_INT)),
        ("is_offline", _BOOL),
        ("is_under_replicated", _BOOL),
        ("shares_rack", _BOOL),
        ("unclean_elections", _INT),
        ("replicas", _INT),
        ("bytes", _LONG),
        ("lost_certain", _LONG),
        ("lost_possible", _LONG),
        ("concerns", _TEXT),
        ("report", _TEXT),
    ]
)

FINDINGS = pa.schema(
    [
        ("finding_id", _TEXT),
        ("code", _TEXT),
        ("severity", _TEXT),
        ("severity_rank", _SHORT),
        ("confidence", _TEXT),
        ("confidence_rank", _SHORT),
        ("statement", _TEXT),
        ("meaning", _TEXT),
        ("advice", _TEXT),
        ("cluster_id", _TEXT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("node_id", _INT),
        ("first_offset", _LONG),
        ("last_offset", _LONG),
        ("citations", pa.list_(CITATION)),
        ("reference_ids", pa.list_(_TEXT)),
        ("references", pa.list_(_TEXT)),
        ("absent", pa.list_(_TEXT)),
    ]
)
"""`references`, which SQL reserves, is an alias of `reference_ids` until the next release."""

PROBLEMS = pa.schema(
    [
        ("input", _INT),
        ("path", _TEXT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("position", _LONG),
        ("message", _TEXT),
    ]
)

PLAN = pa.schema(
    [
        ("at", _LONG),
        ("sequence", _INT),
        ("kind", _SHORT),
        ("path", _TEXT),
        ("topic", _TEXT),
        ("partition", _INT),
        ("state", _TEXT),
        ("directory", _TEXT),
        ("length", _LONG),
        ("mtime_ns", _LONG),
        ("base_offset", _LONG),
        ("high_watermark", _LONG),
        ("recovery_point", _LONG),
        ("log_start", _LONG),
        ("cleaner_point", _LONG),
        ("checkpoint_lines", pa.list_(_INT)),
        ("unreadable", pa.list_(_TEXT)),
        ("segment_files", _INT),
    ]
)
"""The files to read in a log directory, in the order of reading; `at` is the weight of all that comes before."""

TABLES: dict[str, pa.Schema] = {
    "nodes": NODES,
    "replicas": JUDGED_REPLICAS,
    "segments": SEGMENTS,
    "digests": DIGESTS,
    "lineage": LINEAGE,
    "partitions": PARTITIONS,
    "findings": FINDINGS,
    "problems": PROBLEMS,
    "plan": PLAN,
}

AUDIT_COLUMNS = (
    ("audit_id", _TEXT),
    ("audited_at", pa.timestamp("us", tz="UTC")),
    ("cluster_id", _TEXT),
)
"""The columns that tell the rows of audits and clusters apart; a finished audit has them in every table."""

AUDIT_TABLES: dict[str, pa.Schema] = {
    name: pa.schema([*schema, *(pa.field(*one) for one in AUDIT_COLUMNS if one[0] not in schema.names)])
    for name, schema in TABLES.items()
}
"""The tables as a finished audit has them."""

EVIDENCE_TABLES: dict[str, pa.Schema] = {
    "batches": CARRIED_BATCHES,
    "records": CARRIED_RECORDS,
    "commits": CARRIED_COMMITS,
}
"""The tables that `fleet scan` writes beyond those of an audit."""
