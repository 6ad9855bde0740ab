"""The answers of `capture` and `seal`."""

from collections.abc import Mapping, Sequence

from kforensics.damage import Absent
from kforensics.evidence.seal import Change, SealCounts
from kforensics.findings.answers.model import Answer, State
from kforensics.words import Step, byte_count, counted

MOST_NAMED = 5
_MB = 1_000_000


def capture_answer(
    node_id: int | Absent,
    name: str | None,
    unread: Sequence[str],
    *,
    changed: int,
    seconds: int,
    capture_bytes: int,
    is_by_ends: bool = False,
) -> Answer:
    """Return the answer of `capture`: the extent of a capture, or of the plan of one."""
    whose = "a node without meta.properties" if isinstance(node_id, Absent) else f"node {node_id}"
    state = State.UNKNOWN if unread else State.COMPLETE
    missing = tuple(unread[:MOST_NAMED])
    if len(unread) > MOST_NAMED:
        missing += (f"{len(unread) - MOST_NAMED} more could not be read",)
    if name is None:
        size = f"{capture_bytes / _MB:.1f} MB" if capture_bytes >= _MB else f"{max(capture_bytes // 1000, 1)} KB"
        return Answer(
            state=state,
            headline=f"A capture of {whose} will take about {_duration(seconds)} and about {size}.",
            now=("Take it: the same command with -o FILE instead of --plan",),
            unknown=missing,
        )
    if unread:
        count = "1 thing" if len(unread) == 1 else f"{len(unread)} things"
        headline = f"{name} lacks {count} of {whose} that could not be read; the rest is in it."
    else:
        headline = f"{name} has the evidence of {whose}{', of logs their ends alone' if is_by_ends else ''}."
    depth = " --depth tails" if is_by_ends else ""
    ends = ("Content below the ends of the logs: a capture at depth content reads it",) if is_by_ends else ()
    return Answer(
        state=state,
        headline=headline,
        now=(Step("Bring it together with the captures of the other nodes", (f"kforensics diff{depth} *.kfc",)),),
        unknown=(*missing, *ends, *_changed(changed)),
    )


def _changed(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    files = "1 file" if count == 1 else f"{count} files"
    return (f"{files} changed meanwhile, as on a running broker: the logs are not of one moment",)


def _duration(seconds: int) -> str:
    if seconds < 120:
        return f"{max(seconds, 1)} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


_ALTERED = {Change.CONTENT: "altered", Change.MISSING: "missing", Change.ADDED: "added"}


def manifest_answer(counts: SealCounts, *, sha256: str) -> Answer:
    """Return the answer to what a new manifest seals, or to what it would seal where none is written, without its sum."""
    empty = "" if counts.files or counts.incomplete else " (nothing lies below the paths: is the volume mounted?)"
    if not sha256:
        return Answer(
            state=State.UNKNOWN if counts.incomplete else State.COMPLETE,
            headline=f"Hashed {counted(counts.files, 'file')}, {byte_count(counts.bytes)}{empty}; this is no manifest, and nothing can be compared with it.",
            now=("Write the manifest: the same command with -o FILE and no --format.",),
        )
    return Answer(
        state=State.UNKNOWN if counts.incomplete else State.COMPLETE,
        headline=f"sealed {counted(counts.files, 'file')}, {byte_count(counts.bytes)}{empty}; the manifest's sha256 is {sha256}",
    )


def check_answer(
    changes: Mapping[Change, int], sealed: SealCounts, *, held: int, problems: int, is_signature_broken: bool
) -> Answer:
    """Return the answer to whether evidence is what was sealed."""
    total = counted(sealed.files + sealed.directories + sealed.others, "entry", "entries")
    differ = [f"{changes[change]:,} {words}" for change, words in _ALTERED.items() if changes[change]]
    missed = f"{counted(problems, 'entry', 'entries')} could not be compared" if problems else ""
    if is_signature_broken:
        return Answer(state=State.CHANGED, headline="The seal itself can't be trusted: its signature does not hold.")
    if differ:
        return Answer(
            state=State.CHANGED,
            headline=f"This is not what was sealed: {', '.join(differ)}; {held:,} of {total} hold.",
            unknown=(f"{missed}: see the end.",) if missed else (),
        )
    if missed:
        return Answer(
            state=State.UNKNOWN,
            headline=f"Not all of it can be compared with the seal: {counted(problems, 'problem')}.",
        )
    return Answer(
        state=State.UNCHANGED,
        headline=f"Nothing has changed since it was sealed: {total}, {byte_count(sealed.bytes)}.",
    )
