"""The document of `salvage`: what was saved, what is missing, and where it is."""

from kforensics.commands.salvage import SalvageReport
from kforensics.commands.salvaging.folder import WrittenFile
from kforensics.commands.salvaging.model import SavedLabel, SavedPartition, UnreadEnd
from kforensics.damage import Absent
from kforensics.reconcile.salvage import Gap
from kforensics.render.json.shape import Document, Field, own, shape


def _best(one: SavedPartition) -> SavedLabel | None:
    return next((label for label in one.labels if not label.owner), None)


def _files(one: SavedPartition) -> tuple[WrittenFile, ...]:
    best = _best(one)
    return () if best is None else best.files


def _runs(one: SavedPartition) -> int:
    best = _best(one)
    return 0 if best is None else len(best.runs)


def _alternates(one: SavedPartition) -> list[SavedLabel]:
    return [label for label in one.labels if label.owner]


shape(
    Gap,
    "Offsets that were not saved.",
    {**own("offsets count reason"), "detail": Field(lambda one: one.detail or None, "", str, is_optional=True)},
)
shape(
    UnreadEnd,
    "The end of a log that can't be read.",
    {
        "source": Field(".", "", own("input path position length")),
        "offsets": Field(lambda _: Absent.UNKNOWN, "", Absent),
    },
)
shape(SavedLabel, "What another holds at these offsets.", own("leader_epoch owner records files"))
shape(
    SavedPartition,
    "A partition of which anything was wanted.",
    {
        "topic": Field(
            lambda one: one.partition.topic if one.is_named else Absent.UNKNOWN,
            "Unknown where it is not proven.",
            str | Absent,
        ),
        "partition": Field(lambda one: one.partition.partition if one.is_named else Absent.UNKNOWN, "", int | Absent),
        "name": "",
        "likely": Field(lambda one: one.likely or None, "", str | None),
        "topic_id": "",
        "is_other_topic": ("", "Its directories are of another topic that had the name."),
        "state": Field(lambda one: "gaps" if one.missing else "saved", "", str),
        "leader": Field(
            ".",
            "",
            {
                "broker_id": "leader",
                "source": Field(lambda one: one.leader_source or Absent.UNKNOWN, "", str | Absent),
            },
        ),
        "records": "",
        "committed": Field(
            ".",
            "",
            {
                "certain": "certain",
                "possible": Field(lambda one: sum(label.possible for label in one.labels), "", int),
            },
        ),
        **own("aborted_records markers"),
        "files": Field(_files),
        "runs": Field(_runs, "How many the manifest lists."),
        **own("gaps unread_ends"),
        "alternates": Field(_alternates),
    },
)
SALVAGE = Document(
    "salvage",
    SalvageReport,
    {
        "what": ("", "What was wanted."),
        "form": ("", "Of the files."),
        "out": ("", "The directory; empty where none was named."),
        "is_plan": ("", "With `--plan`: nothing was written, and what counts as saved can be."),
        "records": ("", "Records that were saved, alternates included."),
        "carved": ("", "With `--carve`; else null."),
        "missing": Field(
            lambda body: sum(one.missing for one in body.partitions),
            "Offsets that were not saved, other than by intention.",
            int,
        ),
        "files": ("", "Manifest, README and script; paths are relative to `out`."),
        "partitions": "",
    },
    streamed=("partitions",),
)
