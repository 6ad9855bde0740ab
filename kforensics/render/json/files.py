"""The documents of commands that look at one file after the other: `ls`, `verify` and the check of a seal."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kforensics.commands.ls import ListedFile, Listing
from kforensics.commands.result import Result
from kforensics.commands.seal import CheckedManifest, NewSeal
from kforensics.commands.verify import VerifyResult
from kforensics.damage import Absent, Damage
from kforensics.evidence.checks.context import FileKind, FileReport, FileState
from kforensics.evidence.remote_copies import RemoteSegment
from kforensics.evidence.seal import Change, Difference, SealEntry
from kforensics.reconcile.logs.compacted_keys import CompactedLog
from kforensics.reconcile.logs.tiers import TierRange, Tiers
from kforensics.reconcile.replicas.report import IntactReplica, IntactReplicas
from kforensics.render.json.document import write_document, write_lines
from kforensics.render.json.shape import Document, Each, Field, Shape, own, shape
from kforensics.render.view import View
from kforensics.units import OffsetRange


def write_listing(result: Result[Listing], view: View) -> Iterator[str]:
    """Return the document of `ls`, piece by piece: rows of a million files are too much to hold."""
    return write_document(LS, result, files=result.body.files()) if view.files else write_document(LS, result)


def write_listed(result: Result[Listing], view: View) -> Iterator[str]:
    """Return what `ls` found, an object a line."""
    return write_lines(LS, result, file=result.body.files() if view.files else ())


def write_manifest(result: Result[NewSeal], _view: View) -> Iterator[str]:
    """Return the manifest, made while it is written."""
    return iter((result.body.listed,)) if result.body.listed else result.body.pieces


def write_check(result: Result[CheckedManifest], _view: View) -> Iterator[str]:
    """Return the document of a check; what differs is written as it is met, so that a million differences need no memory."""
    return write_document(SEAL_CHECK, result, after=lambda: dict(_CHECKED.pairs(result.body)))


LS = Document(
    "ls",
    Listing,
    {
        "depth": "",
        "nodes": ("inventory.nodes", "One for each input that is a node."),
        "partitions": ("inventory.partitions", "One for each partition directory."),
        "directories": "inventory.directories",
        "file_counts": ("inventory.files", "Together, every file."),
        "unknown_files": "inventory.unknown",
        "files": Field(lambda _: None, "Only with `--files`, every file.", tuple[ListedFile, ...], is_optional=True),
    },
    streamed=("partitions", "directories", "file_counts", "unknown_files", "files"),
    lines={
        **dict.fromkeys(("answer", "input"), ""),
        "node": "nodes",
        "partition": "partitions",
        "directory": "directories",
        "file-count": "file_counts",
        "unknown-file": "unknown_files",
        "file": "files",
        **dict.fromkeys(("finding", "problem"), ""),
    },
)

shape(
    SealEntry,
    "One thing below an input.",
    {"kind": "", "bytes": "length", "modified_utc": "modified", "mode": "", "sha256": ""},
)
shape(
    Difference,
    "One thing that is not as it was sealed; either side is null where it does not exist.",
    {**own("input path", "subject."), **own("change sealed found")},
)


def _changed(change: Change) -> Field:
    return Field(lambda body: body.check.counts[change], "", int)


_CHECKED = Shape(
    CheckedManifest,
    "",
    {
        "counts": Field(".", "", {"held": "check.held", **{change.value: _changed(change) for change in Change}}),
        "manifest_sha256": "check.manifest_sha256",
        "signature": "",
    },
)
SEAL_CHECK = Document(
    "seal-check",
    CheckedManifest,
    {
        "sealed": Field(
            "check.head",
            "When, for which case and by whom.",
            {"tool_version": "", **own("sealed_ms sealed_utc case_id operator", "envelope.")},
        ),
        "differences": "",
    },
    streamed=("differences",),
    after=_CHECKED,
    command="seal",
)


shape(
    Tiers,
    "One partition of a topic with remote storage.",
    {
        **own("topic partition", "partition."),
        **own("log_start_offset log_end_offset"),
        "ranges": ("", "All offsets of the log in their order."),
        "copies": ("", "Every copy on record, whatever became of it."),
    },
)
shape(TierRange, "A run of offsets that are in one place.", own("offsets tier"))
shape(
    RemoteSegment,
    "A copy of a segment in remote storage, by its last record.",
    {
        **own("segment_id offsets epochs"),
        "state": Field(
            "state_name",
            "`started`, `finished`, `delete-started`, `delete-finished`, or the number of one that is newer than known.",
            str,
        ),
        **own("length broker_id changed_ms"),
    },
)

shape(
    CompactedLog,
    "The records with a key of one log that is compacted, those of aborted transactions left out.",
    {
        **own("topic partition", "partition."),
        **own("broker_id"),
        "input": Field("citation.input", "", int),
        "path": Field("citation.path", "", str),
        "cleaner_point": (
            "",
            "The offset below which a cleaner has been over the log; 0 where no checkpoint names it.",
        ),
        "records": "",
        "superseded": ("", "Those that a later record of their key follows."),
        "superseded_below": ("", "Those that are followed below the cleaner's point already (KF128)."),
        "is_estimate": ("", "Whether the superseded ones are counted by a sample of the keys."),
        "is_at_least": ("", "Whether damage hides records."),
        "tombstones": "",
        "tombstones_due": (
            "due",
            "Those whose delete horizon is before the largest timestamp of the log: the next cleaning removes them.",
        ),
        "tombstones_kept": ("kept", "Those whose delete horizon is later; the others have none."),
        "kept_until_ms": ("", "The last of these horizons."),
    },
)


class _Checked(NamedTuple):
    report: FileReport
    intact: IntactReplicas


class _Totals(NamedTuple):
    files: int
    bytes: int
    batches: int
    records: int
    states: Mapping[FileState, int]
    """The number of files in each state."""


def _checked(body: VerifyResult) -> Iterator[_Checked]:
    return (_Checked(report, body.intact) for report in body.files)


def _places(row: _Checked) -> Iterator[tuple[Damage, tuple[IntactReplica, ...] | None]]:
    """Yield the damage of a file, each with the holders of the range that is lost; none where that is no range."""
    report, intact = row
    owner = intact.owner(report.input, report.path) if report.kind is FileKind.SEGMENT else None
    for damage in report.damage:
        is_range = owner is not None and isinstance(damage.offsets_lost, OffsetRange)
        yield damage, tuple(intact.holders(owner, damage)) if is_range and owner is not None else None


def _intact_on(place: tuple[Damage, tuple[IntactReplica, ...] | None]) -> list[int] | None:
    holders = place[1]
    if holders is None:
        return None
    return list(dict.fromkeys(one.broker_id for one in holders if not isinstance(one.broker_id, Absent)))


def _totals(body: VerifyResult) -> _Totals:
    files = body.verification.files
    states = Counter(report.state for report in files)
    return _Totals(
        files=len(files),
        bytes=sum(report.length for report in files),
        batches=sum(report.batches for report in files if isinstance(report.batches, int)),
        records=sum(report.records for report in files if isinstance(report.records, int)),
        states={state: states[state] for state in FileState},
    )


_FILE = Shape(
    _Checked,
    "A file, checked.",
    {
        **own("input path kind", "report."),
        "bytes": "report.length",
        **own("state batches records", "report."),
        "damage": Field(
            _places,
            "",
            Each(
                {
                    **own("position length", "0.span."),
                    **own("kind gravity expected found offsets_lost", "0."),
                    "next_good": Field("0.next_good", "The next intact batch.", {"offset": "0", "position": "1"}),
                    "cause": Field(
                        "0.cause",
                        "With a single flipped bit also its place, and the byte as found and as expected.",
                        {
                            **own("kind detail"),
                            **{
                                name: Field(f"flip.{name}", "Of a single flipped bit.", int, is_optional=True)
                                for name in ("position", "bit", "found", "expected")
                            },
                        },
                    ),
                    "checksums": Field("0.checksums", "", {"stored": "0", "computed": "1"}),
                    "intact_on": (
                        _intact_on,
                        "The ids of brokers among the inputs that hold the range intact; null where no range of offsets is lost, or where the file that shows it is of several partitions, as a checkpoint is.",
                    ),
                    "intact_in": Field(
                        "1",
                        "The same by directory, including brokers whose id is unknown.",
                        Each(own("input path")),
                    ),
                }
            ),
        ),
    },
)
VERIFY = Document(
    "verify",
    VerifyResult,
    {
        "level": ("", "How deep batches were checked."),
        "totals": Field(_totals, "Counts over all files."),
        "files": Field(_checked, "", Each(_FILE)),
        "tiers": ("", "The partitions that are partly in remote storage, by the records of the copies."),
        "compacted": ("", "Compacted logs, those of coordinators left out, by their keys, at level `records`."),
        "compacted_not_counted": (
            "uncounted",
            "How many more such logs are too long for their keys to be counted: more than 256 MiB together.",
        ),
    },
    streamed=("files",),
    lines={
        **dict.fromkeys(("answer", "input", "seal"), ""),
        "file": "files",
        **dict.fromkeys(("finding", "problem"), ""),
        "totals": Field(
            lambda result: ({**_totals(result.body)._asdict(), "exit_code": result.exit_code},),
            "",
            Shape(_Totals, "", {**own("files bytes batches records states"), "exit_code": Field("", "", int)}),
        ),
    },
)
