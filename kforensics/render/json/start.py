"""The document of `predict`: what starts of brokers come to."""

from collections.abc import Iterable, Iterator
from typing import Any

from kforensics.commands.predict import Prediction
from kforensics.protocol.loading.disk import FileChange
from kforensics.reconcile.logs.predicted_load import (
    DiscardHolder,
    DueSegments,
    Election,
    FirstStart,
    LogAtStart,
    MetadataLoad,
    PredictedLog,
    PredictedStart,
    StartOrder,
    VersionOutcome,
    VirtualChange,
    WayOut,
    election_file,
)
from kforensics.render.json.shape import Document, Each, Field, own, shape


def _by_leader(order: StartOrder) -> Iterator[dict[str, Any]]:
    for broker in order.brokers:
        if own_ones := [one for one in order.unclean if one.leader == broker]:
            yield {"broker_id": broker, "elections_json": election_file(own_ones)}


def _ways_out(body: Prediction) -> Iterable[tuple[int, WayOut]] | None:
    return enumerate(body.ways_out, 1) if body.ways_out else None


_PARTITIONS = {"partitions": Field("", "", list[dict[str, Any]])}
_CERTAIN = own("certain possible")

shape(DiscardHolder, "Another input that holds some of the records.", own("input broker_id records"))
shape(
    PredictedStart,
    "A start of a node.",
    {
        "number": ("", "From 1."),
        "input": "",
        "outcome": ("result", "Unknown where something is missing or newer than kforensics knows."),
        **own("exception reason clean bytes_scanned logs_scanned kafka loads_logs"),
    },
)
shape(
    MetadataLoad,
    "The metadata log of a node without ZooKeeper once it is opened.",
    {**own("input path log_end_offset snapshot_end"), "records_lost": "lost.records", "held_by": "lost.held_by"},
)
shape(
    VersionOutcome,
    "What another version that the evidence allows does otherwise on these files.",
    {**own("input kafka"), "outcome": "result", **own("exception reason")},
)
shape(
    LogAtStart,
    "A log before or after a start.",
    own("log_start_offset log_end_offset recovery_point last_stable_offset epochs segments"),
)
shape(
    FileChange,
    "A file that loading changes; one that is not named is kept.",
    {**own("name action to_name"), "to_bytes": "to_length", "rule": ""},
)
shape(
    DueSegments,
    "What is deleted some 30 seconds after the start, once the high watermark has reached the log end.",
    {
        "segments": ("base_offsets", "Base offsets."),
        **own("bytes rule"),
        "known": "is_setting_known",
        "whole_log": "is_whole_log",
        "misdated": (
            "",
            "Base offsets of those that are due only because their time index ends with an earlier time than their records have.",
        ),
        "in_remote_storage": (
            "is_copied",
            "Finished copies of them are in remote storage: they go from this disk alone.",
        ),
    },
)
shape(
    PredictedLog,
    "One start for one directory that loading looks at, as its own load ends whatever others do.",
    {
        **own("start input path topic partition outcome"),
        "becomes": "fate",
        "exception": ("", "Simple name of the class."),
        "message": "",
        "before": ("", "As checkpoints say; its `log_end_offset` is behind the last sound batch."),
        "after": ("", "Null where loading throws."),
        "files": ("", "What changes."),
        "records_lost": ("lost.records", "Records in bytes that the broker will not read again."),
        "committed": Field(
            "lost",
            "`certain`: those below the high watermark that this broker checkpointed; `possible`: the others.",
            _CERTAIN,
        ),
        "held_by": "lost.held_by",
        "topic_deleted_ms": (
            "",
            "Of a directory that goes with records: when its topic was deleted, where a metadata record or a line of a controller says so. They were to go then.",
        ),
        "retention": "due",
    },
)
shape(
    VirtualChange,
    "A change that is played and not made.",
    {**own("kind input paths"), "kafka": Field(lambda one: one.value or None, "A version.", str | None)},
)
shape(
    Election,
    "Which replica is to lead, and by what election.",
    {
        **own("topic partition leader"),
        "unclean": "is_unclean",
        "committed": Field(".", "What is discarded.", {"certain": "lost_certain", "possible": "lost_possible"}),
    },
)
shape(
    FirstStart,
    "What is discarded where a broker leads all it holds.",
    {"broker_id": "", "committed": Field(".", "", _CERTAIN)},
)
shape(
    StartOrder,
    "In which order to start the brokers.",
    {
        **own("brokers wait_for firsts elections"),
        "elections_json": Field(
            lambda one: election_file(one.unclean),
            "For `kafka-leader-election.sh --path-to-json-file`: the partitions whose election is unclean or not known not to be.",
            dict[str, Any],
        ),
        "elections_by_leader": Field(
            lambda one: list(_by_leader(one)),
            "The same by broker: given to the tool when that broker runs and the other replicas do not yet, it is that one which is elected.",
            list[dict[str, Any]],
        ),
        "missing": "",
    },
)

PREDICT = Document(
    "predict",
    Prediction,
    {
        "depth": ("", "How much of the logs was compared for `order`."),
        "kafka": (
            "",
            "The version whose start is played (of several nodes the newest). `4.4 or later` where the evidence is newer than kforensics knows.",
        ),
        "kafka_source": (
            "",
            "`given` by `--kafka`, named by a `server-log`, registered in the `metadata-log`, or `assumed`.",
        ),
        "starts": "",
        "metadata_logs": "",
        "versions": "",
        "ways_out": Field(
            _ways_out,
            "With `--ways-out`, the best first.",
            Each(
                {
                    "rank": "0",
                    "input": "1.node",
                    "changes": ("1.changes", "None: as it is."),
                    "outcome": "1.result",
                    "exception": "1.exception",
                    "reason": "1.reason",
                    "starts": ("1.start_count", "How many it takes."),
                    "records_lost": "1.records",
                    "committed": Field("1", "", _CERTAIN),
                    **own("only_here holes epochs_wrong transactions_forgotten bytes_scanned bytes_due assumed", "1."),
                }
            ),
            is_optional=True,
        ),
        "order": Field("order", "With `--order`.", is_optional=True),
        "logs": "",
    },
    streamed=("logs",),
)
