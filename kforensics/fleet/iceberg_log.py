"""The parts of a history, committed to Iceberg tables beside them, which need no catalog.

The metadata lie as Hadoop tables have them (`vN.metadata.json` and `version-hint.text`, Iceberg's `HadoopTableOperations`), in a folder whose name
readers of plain Parquet skip. The files have neither field ids nor the columns of the folders: a name mapping stands for the ids, and the identity
partitions for the columns ("Column Projection" in the specification of Iceberg).
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.io.pyarrow import (
    PyArrowFile,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table, TableProperties
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from kforensics.errors import EvidenceUnreadable
from kforensics.fleet.publishing import folder_values, is_part_of
from kforensics.fleet.schemas import AUDIT_TABLES
from kforensics.fleet.tables import Tables

ICEBERG = "_iceberg"
"""The folder of a history with a folder of each Iceberg table."""

_HINT = "version-hint.text"
_VERSION = re.compile(r"v(\d+)\.metadata\.json")
_FIRST_PARTITION_ID = 1000
_LONGEST = 200
_EPOCH = date(1970, 1, 1)

_PROPERTIES = {
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "20",
}
"""What an audit every night leaves behind is bounded."""


class IcebergLog:
    """Iceberg tables of a history, one of each of its tables.

    Args:
        history: where the tables are.
    """

    def __init__(self, history: Tables) -> None:
        self._history = history

    def check(self) -> None:
        """Refuse tables whose metadata can't be read."""
        for table in AUDIT_TABLES:
            self._table(table)

    def is_there(self, table: str) -> bool:
        """Return whether there are metadata of a table."""
        return _MetadataFolder(self._history, table).latest() is not None

    def commit(self, table: str, parts: Mapping[str, int]) -> None:
        """Add the parts of an audit to a table, in one snapshot of it; an empty part is left out."""
        found = self._table(table) or self._created(table)
        added = [self._data_file(found, table, part) for part, rows in sorted(parts.items()) if rows]
        if not added:
            return
        with found.transaction() as transaction, transaction.update_snapshot().merge_append() as snapshot:
            for one in added:
                snapshot.append_data_file(one)

    def forget(self, audit_id: str) -> None:
        """Take back what an audit that did not finish committed; its files are still there."""
        for table in AUDIT_TABLES:
            found = self._table(table)
            if found is None or found.current_snapshot() is None:
                continue
            own = [one.file for one in found.scan().plan_files() if is_part_of(one.file.file_path, audit_id)]
            if own:
                with found.transaction() as transaction, transaction.update_snapshot().overwrite() as snapshot:
                    for one in own:
                        snapshot.delete_data_file(one)

    def _table(self, table: str) -> Table | None:
        """Return a table as its latest metadata have it."""
        folder = _MetadataFolder(self._history, table)
        version = folder.latest()
        if version is None:
            return None
        files = _Files(self._history)
        place = folder.place(version)
        try:
            metadata = FromInputFile.table_metadata(files.new_input(place))
        except (ValidationError, ValueError) as error:
            said = " ".join(str(error).split())[:_LONGEST]
            words = f"no metadata of an Iceberg table: {said}; move {folder} away, and the next audit writes the table again for all audits"
            raise EvidenceUnreadable(place, words) from error
        if metadata.location != (expected := str(self._history.location / ICEBERG / table)):
            words = f"the Iceberg table was written at {metadata.location} and names its files by absolute paths: move the history back"
            raise EvidenceUnreadable(expected, words)
        return Table(("kforensics", table), metadata, place, files, folder)

    def _created(self, table: str) -> Table:
        folder = _MetadataFolder(self._history, table)
        fields = [one for one in AUDIT_TABLES[table] if one.name != "cluster_id"]
        columns = pa.schema([*fields, ("cluster_id", pa.string()), ("audit_date", pa.date32())])
        schema = assign_fresh_schema_ids(folder.converted(columns))
        partitions = (
            PartitionField(
                source_id=schema.find_field(name).field_id,
                field_id=_FIRST_PARTITION_ID + number,
                transform=IdentityTransform(),
                name=name,
            )
            for number, name in enumerate(("cluster_id", "audit_date"))
        )
        metadata = new_table_metadata(
            schema=schema,
            partition_spec=PartitionSpec(*partitions),
            sort_order=UNSORTED_SORT_ORDER,
            location=str(self._history.location / ICEBERG / table),
            properties={**_PROPERTIES, TableProperties.DEFAULT_NAME_MAPPING: schema.name_mapping.model_dump_json()},
        )
        place = folder.write(1, metadata)
        return Table(("kforensics", table), metadata, place, _Files(self._history), folder)

    def _data_file(self, found: Table, table: str, part: str) -> DataFile:
        filesystem, path = self._history.place(table, f"{part}.parquet")
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=pq.read_metadata(path, filesystem=filesystem),
            stats_columns=compute_statistics_plan(found.schema(), found.properties),
            parquet_column_mapping=parquet_path_to_id_mapping(found.schema()),
        )
        cluster, day = folder_values(part)
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=str(self._history.location / table / f"{part}.parquet"),
            file_format=FileFormat.PARQUET,
            partition=Record(cluster, (date.fromisoformat(day) - _EPOCH).days),
            file_size_in_bytes=int(filesystem.get_file_info(path).size),
            sort_order_id=None,
            spec_id=found.metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )


class _MetadataFolder(NoopCatalog):  # type: ignore[misc]
    """The versions of a table's metadata; only who holds the lock of the history writes them."""

    def __init__(self, history: Tables, table: str) -> None:
        super().__init__(table)
        self._history = history
        self._folder = f"{ICEBERG}/{table}/metadata"

    def __str__(self) -> str:
        return str(self._history.location / self._folder)

    def latest(self) -> int | None:
        """Return the latest version; the hint may be one behind, where a commit was interrupted."""
        found = [_VERSION.fullmatch(name) for name in self._history.names(self._folder)]
        return max((int(one[1]) for one in found if one), default=None)

    def place(self, version: int) -> str:
        """Return where a version is."""
        return str(self._history.location / self._folder / f"v{version}.metadata.json")

    def converted(self, columns: pa.Schema) -> Any:
        """Return the columns as Iceberg has them, without ids."""
        return self._convert_schema_if_needed(columns)

    def write(self, version: int, metadata: TableMetadata) -> str:
        """Write a version, and then the hint; returns where it is."""
        self._history.create([self._folder])
        self._history.write_bytes(self._folder, f"v{version}.metadata.json", metadata.model_dump_json().encode())
        self._history.write_bytes(self._folder, _HINT, str(version).encode())
        return self.place(version)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        """Write the next version of a table; `Table` removes those that are too old."""
        for one in requirements:
            one.validate(table.metadata)
        metadata = update_table_metadata(table.metadata, updates, metadata_location=table.metadata_location)
        place = self.write((self.latest() or 0) + 1, metadata)
        return CommitTableResponse(metadata=metadata, metadata_location=place)


class _Files(FileIO):  # type: ignore[misc]
    """The files of a history, on whatever storage it is."""

    def __init__(self, history: Tables) -> None:
        super().__init__()
        self._history = history

    def _name(self, location: str) -> str:
        return location.removeprefix(f"{self._history.location}/")

    def _file(self, location: str) -> PyArrowFile:
        filesystem, path = self._history.place(*self._name(location).split("/"))
        return PyArrowFile(location, path, filesystem)

    def new_input(self, location: str) -> InputFile:
        """Return a file to be read."""
        return self._file(location)

    def new_output(self, location: str) -> OutputFile:
        """Return a file to be written."""
        return self._file(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Remove a file of metadata."""
        self._history.remove_file("", self._name(location if isinstance(location, str) else location.location))
