"""The output of an audit: a directory of its own, or one more entry of a history; an audit that was interrupted there is continued."""

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.fleet.audit_tables import AUDIT_SCHEMA, AUDITS, AuditTables, finish_trim, history_of, manifest_name
from kforensics.fleet.keeping import Kept
from kforensics.fleet.lifecycle import bases_of, life_of, open_findings
from kforensics.fleet.lock import LOCK
from kforensics.fleet.publishing import AuditStamp, Counts, check_rows, is_part_of, publish
from kforensics.fleet.schemas import AUDIT_TABLES, CHANGES, JUDGED, OF_SEGMENTS, OF_VERDICTS
from kforensics.fleet.tables import AUDIT_MANIFEST, WORK, Tables, WorkTables


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The place that an audit writes to, and the attempt that writes."""

    tables: Tables
    stamp: AuditStamp
    run: int
    is_history: bool
    finished: AuditTables | None = None
    """The audit of this id, where the history has it already."""

    @property
    def work(self) -> Tables:
        """What the stages write."""
        return WorkTables(self.tables.location / WORK)

    def begin(self, manifest: Mapping[str, Any], tables: Iterable[str]) -> dict[str, Any]:
        """Declare the audit begun, and make room for its stages."""
        names = tuple(tables)
        if self.is_history:
            finish_trim(self.tables)
        if self.run > 1:
            for name in names:
                if name not in OF_SEGMENTS:
                    self.work.remove_folder(name)
            if self.is_history:
                # Of the parts that an interrupted attempt published no manifest names any.
                begun = self.work.read_manifest(AUDIT_MANIFEST) or {}
                known = {one.audit_id for one in history_of(self.tables)}
                for table in AUDIT_TABLES if "audit_id" in begun and begun["audit_id"] not in known else ():
                    for name in self.tables.all_names(table):
                        if is_part_of(name, str(begun["audit_id"])):
                            self.tables.remove_file(f"{table}/{name}")
            else:
                # The new attempt may publish fewer parts, and engines read all files of a folder.
                for name in AUDIT_TABLES:
                    self.tables.remove_folder(name)
        self.work.create(names)
        self.tables.create([AUDITS] if self.is_history else [])
        started = {
            "schema": AUDIT_SCHEMA,
            "is_complete": False,
            "audit_id": self.stamp.audit_id,
            "audited_at": datetime.fromtimestamp(self.stamp.audited_ns / 1e9, UTC).isoformat(),
            "audited_ns": self.stamp.audited_ns,
            "run": self.run,
            **manifest,
        }
        (self.work if self.is_history else self.tables).write_manifest(AUDIT_MANIFEST, started)
        return started

    def again(self, begun: Mapping[str, Any]) -> "Output":
        """Return the next attempt, before which what this one judged is removed."""
        for table in JUDGED:
            for part in self.work.parts(table):
                if part.startswith(f"run-{self.run:04d}-"):
                    self.work.remove(table, part)
        following = {**begun, "run": self.run + 1}
        (self.work if self.is_history else self.tables).write_manifest(AUDIT_MANIFEST, following)
        return replace(self, run=self.run + 1)

    def finish(
        self,
        manifest: Mapping[str, Any],
        expected: Mapping[str, int],
        counts: Counts,
        kept: Kept,
        kept_rows: Mapping[str, int],
        *,
        earlier: AuditTables | None = None,
    ) -> AuditTables:
        """Write what became of each finding, and declare the audit complete, if all rows are there."""
        check_rows(str(self.tables), expected, {table: sum(parts.values()) for table, parts in counts.items()})
        audits = history_of(self.tables) if self.is_history else [earlier] if earlier is not None else []
        bases = bases_of(audits, manifest["clusters"])
        published = AuditTables(self.tables.location, {**manifest, "tables": _named(counts, kept, kept_rows)})
        last = [one for one in audits if one.audit_id in bases]
        before = [row for one in last for row in open_findings(one, bases[one.audit_id])]
        rows = pa.Table.from_pylist(life_of(before, published, last), schema=CHANGES)
        clusters = sorted(filter(None, manifest["clusters"]))
        empty_for = next(iter(clusters), None)
        changes = publish(self.tables, self.stamp, "changes", [(rows, rows["cluster_id"])], empty_for=empty_for)
        counts = {**counts, "changes": changes}
        whole = {
            **manifest,
            "is_complete": True,
            "compared_with": sorted(bases),
            "tables": _named(counts, kept, kept_rows),
        }
        finished = AuditTables(self.tables.location, whole)
        finished.check_parts()
        self.tables.write_manifest(manifest_name(self.stamp.audit_id) if self.is_history else AUDIT_MANIFEST, whole)
        self.work.remove_folder("")
        return finished


def _named(counts: Counts, kept: Kept, kept_rows: Mapping[str, int]) -> dict[str, Any]:
    return {
        table: {
            "rows": sum(parts.values()) + kept_rows.get(table, 0),
            "parts": {**(kept.parts(table) if table in {*OF_VERDICTS, "replaced"} else {}), **parts},
        }
        for table, parts in counts.items()
    }


def open_output(out: Path, *, is_history: bool, audit_id: str | None) -> Output:
    """Return the output of an audit that begins or continues."""
    return _history_output(out, audit_id) if is_history else _own_output(out, audit_id)


def _own_output(out: Path, audit_id: str | None) -> Output:
    tables = Tables(out)
    manifest = tables.read_manifest(AUDIT_MANIFEST)
    if manifest is None:
        if not tables.is_empty(frozenset({LOCK})):
            raise UsageError(f"{out} is not empty and holds no audit; kforensics overwrites nothing")
        return Output(tables=tables, stamp=_new_stamp(audit_id), run=1, is_history=False)
    _require_version(out, manifest)
    if manifest.get("is_complete"):
        raise UsageError(f"{out} holds a finished audit: give another --out, and --since {out} to build on it")
    begun = str(manifest.get("audit_id", ""))
    if audit_id not in {None, begun}:
        raise UsageError(
            f"{out} holds the unfinished audit {begun}, not {audit_id}: continue it, or give another --out"
        )
    stamp = AuditStamp(audit_id=begun, audited_ns=int(manifest.get("audited_ns", 0)))
    return Output(tables=tables, stamp=stamp, run=int(manifest.get("run", 0)) + 1, is_history=False)


def _history_output(out: Path, audit_id: str | None) -> Output:
    tables = Tables(out)
    if tables.read_manifest(AUDIT_MANIFEST) is not None:
        raise UsageError(f"{out} holds the tables of one audit and is no history: give another --history")
    known = history_of(tables)
    work = WorkTables(out / WORK)
    begun = work.read_manifest(AUDIT_MANIFEST)
    if not known and begun is None and not tables.is_empty(frozenset({LOCK, WORK})):
        raise UsageError(f"{out} is not empty and holds no history of audits; kforensics overwrites nothing")
    finished = next((one for one in known if one.audit_id == audit_id), None)
    if finished is None and any(audit_id in one.kept_from for one in known):
        raise UsageError(f"{out} holds rows of the audit {audit_id}, which was trimmed: give another --audit-id")
    run = 1
    stamp = _new_stamp(audit_id)
    if begun is not None:
        _require_version(out, begun)
        run = int(begun.get("run", 0)) + 1
        if audit_id is not None and begun.get("audit_id") == audit_id:
            stamp = replace(stamp, audited_ns=int(begun.get("audited_ns", 0)))
    return Output(tables=tables, stamp=replace(stamp, is_history=True), run=run, is_history=True, finished=finished)


def _new_stamp(audit_id: str | None) -> AuditStamp:
    now = time.time_ns()
    moment = datetime.fromtimestamp(now // 1_000_000_000, UTC).strftime("%Y%m%dT%H%M%SZ")
    return AuditStamp(audit_id=audit_id or f"{moment}-{uuid.uuid4().hex[:8]}", audited_ns=now)


def _require_version(out: Path, manifest: Mapping[str, Any]) -> None:
    if manifest.get("schema") != AUDIT_SCHEMA:
        raise EvidenceUnreadable(str(out), "its tables are of another version of kforensics")
