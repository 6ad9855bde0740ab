"""The transaction logs of Delta Lake for the parts of a history, one in each table."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import Schema
from deltalake.transaction import AddAction, create_table_with_add_actions

from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.fleet.file_systems import (
    ATTEMPTS,
    CONNECT_SECONDS,
    REQUEST_SECONDS,
    SCHEMES,
    redacted,
    with_azure_environment,
)
from kforensics.fleet.publishing import folder_values, is_part_of
from kforensics.fleet.schemas import AUDIT_TABLES
from kforensics.fleet.storage import StoragePath
from kforensics.fleet.tables import Tables

PARTITIONED_BY = ("cluster_id", "audit_date")

LOG_FOLDER = "_delta_log"

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile(r"^\s*\d+: <unknown>$|^\s*↳")
_LONGEST = 300


class DeltaLog:
    """The transaction logs of a history.

    Args:
        history: where the tables are.
    """

    def __init__(self, history: Tables) -> None:
        self._history = history
        self._options = object_store_options(history.location)

    def check(self) -> None:
        """Refuse logs that can't be read."""
        for table in AUDIT_TABLES:
            self._table(table)

    def is_there(self, table: str) -> bool:
        """Return whether a table has a log."""
        return bool(self._history.names(f"{table}/{LOG_FOLDER}"))

    def commit(self, table: str, parts: Mapping[str, int]) -> None:
        """Add the parts of an audit to a table, in one version of it.

        Args:
            parts: rows by the name of the part; without any nothing is committed.
        """
        if not parts:
            return
        actions = [self._action(table, part, rows) for part, rows in sorted(parts.items())]
        fields = [one for one in AUDIT_TABLES[table] if one.name not in PARTITIONED_BY]
        schema = Schema.from_arrow(pa.schema([*fields, ("cluster_id", pa.string()), ("audit_date", pa.date32())]))
        found = self._table(table)
        with self._errors_at(table):
            if found is not None:
                found.create_write_transaction(actions, mode="append", schema=schema, partition_by=list(PARTITIONED_BY))
                return
            create_table_with_add_actions(
                self._uri(table),
                schema,
                actions,
                mode="append",
                partition_by=list(PARTITIONED_BY),
                storage_options=self._options,
            )

    def forget(self, audit_id: str, tables: Iterable[str] = tuple(AUDIT_TABLES)) -> None:
        """Take back what an audit committed; its files are still there."""
        for table in tables:
            found = self._table(table)
            with self._errors_at(table):
                if found is not None and any(is_part_of(uri, audit_id) for uri in found.file_uris()):
                    quoted = audit_id.replace("'", "''")
                    found.delete(f"audit_id = '{quoted}'")

    def _table(self, table: str) -> DeltaTable | None:
        if not self.is_there(table):
            return None
        with self._errors_at(table):
            return DeltaTable(self._uri(table), storage_options=self._options)

    def _uri(self, table: str) -> str:
        return str(self._history.location / table)

    @contextmanager
    def _errors_at(self, table: str) -> Iterator[None]:
        place = f"{self._uri(table)}/{LOG_FOLDER}"
        try:
            yield
        except CommitFailedError as error:
            raise EvidenceUnreadable(place, f"nothing could be committed: {_first_line(error)}") from None
        except DeltaError as error:
            words = f"no log of a Delta table: {_first_line(error)}; move it away, and the next audit writes it again for all audits"
            raise EvidenceUnreadable(place, words) from None
        except OSError as error:
            raise EvidenceUnreadable(place, _first_line(error)) from None

    def _action(self, table: str, part: str, rows: int) -> Any:
        filesystem, path = self._history.place(table, f"{part}.parquet")
        info = filesystem.get_file_info(path)
        cluster, day = folder_values(part)
        return AddAction(
            path=f"{part}.parquet",
            size=int(info.size),
            partition_values={"cluster_id": cluster, "audit_date": day},
            modification_time=int(datetime.now(UTC).timestamp() * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": rows}),
        )


def _first_line(error: Exception) -> str:
    """Return what an error of Delta's library says, without colours, the frames of its stack and credentials."""
    lines = (_FRAME.sub("", line).strip() for line in _COLOUR.sub("", str(error)).splitlines())
    return redacted(": ".join(line for line in lines if line)[:_LONGEST])


# ---------------------------------------------------------------- storage


def object_store_options(location: Path) -> dict[str, str]:
    """Return the options of a storage under the names that Delta's library has for them (`AmazonS3ConfigKey`, `AzureConfigKey`, `GoogleConfigKey` of the object_store crate)."""
    if not isinstance(location, StoragePath):
        return {}
    given = location.options
    kind = SCHEMES.get(location.scheme, location.scheme)
    names, others = _NAMES.get(kind, {}), _OF_REQUESTS | _OF_ENDPOINTS.get(kind, frozenset())
    refused = sorted(set(given) - set(names) - others)
    if refused:
        raise UsageError(
            f"--storage-option {', '.join(refused)}: Delta's library has no such option for {location.scheme}://; expected some of "
            f"{', '.join(sorted({*names, *others})) or 'none'}, or --table-format parquet"
        )
    if kind == "abfs":
        given = with_azure_environment(location.authority, given)
    own = {names[name]: value for name, value in given.items() if name in names}
    if kind == "s3" and "region" not in given:
        own["aws_region"] = location.place()[0].region
    endpoint = _endpoint(kind, given)
    if endpoint is not None:
        own[f"{'aws' if kind == 's3' else 'azure'}_endpoint"] = endpoint
        own["allow_http"] = str(endpoint.startswith("http://")).lower()
    return own | {
        "max_retries": given.get("max_attempts", str(ATTEMPTS)),
        "connect_timeout": f"{round(1000 * float(given.get('connect_timeout', CONNECT_SECONDS)))}ms",
        "timeout": f"{round(1000 * float(given.get('request_timeout', REQUEST_SECONDS)))}ms",
    }


def _endpoint(kind: str, given: Mapping[str, str]) -> str | None:
    """Return where requests are sent to, None for the place that the storage's provider has."""
    if kind == "s3":
        variables = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        place = given.get("endpoint_override") or next(filter(None, map(os.environ.get, variables)), None)
        return place and (place if "://" in place else f"{given.get('scheme', 'https')}://{place}")
    place = given.get("blob_storage_authority") if kind == "abfs" else None
    if place is None:
        return None
    # As `AzureOptions` of Arrow has it: what begins with a dot follows the name of the account, all else is before it.
    account = given.get("account_name", "")
    whole = f"{account}{place}" if place.startswith(".") else f"{place}/{account}"
    return f"{given.get('blob_storage_scheme', 'https')}://{whole}"


_NAMES: Mapping[str, Mapping[str, str]] = {
    "s3": {
        "access_key": "aws_access_key_id",
        "secret_key": "aws_secret_access_key",
        "session_token": "aws_session_token",
        "region": "aws_region",
        "anonymous": "aws_skip_signature",
        "force_virtual_addressing": "aws_virtual_hosted_style_request",
    },
    "abfs": {
        "account_name": "azure_storage_account_name",
        "account_key": "azure_storage_account_key",
        "sas_token": "azure_storage_sas_token",
        "tenant_id": "azure_storage_tenant_id",
        "client_id": "azure_storage_client_id",
        "client_secret": "azure_storage_client_secret",
    },
    "gs": {"anonymous": "google_skip_signature"},
}
_OF_REQUESTS = frozenset({"connect_timeout", "request_timeout", "max_attempts"})
_OF_ENDPOINTS: Mapping[str, frozenset[str]] = {
    "s3": frozenset({"endpoint_override", "scheme", "allow_bucket_creation"}),
    "abfs": frozenset({"blob_storage_authority", "blob_storage_scheme", "dfs_storage_authority", "dfs_storage_scheme"}),
    "gs": frozenset({"retry_limit_seconds", "project_id"}),
}
"""Options that are not needed, or that several of that library's are made of."""
