"""The commands as functions: what `kforensics.diff(...)` and the others do."""

import html
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kforensics.ask.commands import COMMANDS
from kforensics.ask.questions import called, options_of
from kforensics.case.processes import paced
from kforensics.commands.result import Body, Result
from kforensics.errors import MissingExtra
from kforensics.render.emit import OutputFormat, emit, formats_of
from kforensics.render.escape import shorten
from kforensics.render.view import View

if TYPE_CHECKING:
    import pyarrow as pa


class Answered(Result[Body]):
    """The result of a function: that of the command, with its document, its rows, and how a notebook shows it."""

    view: View = View()
    """What of it the document shows."""

    def __repr__(self) -> str:
        """Return the answer in a line."""
        return f"<kforensics {self.command}: {self.answer.state}, exit code {int(self.exit_code)}: {shorten(self.answer.headline, 200)}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the answer, what to do now, and the findings."""
        listed = "".join(f"<li>{html.escape(words)}</li>" for words in self.answer.now)
        rows = "".join(
            f"<tr><td>{html.escape(one.code)}</td><td>{html.escape(one.severity)}</td><td>{html.escape(one.statement)}</td></tr>"
            for one in self.findings[:MOST_SHOWN]
        )
        more = len(self.findings) - MOST_SHOWN
        rest = f"<p>and {more:,} more findings</p>" if more > 0 else ""
        return (
            f"<p><b>{html.escape(self.answer.headline)}</b> ({html.escape(self.answer.state)}, exit code {int(self.exit_code)})</p>"
            f"<ul>{listed}</ul><table>{rows}</table>{rest}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `--format json` writes."""
        found: dict[str, Any] = json.loads("".join(self._pieces(OutputFormat.JSON)))
        return found

    def to_arrow(self, kind: str) -> "pa.Table":
        """Return rows as a table of Arrow, which pandas, DuckDB and Polars read; a value that is not there is null.

        Args:
            kind: a list of the document by its name, such as `partitions`, `findings` (which are `statements` too), `losses`; of `explain` and `metadata` also
                `events`, of `diff` and `metadata` the `epochs` of each log, of `dump` `batches`, `records`, or another type of a line.

        Raises:
            MissingExtra: pyarrow is not installed.
            ValueError: the result has no such rows.
        """
        try:
            import pyarrow as pa  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra("spark", "rows as Arrow") from error
        rows = self._rows(kind)
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.table({name: _column([row.get(name) for row in rows]) for name in names})

    def _rows(self, kind: str) -> list[dict[str, Any]]:
        if self.command == "dump":
            lines = [json.loads(line) for piece in self._pieces(OutputFormat.JSONL) for line in piece.splitlines()]
            if kind not in _TYPES and all(line["type"] != kind for line in lines):
                raise ValueError(
                    f"dump has no rows {kind!r}; there are {', '.join(sorted({one['type'] for one in lines}))}"
                )
            return [line for line in lines if line["type"] == _TYPES.get(kind, kind)]
        document = self.to_dict()
        lists = {name: value for name, value in document.items() if isinstance(value, list)}
        if "findings" in lists:
            lists["statements"] = lists["findings"]
        if "timeline" in lists:
            lists["events"] = lists["timeline"]
        if self.command in {"diff", "metadata"}:
            lists["epochs"] = [*_epochs(lists)]
        if kind not in lists:
            raise ValueError(f"{self.command} has no rows {kind!r}; there are {', '.join(lists)}")
        return [row if isinstance(row, dict) else {"value": row} for row in lists[kind]]

    def _pieces(self, chosen: OutputFormat) -> Iterator[str]:
        if chosen not in formats_of(self.shape):
            raise ValueError(f"{self.shape} has no {chosen}")
        yield from emit(self, chosen, self.view)


class Audited(Answered[Body]):
    """The result of an audit or of a report of one, whose tables are rows of Arrow as a whole."""

    storage: Mapping[str, str] = MappingProxyType({})
    """Options of the storage that its tables are on."""
    session: Any = None
    """The session of Spark that the audit was made with, where it was given."""

    def to_arrow(self, kind: str) -> "pa.Table":
        """Return a table of the audit, all of its rows; or another list of the document, as for other results.

        Args:
            kind: as `docs/fleet-tables.md` has the tables: `partitions`, `findings`, `changes`, `replicas`, …
        """
        tables: Any = import_module("kforensics.fleet.audit_tables")
        body: Any = self.body
        if kind not in tables.AUDIT_TABLES or not hasattr(body, "tables"):
            return super().to_arrow(kind)
        location = import_module("kforensics.fleet.storage").parse_location(body.tables, self.storage)
        found: pa.Table = tables.open_audit(location, body.audit_id).dataset(kind).to_table()
        return found

    def to_spark(self, kind: str, session: Any = None) -> Any:
        """Return a table of the audit as a DataFrame of Spark, which reads its parts on the workers.

        Args:
            kind: as `docs/fleet-tables.md` has the tables.
            session: of Spark, or of Spark Connect; where none is given, that of the audit.
        """
        session = self.session if session is None else session
        if session is None:
            raise TypeError("to_spark: the audit was given no session of Spark; name one behind the table")
        tables: Any = import_module("kforensics.fleet.audit_tables")
        body: Any = self.body
        location = import_module("kforensics.fleet.storage").parse_location(body.tables, self.storage)
        frames: Any = import_module("kforensics.fleet.frames")
        return frames.frame_of(session, tables.open_audit(location, body.audit_id), kind)


_TYPES = {"batch": "batch", "batches": "batch", "record": "record", "records": "record"}
"""The types of lines by the names of rows."""

_LOG = ("topic", "partition", "broker_id", "node_id", "input", "path")
"""What says of which log epochs are, as far as a document has it."""


def _epochs(lists: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the leader epochs of each log: those of its batches, and those of its `leader-epoch-checkpoint`."""
    logs = [{**one, **replica} for one in lists.get("partitions", ()) for replica in one["replicas"]]
    for log in (*logs, *lists.get("logs", ())):
        of_log = {name: log[name] for name in _LOG if name in log}
        for source, name in (("batches", "epochs"), ("checkpoint", "checkpoint_epochs")):
            for leader_epoch, start_offset in log.get(name) or ():
                yield {**of_log, "source": source, "leader_epoch": leader_epoch, "start_offset": start_offset}


def _column(values: list[Any]) -> "pa.Array":
    """Return a column; of values of several types as JSON."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if one is None else json.dumps(one) for one in values])


MOST_SHOWN = 50
"""Findings in a notebook."""


def function_of(name: str) -> Callable[..., Answered[Any]]:
    """Return the function that does what a command does."""
    of_fleet = name.startswith("fleet-")

    def ask(*paths: Any, **options: Any) -> Answered[Any]:
        session = options.pop("session", None) if name == "fleet-audit" else None
        if name == "fleet-audit" and paths and hasattr(paths[0], "createDataFrame"):
            session, *paths = paths  # type: ignore[assignment] # what is called as functions of Spark are
        asked = called(name, paths, options)
        if of_fleet:
            more = {"session": session} if name == "fleet-audit" else {}
            result = import_module("kforensics.fleet.session").run(name, asked, **more)
        else:
            asked = asked if name == "simulate" else paced(asked)
            module = import_module(f"kforensics.commands.{name}")
            run = module.check if name == "seal" and asked.check is not None else module.run
            result = run(asked)
        kind = Audited if name in {"fleet-audit", "fleet-report"} else Answered
        found = kind(**{one.name: getattr(result, one.name) for one in fields(result)})
        if name == "seal" and callable(found.concluded):  # a manifest, or its check, is read once
            found.concluded = found.concluded()
        if isinstance(found, Audited):
            found.storage, found.session = asked.storage, session
        shown = {one.option.shown: getattr(asked, one.field) for one in options_of(name) if one.option.shown}
        found.view = View(**shown)
        return found

    ask.__name__ = ask.__qualname__ = name.removeprefix("fleet-")
    ask.__doc__ = COMMANDS[name].words
    ask.__module__ = "kforensics.fleet" if of_fleet else "kforensics"
    ask.__signature__ = signature_of(name)  # type: ignore[attr-defined] # for help() and for editors
    return ask


def signature_of(name: str) -> inspect.Signature:
    """Return the parameters of a function: paths, and the options of the command by name."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    given = inspect.Parameter("paths", inspect.Parameter.VAR_POSITIONAL)
    options = [
        inspect.Parameter(one.name, keyword, default=one.default) for one in options_of(name) if one.option.flags
    ]
    more = [inspect.Parameter("session", keyword, default=None)] if name == "fleet-audit" else []
    return inspect.Signature([given, *options, *more])
