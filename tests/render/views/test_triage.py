"""The screen of triage where what to do takes most of it."""

from kforensics import triage
from kforensics.render.emit import OutputFormat, emit
from kforensics.render.view import View


def test_topics_are_counted_where_what_to_do_leaves_no_room_for_a_table(incident):
    root = incident("consumer-ahead-4.x")
    result = triage(root / "snapshots" / "03-old-leader-down-live", root / "logs")
    short, whole = ("".join(emit(result, OutputFormat.TEXT, View(verbose=is_all))) for is_all in (False, True))

    assert len(short.splitlines()) <= 30
    assert "Lost or at risk: 2 topics (-v lists them)" in short
    assert "held by" not in short
    assert "held by" in whole
