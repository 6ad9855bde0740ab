"""The columns of every table, which are an interface; `docs/fleet-tables.md` documents them."""

import pyarrow as pa

_TEXT, _SHORT, _INT, _LONG, _BOOL = pa.string(), pa.int16(), pa.int32(), pa.int64(), pa.bool_()


def columns(*groups: tuple[pa.DataType, str]) -> list[tuple[str, pa.DataType]]:
    """Return columns in their order, from groups of a type and the names of the columns that have it."""
    return [(name, kind) for kind, names in groups for name in names.split()]


DAMAGE = pa.struct(
    columns(
        (_TEXT, "path"),
        (_LONG, "position length"),
        (_TEXT, "kind expected found gravity"),
        (_LONG, "first_offset_lost last_offset_lost"),
    )
)
"""One damaged place of a file."""

EPOCH = pa.struct([("leader_epoch", _INT), ("start_offset", _LONG)])

CITATION = pa.struct([("input", _INT), ("path", _TEXT), ("position", _LONG), ("length", _LONG), ("line", _LONG)])

NODES = pa.schema(
    columns(
        (_INT, "input"),
        (_TEXT, "path kind"),
        (_INT, "node_id"),
        (_TEXT, "cluster_id rack kafka_version_hint"),
        (_BOOL, "is_evidence"),
        (pa.list_(_TEXT), "log_dirs"),
        (_LONG, "replicas segments bytes problems"),
        (pa.list_(_TEXT), "absent"),
    )
)

REPLICAS = pa.schema(
    columns(
        (_INT, "input node_id"),
        (_TEXT, "source"),
        (_INT, "sequence"),
        (_TEXT, "topic"),
        (_INT, "partition"),
        (_TEXT, "state path log_dir topic_id"),
        (pa.list_(EPOCH), "checkpoint_epochs"),
        (_LONG, "high_watermark recovery_point log_start cleaner_point"),
        (pa.list_(_INT), "checkpoint_lines"),
        (_BOOL, "clean_shutdown"),
        (pa.list_(_LONG), "producer_snapshots"),
        (pa.list_(pa.struct([("base_offset", _LONG), ("path", _TEXT)])), "orphan_indexes"),
        (_INT, "segment_files"),
        (pa.list_(DAMAGE), "damage"),
        (pa.list_(_TEXT), "absent"),
        (_TEXT, "fingerprint"),
    )
)
"""The facts of a partition directory."""

JUDGED_REPLICAS = pa.schema(
    [
        *REPLICAS,
        *columns(
            (_INT, "segments"),
            (_LONG, "bytes"),
            (_INT, "damaged_places"),
            (_TEXT, "verdict"),
            (_LONG, "log_start_offset log_end_offset"),
            (_TEXT, "protocol"),
            (_LONG, "truncate_to records_cut lost_certain lost_possible first_divergence"),
            (_TEXT, "divergence_kind"),
            (_LONG, "verdict_id"),
        ),
    ]
)

SEGMENTS = pa.schema(
    columns(
        (_INT, "input node_id"),
        (_TEXT, "source topic"),
        (_INT, "partition"),
        (_TEXT, "directory path"),
        (_BOOL, "is_deleted"),
        (
            _LONG,
            "base_offset length valid_length first_offset last_offset recovered_end_offset batch_count record_count recovered_batch_count recovered_record_count",
        ),
        (pa.list_(_SHORT), "magics"),
        (_LONG, "max_timestamp_ms"),
        (_BOOL, "is_thinned"),
        (_LONG, "thinned_below longest_batch"),
        (_BOOL, "changed"),
        (_LONG, "mtime_ns scanned_ns"),
        (pa.list_(DAMAGE), "damage"),
        (_LONG, "verdict_id"),
    )
)

DIGESTS = pa.schema(
    columns(
        (_TEXT, "source path"),
        (_LONG, "bucket low high batches position verdict_id"),
    )
)

LINEAGE = pa.schema(
    [("source", _TEXT), ("path", _TEXT), ("leader_epoch", _INT), ("start_offset", _LONG), ("verdict_id", _LONG)]
)

PARTITIONS = pa.schema(
    columns(
        (_TEXT, "cluster_id topic"),
        (_INT, "partition"),
        (_TEXT, "topic_id state verdict"),
        (_SHORT, "verdict_rank"),
        (_INT, "leader leader_epoch"),
        (_TEXT, "leader_source"),
        (pa.list_(_INT), "holders assigned isr missing excess"),
        (_BOOL, "is_offline is_under_replicated shares_rack"),
        (_INT, "unclean_elections replicas"),
        (_LONG, "bytes lost_certain lost_possible"),
        (_TEXT, "concerns report fingerprint"),
        (_LONG, "verdict_id"),
    )
)

FINDINGS = pa.schema(
    columns(
        (_TEXT, "finding_id code severity"),
        (_SHORT, "severity_rank"),
        (_TEXT, "confidence"),
        (_SHORT, "confidence_rank"),
        (_TEXT, "statement meaning advice cluster_id topic"),
        (_INT, "partition node_id"),
        (_LONG, "first_offset last_offset"),
        (pa.list_(CITATION), "citations"),
        (pa.list_(_TEXT), "reference_ids absent"),
        (_LONG, "verdict_id"),
    )
)

PROBLEMS = pa.schema(
    columns(
        (_INT, "input"),
        (_TEXT, "path topic"),
        (_INT, "partition"),
        (_LONG, "position"),
        (_TEXT, "message"),
    )
)

PLAN = pa.schema(
    columns(
        (_LONG, "at"),
        (_INT, "sequence"),
        (_SHORT, "kind"),
        (_TEXT, "path topic"),
        (_INT, "partition"),
        (_TEXT, "state directory"),
        (_LONG, "length mtime_ns base_offset high_watermark recovery_point log_start cleaner_point"),
        (pa.list_(_INT), "checkpoint_lines"),
        (pa.list_(_TEXT), "unreadable"),
        (_INT, "segment_files"),
        (_TEXT, "fingerprint"),
    )
)
"""The files to read in a log directory, in the order of reading; `at` is the weight of all that comes before."""

COMMITS = pa.schema(
    columns((_INT, "log input"), (_TEXT, "source path"), (_LONG, "position"), (_TEXT, "topic"), (_INT, "partition"))
    + columns((_TEXT, "group_id"), (_LONG, "committed_offset"), (_INT, "leader_epoch"), (_LONG, "time_ms verdict_id"))
)
"""What a consumer group committed, the highest by partition and leader epoch of each file."""

FACTS = pa.schema(
    columns((_TEXT, "cluster_id topic"), (_INT, "partition"), (_BOOL, "is_known"), (_TEXT, "topic_id facts"))
)
"""What is known of a partition beside its replicas, where the stages hand it to one another; `is_known` where metadata or a checkpoint names it."""

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
    "commits": COMMITS,
}

OF_SEGMENTS = ("segments", "digests", "lineage")
"""Tables of what was read of segments: a task of an audit writes them, and a later attempt or audit need not read that again."""

JUDGED = ("partitions", "replicas", "findings", "problems")
"""Tables of what a group of partitions comes to."""

CHANGES = pa.schema(
    columns(
        (_TEXT, "finding_id state change"),
        (pa.timestamp("us", tz="UTC"), "first_seen last_seen last_checked"),
        (_TEXT, "depth code severity"),
        (_SHORT, "severity_rank confidence_rank"),
        (_TEXT, "topic"),
        (_INT, "partition node_id"),
        (_LONG, "first_offset last_offset"),
        (_TEXT, "statement severity_before"),
        (_LONG, "first_offset_before last_offset_before"),
        (_TEXT, "statement_before"),
        (pa.list_(_INT), "shown_by log_dirs"),
        (_TEXT, "cluster_id"),
    )
)
"""What became of each finding by an audit, and since when it is known; written when the audit ends."""

REPLACED = pa.schema([("verdict_id", _LONG)])
"""The verdicts of the audits before that an audit keeps no more: it has others in their place, or none."""

OF_VERDICTS = ("replicas", *OF_SEGMENTS, "partitions", "findings", "commits")
"""The tables whose rows are about one partition."""

OF_NODES_OF_AUDITS = (("depth", _TEXT), ("chain", _TEXT))

AUDIT_COLUMNS = (
    ("audit_id", _TEXT),
    ("audited_at", pa.timestamp("us", tz="UTC")),
    ("cluster_id", _TEXT),
)
"""The columns that tell the rows of audits and clusters apart; a finished audit has them in every table."""

AUDIT_TABLES: dict[str, pa.Schema] = {
    name: pa.schema([*schema, *(pa.field(*one) for one in AUDIT_COLUMNS if one[0] not in schema.names)])
    for name, schema in {
        **{name: schema for name, schema in TABLES.items() if name != "plan"},
        "nodes": pa.schema([*NODES, *OF_NODES_OF_AUDITS]),
        "changes": CHANGES,
        "replaced": REPLACED,
    }.items()
}
"""The tables as a finished audit has them: what was listed of files is in `segments`, too."""
