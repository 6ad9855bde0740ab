"""A directory of Parquet tables, on local disk or on any storage that pyarrow writes: parts come whole or not at all."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pd
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from kforensics.errors import EvidenceUnreadable
from kforensics.fleet.file_systems import children
from kforensics.fleet.schemas import TABLES
from kforensics.fleet.storage import StoragePath

Row = Mapping[str, Any]

AUDIT_MANIFEST = "audit.json"
"""The manifest of a directory with the tables of one audit."""

WORK = "_work"
"""The folder of what the stages write before it is published; readers of Parquet skip names that begin with an underscore."""

HISTORY_PARTITIONING = pd.partitioning(
    pa.schema([("cluster_id", pa.string()), ("audit_date", pa.string())]), flavor="hive"
)
"""The folders of a history; tables of one audit have none."""


_ON_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


class Tables:
    """The tables below one path; small enough to be sent to workers.

    Args:
        location: the directory; nothing is created before something is written.
    """

    _format = "parquet"
    """Of the parts, as pyarrow names it; also the suffix of their names."""

    def __init__(self, location: Path) -> None:
        self.location = location

    def __str__(self) -> str:
        return str(self.location)

    def place(self, *names: str) -> tuple[FileSystem, str]:
        """Return the file system, and the path in it of something below the directory."""
        target = self.location.joinpath(*names)
        if isinstance(target, StoragePath):
            filesystem, path = target.place()
            return filesystem, path
        return LocalFileSystem(), str(target)

    def create(self, names: Iterable[str]) -> None:
        """Make the directories of some tables."""
        for name in names:
            filesystem, path = self.place(name)
            try:
                filesystem.create_dir(path, recursive=True)
            except OSError as error:
                raise EvidenceUnreadable(str(self.location), f"can't be written: {error}") from error

    def write(self, table: str, part: str, rows: Sequence[Row] | pa.Table, schema: pa.Schema | None = None) -> None:
        """Write one part of a table, replacing the part of that name."""
        schema = schema or TABLES[table]
        content = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=schema)
        with self.stream(table, f"{part}.{self._format}") as stream:
            self._encode(content, stream)

    @contextmanager
    def stream(self, *names: str) -> Iterator[Any]:
        """Open a file below the directory for writing; it is there when all is written, and not before."""
        filesystem, path = self.place(*names)
        target = path
        if isinstance(filesystem, LocalFileSystem):
            # Readers skip a name that begins with a dot; of one task two attempts may write at the same time.
            folder, _, last = path.rpartition("/")
            target = f"{folder}/.{last}.{uuid.uuid4().hex[:8]}.part"
        try:
            with filesystem.open_output_stream(target, compression=None) as stream:
                yield stream
            if target != path:
                filesystem.move(target, path)
        except BaseException as error:
            if target != path:
                with suppress(OSError):
                    filesystem.delete_file(target)
            if not isinstance(error, OSError) or error.filename is not None:
                raise
            raise OSError(error.errno, error.strerror or str(error), str(self.location.joinpath(*names))) from error

    def _part(self, table: str, part: str) -> tuple[FileSystem, str]:
        return self.place(table, f"{part}.{self._format}")

    @staticmethod
    def _encode(content: pa.Table, stream: Any) -> None:
        pq.write_table(content, stream, compression="zstd", write_statistics=True)

    @staticmethod
    def _decode(file: Any, columns: list[str] | None) -> pa.Table:
        return pq.ParquetFile(file).read(columns=columns, use_threads=False)

    def parts(self, table: str) -> list[str]:
        """Return the names of the parts of a table, sorted; none where the table is not there."""
        suffix = f".{self._format}"
        return [one.removesuffix(suffix) for one in self.names(table) if one.endswith(suffix)]

    def read_part(
        self, table: str, part: str, *, columns: Sequence[str] | None = None, filters: Any = None
    ) -> pa.Table:
        """Return one part."""
        filesystem, path = self._part(table, part)
        named = None if columns is None else list(columns)
        if filters is None:
            # Parts are small: a dataset and its threads take twice as long as the reading.
            with filesystem.open_input_file(path) as file:
                return self._decode(file, named)
        one = pd.dataset(path, filesystem=filesystem, format=self._format)
        return one.to_table(columns=named, filter=filters, use_threads=False)

    def remove(self, table: str, part: str) -> None:
        """Remove a part that this program wrote in an earlier attempt."""
        filesystem, path = self._part(table, part)
        if filesystem.get_file_info(path).type != FileType.NotFound:
            filesystem.delete_file(path)

    def write_if_any(self, table: str, part: str, rows: Sequence[Row]) -> None:
        """Write a part that is there only where it has rows: what an earlier attempt of the same task wrote goes."""
        if rows:
            self.write(table, part, rows)
        else:
            self.remove(table, part)

    def schema(self, table: str) -> pa.Schema:
        """Return the columns of a table."""
        return TABLES[table]

    def dataset(self, table: str, parts: Iterable[str] | None = None) -> pd.Dataset:
        """Return all parts of a table, or those that are named, read as they are asked for."""
        filesystem, base = self.place(table)
        paths = [self._part(table, part)[1] for part in (self.parts(table) if parts is None else parts)]
        schema = self.schema(table)
        if not paths:
            return pd.dataset(pa.Table.from_pylist([], schema=schema))
        return pd.dataset(
            paths,
            filesystem=filesystem,
            format=self._format,
            schema=schema,
            partitioning=HISTORY_PARTITIONING,
            partition_base_dir=base,
        )

    def rows(self, table: str, *, columns: Sequence[str] | None = None, where: Any = None) -> Iterator[Row]:
        """Yield the rows of a table, in batches behind the scenes."""
        named = None if columns is None else list(columns)
        for batch in self.dataset(table).to_batches(columns=named, filter=where):
            yield from batch.to_pylist()

    def column_table(self, table: str, columns: Sequence[str], where: Any = None) -> pa.Table:
        """Return some columns of a whole table."""
        return self.dataset(table).to_table(columns=list(columns), filter=where)

    def read_manifest(self, name: str) -> dict[str, Any] | None:
        """Return a manifest, none where there is none."""
        filesystem, path = self.place(name)
        if filesystem.get_file_info(path).type != FileType.File:
            return None
        try:
            found: dict[str, Any] = {**json.loads(self.read_bytes(name))}
        except (TypeError, ValueError) as error:
            raise EvidenceUnreadable(str(self.location / name), f"no manifest of this program: {error}") from error
        return found

    def write_manifest(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a manifest, whole or not at all."""
        self.write_bytes(name, (json.dumps(content, indent=2) + "\n").encode())

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a small file that is no table, whole or not at all."""
        with self.stream(*name.split("/")) as stream:
            stream.write(content)

    def remove_folder(self, folder: str) -> None:
        """Remove a folder that this program wrote, with all that is in it."""
        filesystem, path = self.place(folder)
        if filesystem.get_file_info(path).type != FileType.NotFound:
            filesystem.delete_dir(path)

    def remove_file(self, name: str) -> None:
        """Remove a file, by its path from here."""
        filesystem, path = self.place(name)
        filesystem.delete_file(path)

    def read_bytes(self, name: str) -> bytes:
        """Return a small file that is no table."""
        filesystem, path = self.place(name)
        with filesystem.open_input_stream(path) as stream:
            content: bytes = stream.read()
        return content

    def names(self, folder: str) -> list[str]:
        """Return the names of all files in a folder that are not hidden, sorted."""
        filesystem, path = self.place(folder)
        found = filesystem.get_file_info(FileSelector(path, allow_not_found=True))
        return sorted(one.base_name for one in found if one.is_file and not one.base_name.startswith("."))

    def all_names(self, folder: str) -> list[str]:
        """Return the files below a folder, as paths from it, sorted."""
        filesystem, path = self.place(folder)
        found = filesystem.get_file_info(FileSelector(path, allow_not_found=True, recursive=True))
        return sorted(one.path.removeprefix(f"{path}/") for one in found if one.is_file)

    def is_empty(self, ignored: frozenset[str] = frozenset()) -> bool:
        """Return whether nothing is there yet."""
        filesystem, path = self.place()
        info = filesystem.get_file_info(path)
        if info.type == FileType.NotFound:
            return True
        if info.type != FileType.Directory:
            return False
        return all(one.base_name in ignored for one in children(filesystem, path))


class WorkTables(Tables):
    """What the stages of one audit hand to one another, in the file format of Arrow: for a few rows, which are read once, Parquet takes ten times as long."""

    _format = "arrow"

    @staticmethod
    def _encode(content: pa.Table, stream: Any) -> None:
        with pa.ipc.new_file(stream, content.schema, options=_COMPRESSED) as writer:
            writer.write_table(content)

    @staticmethod
    def _decode(file: Any, columns: list[str] | None) -> pa.Table:
        table = pa.ipc.open_file(file, options=_ON_ONE_THREAD).read_all()
        return table if columns is None else table.select(columns)
