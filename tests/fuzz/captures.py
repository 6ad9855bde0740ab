"""Captures that someone forged: built out of a real one, and opened as far as anything opens them."""

import contextlib
import copy
import functools
import hashlib
import itertools
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.captured.reading import (
    captured_batches,
    captured_columns,
    captured_commits,
    captured_controls,
    captured_extent,
    captured_records,
    captured_segment,
    captured_tail,
)
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.replica.captured_loading import captured_content, lacks_rows, rows_between
from kforensics.formats.log.loader_values import Content, Need
from kforensics.source.capture import CapturedSegment, CapturePath
from kforensics.source.capture_file import MARKER, PART_LIMIT, Capture, comment_of
from kforensics.source.mapped import open_evidence
from tests.builders.captured_tails import tail_bytes
from tests.builders.directories import with_short_indexes
from tests.captures import take

NODE = Path(__file__).parents[2] / "fixtures" / "unclean-election" / "broker-1"
MOST_READ = 1 << 20
_NAMES = ("..", "../../etc/passwd", "/etc/passwd", "a/b", "", ".", "a\0b", "x" * 5000, "00000000000000000000.log")
_NUMBERS = (-1, 0, 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 2**70, 0.5, True)

ROWS = ("batches", "records", "first", "bytes", "commits", "tail", "extent", "carried_from", "unread_below", "damage")
"""What a capture says of a segment beside the numbers that are checked before all."""

WRONG = st.one_of(
    st.sampled_from(_NAMES),
    st.sampled_from(_NUMBERS),
    st.none(),
    st.sampled_from([[], {}, [[]], [[0, 0, 2**40]], {"tar": -1}, {"large": [0, 2**60]}, {"segment": {}}]),
    st.integers(-(2**66), 2**66),
    st.text(max_size=8),
).map(copy.deepcopy)
"""Values in the place of others."""


@functools.cache
def real() -> tuple[Mapping[str, bytes], Mapping[str, Any], bytes]:
    """The parts of a capture, its manifest, and its bytes."""
    with tempfile.TemporaryDirectory() as work:
        node = with_short_indexes(NODE, Path(work) / NODE.name)
        path = take([node], Path(work) / "real.kfc", with_tail=True)
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        manifest = json.loads(parts.pop("manifest.json"))
        parts.pop(MARKER)
        return parts, manifest, path.read_bytes()


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document, as the container and the key that hold it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(pairs):
        yield value, key
        yield from leaves(item)


def packed(
    parts: Mapping[str, bytes], manifest: Mapping[str, Any], out: Path, lie: Callable[[dict[str, Any]], None]
) -> Path:
    """A capture of these parts whose manifest fits them, but for what is changed in it."""
    told = []
    with out.open("wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(MARKER), b"1\n", compress_type=zipfile.ZIP_STORED)

        def add(name: str, data: bytes) -> dict[str, Any]:
            info = zipfile.ZipInfo(name)
            archive.writestr(info, data, compress_type=zipfile.ZIP_DEFLATED)
            part = {"name": name, "position": file.tell() - info.compress_size, "stored": info.compress_size}
            return {**part, "length": len(data), "sha256": hashlib.sha256(data).hexdigest()}

        for name, data in parts.items():
            told.append(add(name, data))
        whole = {**copy.deepcopy(manifest), "parts": told}
        lie(whole)
        end = add("manifest.json", json.dumps(whole).encode())
        archive.comment = comment_of(end["position"], end["stored"], end["length"], end["sha256"])
    return out


@st.composite
def forged(draw: st.DrawFn) -> bytes:
    """The bytes of a capture that is truncated, has bytes changed, lies in its tree or its manifest, or inflates to more than it says."""
    parts, manifest, data = real()
    match draw(st.sampled_from(["truncated", "flipped", "tree", "row", "manifest", "bomb", "column", "comment"])):
        case "truncated":
            return data[: draw(st.integers(0, len(data)))]
        case "flipped":
            changed = bytearray(data)
            for _ in range(draw(st.integers(1, 4))):
                changed[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))
            return bytes(changed)
        case "comment":
            return data[:-20] + draw(st.binary(max_size=40))
        case "tree":
            name = draw(st.sampled_from(["tree/000000.json", "tree.json"]))
            tree = _spoiled(draw, json.loads(parts[name]))
            return _packed({**parts, name: json.dumps(tree).encode()}, manifest)
        case "row":
            rows = {name: draw(WRONG) for name in draw(st.lists(st.sampled_from(ROWS), min_size=1, max_size=2))}
            return with_rows([rows])
        case "manifest":
            wrong = draw(st.lists(WRONG, min_size=1, max_size=3))
            at = draw(st.lists(st.integers(0, 10**6), min_size=len(wrong), max_size=len(wrong)))

            def lie(whole: dict[str, Any]) -> None:
                for value, place in zip(wrong, at, strict=True):
                    places = list(leaves(whole))
                    holder, key = places[place % len(places)]
                    holder[key] = value

            return _packed(parts, manifest, lie)
        case "bomb":
            name = draw(st.sampled_from(sorted(parts)))
            length = draw(st.sampled_from([1 << 20, PART_LIMIT + 1]))
            claimed = draw(st.sampled_from([10, length, 2**62]))

            def shorten(whole: dict[str, Any]) -> None:
                next(one for one in whole["parts"] if one["name"] == name)["length"] = claimed

            return _packed({**parts, name: b" " * length}, manifest, shorten)
    name = draw(st.sampled_from([one for one in sorted(parts) if one.endswith(".npy")]))
    return _packed({**parts, name: draw(st.binary(max_size=300)) + parts[name][draw(st.integers(0, 200)) :]}, manifest)


def with_rows(wrong: Sequence[Mapping[str, Any]]) -> bytes:
    """The bytes of a capture that says these of its segments, each of them of the next one."""
    parts, manifest, _ = real()
    tree = json.loads(parts["tree/000000.json"])
    entries = (entry for folder in tree.values() for entry in folder if "segment" in entry.get("content", {}))
    for entry, values in zip(entries, itertools.cycle(wrong), strict=False):
        entry["content"]["segment"].update(copy.deepcopy(values))
    return _packed({**parts, "tree/000000.json": json.dumps(tree).encode()}, manifest)


def _spoiled(draw: st.DrawFn, document: Any) -> Any:
    for _ in range(draw(st.integers(1, 3))):
        places = list(leaves(document))
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        holder[key] = draw(WRONG)
    return document


def _packed(
    parts: Mapping[str, bytes], manifest: Mapping[str, Any], lie: Callable[[dict[str, Any]], None] = lambda _: None
) -> bytes:
    with tempfile.TemporaryDirectory() as work:
        return packed(parts, manifest, Path(work) / "forged.kfc", lie).read_bytes()


def explore(data: bytes) -> int:
    """Open everything in a capture; the number of files that could be read. Only errors about evidence end here."""
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "forged.kfc"
        path.write_bytes(data)
        with contextlib.suppress(EvidenceError):
            find_inputs([path], with_server_logs=True)
        try:
            capture = Capture(path)
        except EvidenceError:
            return 0
        read = 0
        for inner in capture.folders():
            try:
                entries = list((CapturePath(path) / inner).entries())
            except (EvidenceError, OSError):
                continue
            read += sum(_opened(CapturePath(path) / inner / entry.name) for entry in entries)
        return read


def _opened(path: CapturePath) -> bool:
    with contextlib.suppress(EvidenceError):
        for content in (Content.BATCHES, Content.CHECKED_BATCHES, Content.OFFSET_INDEX, Content.LAST_TIMESTAMP):
            kept = captured_content(path, Need(path.name, content))
            for _ in zip(range(1_000), getattr(kept, "batches", ()), strict=False):
                pass
    try:
        with open_evidence(path) as file:
            if not isinstance(file, CapturedSegment):
                assert len(file.read(0, MOST_READ)) <= MOST_READ
                return True
            with contextlib.suppress(EvidenceError):
                segment = captured_segment(file, path="", base_offset=0)
                assert isinstance(segment.batches, Absent) or len(segment.batches) == segment.batch_count
            readers = (
                captured_tail,
                captured_extent,
                captured_batches,
                captured_controls,
                captured_records,
                captured_commits,
                functools.partial(captured_columns, kind="batches"),
                functools.partial(captured_columns, kind="records"),
                functools.partial(rows_between, start=0, end=file.size),
                functools.partial(lacks_rows, lowest=0),
                lambda _: tail_bytes(path),
            )
            for read in readers:
                with contextlib.suppress(EvidenceError):
                    some = read(file)
                    for _, _ in zip(range(10_000), some if isinstance(some, Iterator) else (), strict=False):
                        pass
    except EvidenceError:
        return False
    return True
