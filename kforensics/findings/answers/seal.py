"""The answers of `seal`: what was sealed, and whether that has changed since."""

from collections.abc import Mapping

from kforensics.evidence.seal.manifest import SealCounts
from kforensics.evidence.seal.state import Change
from kforensics.findings.answers.model import Answer, State
from kforensics.words import byte_count, counted

_ALTERED = {Change.CONTENT: "altered", Change.MISSING: "missing", Change.ADDED: "added"}


def manifest_answer(counts: SealCounts, *, sha256: str) -> Answer:
    """Return the answer to what a new manifest seals.

    Args:
        sha256: of its bytes.

    Returns:
        `complete`, or `unknown` where something could not be read.
    """
    empty = "" if counts.files or counts.incomplete else " (nothing lies below the paths: is the volume mounted?)"
    return Answer(
        state=State.UNKNOWN if counts.incomplete else State.COMPLETE,
        headline=f"sealed {counted(counts.files, 'file')}, {byte_count(counts.bytes)}{empty}; the manifest's sha256 is {sha256}",
    )


def check_answer(
    changes: Mapping[Change, int], sealed: SealCounts, *, held: int, problems: int, is_signature_broken: bool
) -> Answer:
    """Return the answer to whether evidence is what was sealed.

    Args:
        problems: entries that could not be compared.
        is_signature_broken: whether the signature was checked and does not hold.

    Returns:
        `changed`, `unknown` or `unchanged`.
    """
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
