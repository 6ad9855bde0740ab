"""What `dump` writes of files, line by line: the types of lines and their fields, for the schemas."""

from typing import Any, Literal

from kforensics.damage import Absent, BitFlip, DamageKind, Gravity
from kforensics.evidence.checks.context import FileKind
from kforensics.formats.messages.control import ControlType
from kforensics.render.json.shape import Document, Each, Field, Shape
from kforensics.units import OffsetRange

Number = int | Absent
Text = str | Absent
Payload = str | bytes | None
SHOWN = "Only with `--show-payload`; text where `--text` asks for it and it is UTF-8."


def _told(words: str = "", optional: str = "", **fields: Any) -> Shape:
    """Return the shape of a line that is not made of attributes, of the types of its fields; those named in `optional` are there only sometimes."""
    file = Field("", "Where there are several files.", str, is_optional=True)
    made = {name: Field("", "", kind, is_optional=name in optional.split()) for name, kind in fields.items()}
    return Shape(None, words, {**made, "file": file})


_MESSAGE = Shape(
    "Message",
    "A key or a value of the metadata log or of an internal topic.",
    {
        "name": Field("", "", Text),
        "version": Field("", "", Number),
        "api_key": Field("", "Of a metadata record.", int, is_optional=True),
        "fields": Field("", "Kafka's field names in snake_case, values as on disk.", dict[str, Any] | Absent),
        "reason": Field("", "Why it could not be decoded.", str, is_optional=True),
        "trailing_bytes": Field("", "Bytes behind the last field.", int, is_optional=True),
    },
)
_DAMAGE = _told(
    "A damaged place, where it is in the sequence.",
    position=int,
    length=int,
    kind=DamageKind,
    gravity=Gravity,
    expected=str,
    found=str,
    offsets_lost=OffsetRange | Absent,
)
_DAMAGE.fields["next_good"] = Field(
    lambda _: None,
    "",
    Shape("NextGood", "The next sound batch.", {name: Field("", "", int) for name in ("offset", "position")}),
)
_FLIPPED = Shape(
    "Cause",
    "What it comes from, where that can be shown.",
    {"kind": Field("", "", str), "detail": Field("", "", str), "flip": Field("", "", BitFlip | None)},
)
_DAMAGE.fields["cause"] = Field(lambda _: None, "", _FLIPPED)
_RECORD = _told(
    "With `--records`.",
    "key value headers control decoded",
    offset=int,
    batch_position=int,
    timestamp_ms=Number,
    key=Payload,
    value=Payload,
    headers=tuple[tuple[Payload, Payload], ...],
    key_length=int | None,
    value_length=int | None,
    sequence=int | None,
    control=ControlType,
)
_RECORD.fields["decoded"] = Field(
    lambda _: None,
    "Of records of the metadata log and of internal topics.",
    Shape("Decoded", "", {"key": Field(lambda _: None, "", _MESSAGE), "value": Field(lambda _: None, "", _MESSAGE)}),
    is_optional=True,
)
LINES = {
    "batch": _told(
        "A batch; of magic 0 or 1 a message, wrapper or not, whose base offset is that of its first inner message.",
        position=int,
        length=int,
        base_offset=int,
        last_offset=int,
        count=int,
        magic=Literal[0, 1, 2],
        compression=Literal["none", "gzip", "snappy", "lz4", "zstd"] | Absent,
        partition_leader_epoch=Number,
        crc=int,
        crc_valid=bool,
        timestamp_type=Literal["create", "log-append"] | None,
        base_timestamp_ms=Number,
        max_timestamp_ms=Number,
        producer_id=int | None,
        producer_epoch=int | None,
        base_sequence=int | None,
        is_transactional=bool,
        is_control=bool,
        delete_horizon_ms=int | None,
    ),
    "record": _RECORD,
    "damage": _DAMAGE,
    "offset-index-entry": _told("Of `.index`.", offset=int, relative_offset=int, position=int),
    "time-index-entry": _told("Of `.timeindex`.", timestamp_ms=int, offset=int, relative_offset=int),
    "txn-index-entry": _told(
        "Of `.txnindex`: an aborted transaction.",
        version=int,
        producer_id=int,
        first_offset=int,
        last_offset=int,
        last_stable_offset=int,
    ),
    "preallocated": _told(
        "Zeros behind the last entry of an index, which a running broker has allocated.", position=int, length=int
    ),
    "producer-snapshot": _told("Of `.snapshot`.", crc=int, crc_valid=bool, count=int),
    "producer-snapshot-entry": _told(
        "Of `.snapshot`.",
        producer_id=int,
        producer_epoch=int,
        last_sequence=Number,
        last_offset=Number,
        offset_delta=int,
        timestamp_ms=Number,
        coordinator_epoch=Number,
        current_txn_first_offset=Number,
    ),
    "leader-epoch-entry": _told("Of `leader-epoch-checkpoint`.", leader_epoch=int, start_offset=int, line=int),
    "offset-checkpoint-entry": _told(
        "Of the four offset checkpoints; `checkpoint` is the name of the file.",
        checkpoint=str,
        topic=str,
        partition=int,
        offset=int,
        line=int,
        position=int,
        length=int,
    ),
    "meta-properties": _told(
        "Of `meta.properties`; `properties` are all as written.",
        version=int,
        node_id=Number,
        cluster_id=Text,
        directory_id=Text,
        properties=dict[str, Any],
    ),
    "partition-metadata": _told("Of `partition.metadata`.", version=int, topic_id=Text),
    "quorum-state": _told(
        "Of `quorum-state`.",
        data_version=int,
        leader_id=Number,
        leader_epoch=Number,
        voted_id=Number,
        voted_directory_id=Text,
        cluster_id=Text,
        applied_offset=Number,
        current_voters=tuple[int, ...] | Absent,
    ),
    "clean-shutdown": _told("Of `.kafka_cleanshutdown`.", broker_epoch=Number),
}
_WITH_ENTRIES = {
    *("segment", "offset-index", "time-index", "txn-index", "producer-snapshot", "leader-epoch-checkpoint"),
    *(
        "offset-checkpoint",
        "meta-properties",
        "partition-metadata",
        "quorum-state",
        "metadata-snapshot",
        "clean-shutdown",
    ),
}
LINES |= {
    kind.value: _told("A file without entries.", bytes=int) for kind in FileKind if kind.value not in _WITH_ENTRIES
}

DUMP = Document(
    "dump",
    object,
    {"entries": Field(lambda _: None, "The lines of `--format jsonl`, in the order of the files.", "dump-line.json")},
    streamed=("entries",),
    lines=LINES,
)

_ENTRY = Shape(
    "SealEntry",
    "One thing below an input.",
    {
        "input": Field("", "", int),
        "path": Field("", "", str),
        "kind": Field("", "", Literal["file", "directory", "symbolic-link", "special"]),
        "bytes": Field("", "", Number),
        "modified_utc": Field("", "", Text),
        "changed_utc": Field("", "The time of change of the inode: a copy has another one.", Text),
        "mode": Field("", "", str),
        "sha256": Field("", "", Text),
        "problem": Field("", "Why the hash is missing or of no single moment.", str, is_optional=True),
    },
)
_PROBLEM = {"input": Field("", "", int), "path": Field("", "", str), "message": Field("", "", str)}
MANIFEST = Document(
    "seal",
    object,
    {
        "envelope": Field(
            lambda _: None,
            "Who sealed, and when: the only part that may differ between two looks at the same evidence.",
            Shape(
                None,
                "",
                {
                    "sealed_ms": Field("", "", int),
                    "sealed_utc": Field("", "", str),
                    "case_id": Field("", "", Text),
                    "operator": Field("", "", Text),
                },
            ),
        ),
        "options": Field(
            lambda _: None,
            "",
            Shape("SealOptions", "", {"hash": Field("", "", str), "follow_symbolic_links": Field("", "", bool)}),
        ),
        "inputs": Field(lambda _: None, "", Each(Shape("SealedInput", "", {"path": Field("", "", str)}))),
        "entries": Field(lambda _: None, "Each on a line of its own, ordered by path.", Each(_ENTRY)),
        "counts": Field(
            lambda _: None,
            "",
            Shape(
                "SealCounts",
                "",
                {name: Field("", "", int) for name in ("files", "directories", "others", "bytes", "incomplete")},
            ),
        ),
        "problems": Field(lambda _: None, "", Each(Shape("SealProblem", "", _PROBLEM))),
    },
    is_bare=True,
)
