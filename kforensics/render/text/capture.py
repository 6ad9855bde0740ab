"""What `capture` shows: the answer, and what is in the file."""

from collections.abc import Iterator

from rich.text import Text

from kforensics.commands.capture import CaptureReport, WrittenCapture
from kforensics.commands.result import Result
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import INDENT, wrapped
from kforensics.render.text.whole import problem_lines, whole_screen
from kforensics.render.view import View
from kforensics.words import byte_count, counted, form


@whole_screen
def write(result: Result[CaptureReport], view: View) -> Iterator[Text | str]:
    """Yield figures, and with -v all that could not be read and what changed meanwhile.

    Args:
        result: of `capture`.
        view: of the screen, and whether all is listed.
    """
    width, verbose = view.width, view.verbose
    yield ""
    one = result.body.capture
    if isinstance(one, WrittenCapture):
        yield from wrapped(
            f"{escape_text(one.path)}: {byte_count(one.bytes)}, out of {byte_count(one.read_bytes)} that were read: "
            f"{counted(one.replicas, 'replica')}, {counted(one.segments, 'segment')} with {counted(one.batches, 'row')} of batches, "
            f"{counted(one.files, 'file')} byte for byte.",
            width=width,
        )
        if one.blanked_records:
            yield from wrapped(
                f"{counted(one.blanked_records, 'record or line', 'records or lines')} could not be written again without names, and "
                f"{form(one.blanked_records, 'was', 'were')} left out; the manifest says which kinds.",
                width=width,
            )
        if one.reused_segments:
            yield from wrapped(
                f"{counted(one.reused_segments, 'segment')} of {byte_count(one.reused_bytes)} did not change since the earlier capture and "
                f"{form(one.reused_segments, 'was', 'were')} not read again.",
                width=width,
            )
        if one.record_bytes:
            yield from wrapped(
                f"It holds {byte_count(one.record_bytes)} of batches with the records of users: it is as private as the log directories.",
                width=width,
            )
        else:
            yield from wrapped("No key, value or header of a record of a topic of yours is in it.", width=width)
        if verbose:
            for path in one.changed:
                yield from wrapped(
                    f"changed meanwhile: {escape_text(path)}", width=width, indent=INDENT * 2, first=INDENT
                )
    else:
        plan = result.body.plan
        speed = f", at {byte_count(plan.bytes_per_second)} a second" if plan.bytes_per_second else ""
        yield from wrapped(
            f"{byte_count(plan.read_bytes)} to read{speed}: {counted(plan.replicas, 'replica')}, {counted(plan.segments, 'segment')}, "
            f"{counted(plan.files, 'file')} byte for byte.",
            width=width,
        )
    if verbose:
        yield from problem_lines(result.problems, result.inputs, width)
