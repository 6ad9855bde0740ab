"""The answer of `dump`: whether all content could be decoded."""

from kforensics.findings.answers.model import Answer, State
from kforensics.words import counted, form


def dump_answer(*, files: int, damaged: int, unread: int) -> Answer:
    """Return the answer to whether the content is whole.

    Args:
        damaged: those among them with damage that recovery does not repair.
        unread: things that could not be read.

    Returns:
        `damaged`, `unknown` or `complete`.
    """
    total = counted(files, "file")
    missed = f"{counted(unread, 'thing')} could not be read" if unread else ""
    if damaged:
        holds = form(damaged, "holds", "hold")
        return Answer(
            state=State.DAMAGED,
            headline=f"{damaged:,} of {total} {holds} damage, which is shown in its place.",
            now=(
                "Run `kforensics verify` on the same paths: it names what is lost and which replica holds it intact.",
            ),
            unknown=(f"{missed}.",) if missed else (),
        )
    if missed:
        return Answer(state=State.UNKNOWN, headline=f"Incomplete: {missed}; {total} decoded.")
    return Answer(state=State.COMPLETE, headline=f"{total} decoded.")
