"""The destination of a result: standard output, or a new file that is opened only when the work is done."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from kforensics.commands.outside import check_new_file
from kforensics.errors import EvidenceError, UsageError


def check_out(out: Path | None, inputs: Sequence[Path]) -> None:
    """Refuse, before the work, an output file that exists, has no directory, or would lie inside the evidence."""
    if out is not None:
        check_new_file(out, inputs)


class _StandardOutput:
    is_begun = False
    """Something of a result is written already."""


def forget_output() -> None:
    """Begin a command: nothing of its result is written yet."""
    _StandardOutput.is_begun = False


def write_refusal(error: EvidenceError) -> None:
    """Write the document of inputs that are refused, unless a result was begun before."""
    if not _StandardOutput.is_begun:
        from kforensics.render.emit import refusal_document

        write_result(refusal_document(error))


def _write_to_standard_output(pieces: Iterable[str]) -> None:
    for piece in pieces:  # made outside of the `try`: what evidence does not give is no fault of the output
        _StandardOutput.is_begun = True
        try:
            sys.stdout.write(piece)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _refused(error) from error
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _refused(error) from error


def _refused(error: OSError) -> UsageError:
    return UsageError(f"standard output can't be written: {error.strerror}; the result is incomplete")


def write_result(text: str | Iterable[str], out: Path | None = None) -> None:
    """Write the result, whole or piece by piece.

    Args:
        text: of the result; pieces may be made while they are written.
        out: a new file, which is removed again where it can't be written to its end; None for standard output.
    """
    pieces = (text,) if isinstance(text, str) else text
    if out is None:
        _write_to_standard_output(pieces)
        return
    try:
        with out.open("x", encoding="utf-8", newline="\n") as target:
            try:
                for piece in pieces:
                    target.write(piece)
                target.flush()
            except BaseException:
                out.unlink()  # what is not finished must not be taken for a result
                raise
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror}") from error
