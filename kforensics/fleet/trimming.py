"""Trimming a history: audits that are older than some days go, and what later ones hold of them stays.

One file says which audits are trimmed, so that a reader sees all of them or none, whenever it looks and wherever the work ends. Files go after that, and the manifests last.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from kforensics.errors import EvidenceError, UsageError
from kforensics.findings.fleet_summary import TrimmedHistory
from kforensics.fleet.audit_tables import AUDITS, TRIMMED, AuditTables, every_audit, history_of, manifest_name
from kforensics.fleet.lock import hold_lock
from kforensics.fleet.tables import AUDIT_MANIFEST, Tables

DAY_NS = 86_400 * 1_000_000_000
MOST_LOOKS = 3
"""Times that a reader looks at a history which is trimmed while it reads."""

Looked = TypeVar("Looked")


def trim_history(tables: Tables, days: int, *, take_over: bool = False) -> TrimmedHistory:
    """Remove the audits of a history that are older than some days, but for the latest of each cluster and depth, and all that only they hold."""
    if tables.read_manifest(AUDIT_MANIFEST) is not None or not history_of(tables):
        raise UsageError(f"{tables} is no history of finished audits")
    with hold_lock(tables, take_over=take_over):
        begun = every_audit(tables)
        finish_trim(tables)
        audits = history_of(tables)
        kept = {one.audit_id for one in audits if one.audited_ns >= time.time_ns() - days * DAY_NS} | _latest(audits)
        trimmed = [one.audit_id for one in audits if one.audit_id not in kept]
        if trimmed:
            tables.write_manifest(TRIMMED, {"audits": trimmed})
            finish_trim(tables)
    left = history_of(tables)
    gone = [one for one in begun if one.audit_id not in {each.audit_id for each in left}]
    paths = [
        one
        for table in {name for audit in gone for name in audit.manifest["tables"]}
        for one in _only(table, gone, left)
    ]
    return TrimmedHistory(
        tables=str(tables),
        days=days,
        audits=tuple(one.audit_id for one in left),
        trimmed_audits=tuple(one.audit_id for one in gone),
        removed_files=len(paths),
        oldest_ms=left[0].audited_ns // 1_000_000,
    )


def _latest(audits: Sequence[AuditTables]) -> set[str]:
    """Return the audits that the next ones build on: the latest of each cluster, and of each cluster and depth."""
    found: dict[object, str] = {}
    for one in audits:
        for cluster in one.manifest["clusters"]:
            found[cluster] = found[cluster, one.depth] = one.audit_id
    return set(found.values())


def finish_trim(tables: Tables) -> None:
    """Remove what the audits that are trimmed alone hold; whoever calls it holds the lock."""
    if tables.read_manifest(TRIMMED) is None:
        return
    left = history_of(tables)
    kept = {one.audit_id for one in left}
    gone = [one for one in every_audit(tables) if one.audit_id not in kept]
    for table in sorted({name for one in gone for name in one.manifest["tables"]}):
        for part in _only(table, gone, left):
            tables.remove(table, part)
    for one in gone:
        tables.remove_file(*manifest_name(one.audit_id).split("/"))
    tables.remove_file(*TRIMMED.split("/"))


def _only(table: str, gone: Iterable[AuditTables], left: Iterable[AuditTables]) -> Iterator[str]:
    """Yield the parts of a table that no audit which is left has rows in."""
    held = {part for one in left for part in one.rows_of_parts(table)}
    yield from sorted({part for one in gone for part in one.rows_of_parts(table)} - held)


def looked_again(tables: Tables, look: Callable[[], Looked]) -> Looked:
    """Return what a reader finds, who looks again where the history was trimmed meanwhile."""
    for _ in range(MOST_LOOKS - 1):
        before = _state(tables)
        try:
            return look()
        except (EvidenceError, OSError):
            if _state(tables) == before:
                raise
    return look()


def _state(tables: Tables) -> tuple[Mapping[str, object] | None, tuple[str, ...]]:
    return tables.read_manifest(TRIMMED), tuple(tables.names(AUDITS))
