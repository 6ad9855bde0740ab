"""What `capture` shows: what is in the file, or what a capture would read."""

from collections.abc import Iterator

from kforensics.commands.capture import CaptureReport, WrittenCapture
from kforensics.commands.result import Result
from kforensics.render.blocks import GAP, Block, Prose, item
from kforensics.render.frame import problem_items
from kforensics.render.view import View
from kforensics.words import byte_count, counted, form


def blocks(result: Result[CaptureReport], view: View) -> Iterator[Block]:
    """Yield figures, and with -v all that could not be read and what changed meanwhile."""
    yield GAP
    one = result.body.capture
    if isinstance(one, WrittenCapture):
        yield from _written(one)
        for path in one.changed if view.verbose or view.page else ():
            yield item(f"changed meanwhile: {path}")
    else:
        plan = result.body.plan
        speed = f", at {byte_count(plan.bytes_per_second)} a second" if plan.bytes_per_second else ""
        yield Prose(
            f"{byte_count(plan.read_bytes)} to read{speed}: {counted(plan.replicas, 'replica')}, {counted(plan.segments, 'segment')}, "
            f"{counted(plan.files, 'file')} byte for byte."
        )
    if view.verbose:
        yield from problem_items(result.problems, result.inputs, view)


def _written(one: WrittenCapture) -> Iterator[Block]:
    yield Prose(
        f"{one.path}: {byte_count(one.bytes)}, out of {byte_count(one.read_bytes)} that were read: "
        f"{counted(one.replicas, 'replica')}, {counted(one.segments, 'segment')} with {counted(one.batches, 'row')} of batches, "
        f"{counted(one.files, 'file')} byte for byte."
    )
    if one.blanked_records:
        yield Prose(
            f"{counted(one.blanked_records, 'record or line', 'records or lines')} could not be written again without names, and "
            f"{form(one.blanked_records, 'was', 'were')} left out; the manifest says which kinds."
        )
    if one.reused_segments:
        yield Prose(
            f"{counted(one.reused_segments, 'segment')} of {byte_count(one.reused_bytes)} did not change since the earlier capture and "
            f"{form(one.reused_segments, 'was', 'were')} not read again."
        )
    if one.record_bytes:
        yield Prose(
            f"It holds {byte_count(one.record_bytes)} of batches with the records of users: it is as private as the log directories."
        )
    else:
        yield Prose("No key, value or header of a record of a topic of yours is in it.")
