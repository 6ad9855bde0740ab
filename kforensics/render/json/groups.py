"""Consumer groups, their positions and their history as plain JSON values."""

from collections.abc import Iterable, Iterator
from typing import Any

from kforensics.commands.groups import Groups
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.reconcile.groups.replay import Change
from kforensics.reconcile.groups.share_state import DELIVERY_STATES, ShareState
from kforensics.reconcile.groups.views import GroupPosition, GroupView
from kforensics.render.json.document import document, fields_of, to_plain, typed_lines
from kforensics.render.view import View


def write(result: Result[Groups], _view: View) -> Iterator[str]:
    """Return the fields that `docs/json.md` promises; `commits` only where the history was asked for."""
    body = result.body
    fields = {"complete_since": body.complete_since_ms, "skipped_records": body.skipped_records}
    streams: dict[str, Iterable[Any]] = {"groups": map(_group, body.groups)}
    if body.request.history or body.request.expired:
        streams["commits"] = map(_change, body.changes())
    return document(result, "groups", fields, streams=streams)


def write_lines(result: Result[Groups], _view: View) -> Iterator[str]:
    """Return a commit a line."""
    return typed_lines(("commit", map(_change, result.body.changes())))


def _group(view: GroupView) -> dict[str, Any]:
    state = view.state
    unknown = 0 if view.is_known_empty else Absent.UNKNOWN
    return {
        "group": to_plain(view.name),
        "type": Absent.NOT_WRITTEN if state is None else state.type,
        "state": ("Empty" if view.is_known_empty else Absent.UNKNOWN) if state is None else state.name,
        "members": unknown if state is None else state.member_count,
        "generation": Absent.NOT_WRITTEN if state is None else state.generation,
        "positions": [_position(one) for one in view.positions],
    }


def _position(one: GroupPosition) -> dict[str, Any]:
    return {
        "topic": to_plain(one.topic),
        "partition": one.partition,
        "offset": one.position.offset,
        "log_end_offset": one.log_end_offset,
        "lag": one.lag,
        "committed_at_ms": one.position.committed_ms,
        "past_the_end": one.is_past_the_end,
        "log_start_offset": one.log_start_offset,
        "before_markers": one.is_before_markers,
        "citations": [one.position.at.cite(one.position.place)],
        **({} if one.share is None else {"state_epoch": one.share.state_epoch, "deliveries": _deliveries(one.share)}),
    }


def _deliveries(share: ShareState) -> list[dict[str, Any]]:
    return [
        {
            "first_offset": one.first_offset,
            "last_offset": one.last_offset,
            "state": DELIVERY_STATES.get(one.state, f"state {one.state}"),
            "count": one.delivered,
        }
        for one in share.deliveries
    ]


def _change(change: Change) -> dict[str, Any]:
    nothing = Absent.NOT_APPLICABLE
    return {
        "group": to_plain(change.key.group),
        "topic": to_plain(change.key.topic),
        "partition": change.key.partition,
        "offset": nothing if change.offset is None else change.offset,
        "previous_offset": nothing if change.previous is None else change.previous,
        **fields_of(change, "time_ms", "by", "confidence", "reason"),
        "transactional": change.is_transactional,
        "citations": change.citations,
    }
