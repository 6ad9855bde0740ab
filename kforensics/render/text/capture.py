"""What `capture` shows: the answer, and what is in the file."""

from collections.abc import Iterator

from kforensics.commands.capture import CaptureReport, WrittenCapture
from kforensics.commands.result import Result
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import Line, Words, hanging
from kforensics.render.text.whole import problem_lines, whole_screen
from kforensics.render.view import View
from kforensics.words import byte_count, counted, form


@whole_screen
def write(result: Result[CaptureReport], view: View) -> Iterator[Line]:
    """Yield figures, and with -v all that could not be read and what changed meanwhile.

    Args:
        view: of the screen, and whether all is listed.
    """
    yield ""
    one = result.body.capture
    if isinstance(one, WrittenCapture):
        yield Words(
            f"{escape_text(one.path)}: {byte_count(one.bytes)}, out of {byte_count(one.read_bytes)} that were read: "
            f"{counted(one.replicas, 'replica')}, {counted(one.segments, 'segment')} with {counted(one.batches, 'row')} of batches, "
            f"{counted(one.files, 'file')} byte for byte."
        )
        if one.blanked_records:
            yield Words(
                f"{counted(one.blanked_records, 'record or line', 'records or lines')} could not be written again without names, and "
                f"{form(one.blanked_records, 'was', 'were')} left out; the manifest says which kinds."
            )
        if one.reused_segments:
            yield Words(
                f"{counted(one.reused_segments, 'segment')} of {byte_count(one.reused_bytes)} did not change since the earlier capture and "
                f"{form(one.reused_segments, 'was', 'were')} not read again."
            )
        if one.record_bytes:
            yield Words(
                f"It holds {byte_count(one.record_bytes)} of batches with the records of users: it is as private as the log directories."
            )
        else:
            yield Words("No key, value or header of a record of a topic of yours is in it.")
        if view.verbose:
            for path in one.changed:
                yield hanging(f"changed meanwhile: {escape_text(path)}")
    else:
        plan = result.body.plan
        speed = f", at {byte_count(plan.bytes_per_second)} a second" if plan.bytes_per_second else ""
        yield Words(
            f"{byte_count(plan.read_bytes)} to read{speed}: {counted(plan.replicas, 'replica')}, {counted(plan.segments, 'segment')}, "
            f"{counted(plan.files, 'file')} byte for byte."
        )
    if view.verbose:
        yield from problem_lines(result.problems, result.inputs)
