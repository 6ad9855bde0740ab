"""What commands say of captures, held against what they say of the directories that the captures were taken of.

`python -m tests.captures RECORDINGS...` does so for every snapshot of every recording below the directories.
"""

import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kforensics.ask.model import Ask
from kforensics.case.comparison import compare_all, comparison_of
from kforensics.cli.app import run
from kforensics.commands.capture import run as capture
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.source.capture import split_at_capture
from kforensics.source.store import store_of
from kforensics.units import Depth
from tests.builders.cases import case_of


def take(paths: Sequence[Path], out: Path, **options: Any) -> Path:
    """A capture of the paths."""
    stops = {name: options.pop(name) for name in ("is_asked_to_stop",) if name in options}
    capture(Ask(paths=tuple(paths), out=out, **options), **stops)
    return out


_COPY = re.compile(r'\\"\$\{SAFE:\?\}\\"/[^\s"]+')


def document(command: str, paths: Sequence[Path | str], *options: str) -> tuple[dict[str, Any], int]:
    """What a command prints as JSON, and its exit code; paths of inputs, and of copies that are called after them, are left out."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = run([command, *map(str, paths), *options, "--format", "json"])
    if not out.getvalue():
        return {"error": errors.getvalue()}, code
    found = json.loads(out.getvalue())
    # Most captures hold no records: what to do about that is said of them alone.
    for words in (found.get("advice"), (found.get("answer") or {}).get("now")):
        if words:
            words[:] = [one for one in words if "kforensics salvage" not in one]
    given = {str(one) for one in (*paths, *options)} | {one["path"] for one in found.get("inputs", ())}
    stores = [store_of(one) for name in given if (one := split_at_capture(Path(name))) is not None]
    given |= {one.origin for one in stores if one.inner and one.origin}
    names = sorted(given, key=len, reverse=True)
    text = json.dumps(found, sort_keys=True)
    for name in (name for name in names if "/" in name):
        text = text.replace(json.dumps(name)[1:-1], "INPUT")
    text = _COPY.sub("COPY", text)
    return json.loads(text), code


def differences(one: Any, other: Any, place: str = "$") -> Iterator[str]:
    """Where two documents are not the same."""
    if type(one) is not type(other):
        yield f"{place}: {one!r} and {other!r}"
    elif isinstance(one, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list):
        if len(one) != len(other):
            yield f"{place}: {len(one)} and {len(other)} elements: {json.dumps(one)[:300]} and {json.dumps(other)[:300]}"
        for at, (mine, its) in enumerate(zip(one, other, strict=False)):
            yield from differences(mine, its, f"{place}[{at}]")
    elif one != other:
        yield f"{place}: {one!r} and {other!r}"


def nodes_of(snapshot: Path) -> list[Path]:
    """The directories of nodes in a snapshot of a recording."""
    return sorted(one for one in snapshot.iterdir() if one.is_dir())


def _place(snapshot: Path) -> Path:
    """The snapshot, or the directory of its only node, which is what is captured: citations are relative to it."""
    nodes = nodes_of(snapshot)
    return nodes[0] if len(nodes) == 1 else snapshot


def compare_recording(recording: Path, work: Path, *, of_every_moment: bool = True) -> Iterator[str]:
    """Where commands say something else of captures, one of each node, than of the directories of a recording.

    Args:
        recording: with `snapshots` and perhaps `logs` in it.
        work: where captures are written.
        of_every_moment: compare each snapshot by itself, too, not only the last one with all before it.
    """
    snapshots = sorted(one for one in (recording / "snapshots").iterdir() if one.is_dir())
    *earlier, final = snapshots
    folders: dict[Path, Path] = {}
    for snapshot in snapshots:
        folder = folders[snapshot] = work / recording.name / snapshot.name
        folder.mkdir(parents=True)
        captures = [take([node], folder / f"{node.name}.kfc") for node in nodes_of(snapshot)]
        if of_every_moment or snapshot is final:
            yield from _compare("diff", [_place(snapshot)], [folder], snapshot)
            yield from compare_short_ways(nodes_of(snapshot))
            yield from compare_short_ways(captures)
        if of_every_moment:
            yield from _compare("predict", [_place(snapshot)], [folder], snapshot)
            yield from _compare("groups", [_place(snapshot)], [folder], snapshot, options=(_HISTORY, _HISTORY))
            yield from _compare("transactions", [_place(snapshot)], [folder], snapshot, options=(_ALL, _ALL))
            yield from compare_ends(snapshot, folder.with_name(f"{snapshot.name}-ends"))
            mixed = [*nodes_of(snapshot)[:1], *captures[1:]]
            yield from _compare("diff", nodes_of(snapshot), mixed, snapshot, what="mixed")
    logs = [recording / "logs"] if (recording / "logs").is_dir() else []
    of_logs = [take(logs, work / recording.name / "logs.kfc")] if logs else []
    there = [word for one in earlier for word in ("--before", str(_place(one)))]
    here = [word for one in earlier for word in ("--before", str(folders[one]))]
    if of_every_moment:
        yield from _compare("explain", [_place(final), *logs], [folders[final], *of_logs], final)
    options = (there, here)
    yield from _compare(
        "explain", [_place(final), *logs], [folders[final], *of_logs], final, options=options, what="before"
    )


def compare_short_ways(paths: Sequence[Path]) -> Iterator[str]:
    """Where `diff` says something else of a partition by the results of partitions like it than by its replicas: the second time each is like itself."""
    inputs = find_inputs(paths, with_server_logs=True)
    whole = comparison_of(case_of(inputs))
    short = whole._replace(keep_quiet=False, quiet={})
    every = compare_all(whole, 1, None)
    for _ in range(2):
        for one, other in zip(every, compare_all(short, 1, None), strict=True):
            if one._replace(report=None) != other._replace(report=None):
                yield f"{one.partition}: {one.judged} and {other.judged}"


def compare_ends(snapshot: Path, folder: Path) -> Iterator[str]:
    """Where commands at depth tails say something else of captures at that depth than of the directories."""
    folder.mkdir()
    for node in nodes_of(snapshot):
        take([node], folder / f"{node.name}.kfc", depth=Depth.TAILS)
    for command in ("diff", "explain", "ls"):
        yield from _compare(command, [_place(snapshot)], [folder], snapshot, options=(_TAILS, _TAILS), what="ends")


_TAILS = ("--depth", "tails")
_HISTORY, _ALL = ("--history",), ("--all",)


def _compare(
    command: str,
    directories: Sequence[Path],
    captures: Sequence[Path],
    snapshot: Path,
    *,
    options: tuple[Sequence[str], Sequence[str]] = ((), ()),
    what: str = "",
) -> Iterator[str]:
    one, code = document(command, directories, *options[0])
    other, its_code = document(command, captures, *options[1])
    label = f"{snapshot.parent.parent.name}/{snapshot.name}: {command} {what}".rstrip()
    if code != its_code:
        yield f"{label}: exit code {code} and {its_code}"
    yield from (f"{label}: {line}" for line in differences(one, other))


def main(places: Sequence[str]) -> int:
    """Compare all recordings; 1 where anything differs."""
    failed = 0
    for place in places:
        for recording in sorted(Path(place).iterdir() if not (Path(place) / "snapshots").is_dir() else [Path(place)]):
            if not (recording / "snapshots").is_dir():
                continue
            with tempfile.TemporaryDirectory() as work:
                lines = list(compare_recording(recording, Path(work)))
            print(f"{recording.name}: {len(lines)} differences", flush=True)
            for line in lines[:12]:
                print(f"    {line[:600]}")
            failed += bool(lines)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
