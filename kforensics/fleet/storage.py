"""Evidence on storage that pyarrow can read (HDFS, S3, GCS, …), as paths that the rest of the package takes for local ones.

A URI is kept as path components, `s3:` first, so that joining and splitting work as for any path.
"""

import functools
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from kforensics.errors import EvidenceUnreadable, MissingExtra
from kforensics.source.foreign import ForeignEntry, ForeignPath
from kforensics.source.mapped import EvidenceFile, unreadable

WITHOUT_AUTHORITY = frozenset({"file", "mock"})
DEFAULT_AUTHORITY = "default"
"""The name that means the name node of the Hadoop configuration, where a URI names none."""

GLOB_CHARACTERS = frozenset("*?[")


def parse_location(text: str) -> Path:
    """A local path, or a path on other storage where the text is a URI.

    Raises:
        EvidenceUnreadable: the URI can't be understood.
    """
    scheme, separator, _ = text.partition("://")
    if not separator or not scheme.isalnum():
        return Path(text)
    if scheme == "file":
        return Path(unquote(urlsplit(text).path))
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise EvidenceUnreadable(text, f"no valid URI: {error}") from error
    authority = parts.netloc or ("" if scheme in WITHOUT_AUTHORITY else DEFAULT_AUTHORITY)
    query = f"?{quote(parts.query, safe='=&')}" if parts.query else ""
    return StoragePath(f"{scheme}:", authority + query, *parts.path.split("/"))


class StoragePath(ForeignPath):
    """A path on a file system of pyarrow; small, comparable, and sent to workers as it is."""

    def __str__(self) -> str:
        scheme, authority, rest = self._pieces()
        return f"{scheme}://{authority.partition('?')[0]}{rest}"

    def _pieces(self) -> tuple[str, str, str]:
        scheme = self.parts[0].rstrip(":") if self.parts else ""
        if scheme in WITHOUT_AUTHORITY:
            return scheme, "", "/" + "/".join(self.parts[1:])
        authority = self.parts[1] if len(self.parts) > 1 else ""
        rest = "/".join(self.parts[2:])
        return scheme, authority, f"/{rest}" if rest else ""

    def place(self) -> tuple[Any, str]:
        """The pyarrow file system and the path in it."""
        scheme, authority, rest = self._pieces()
        name, _, query = authority.partition("?")
        filesystem, base = _filesystem(f"{scheme}://{name}/" + (f"?{unquote(query)}" if query else ""))
        return filesystem, f"{base.rstrip('/')}{rest}" if base.strip("/") else rest or "/"

    def mode(self) -> int:
        """A directory's or a regular file's; a `FileNotFoundError` where nothing is there."""
        from pyarrow.fs import FileType

        filesystem, path = self.place()
        info = filesystem.get_file_info(path)
        if info.type == FileType.NotFound:
            raise FileNotFoundError(2, "there is no such file or directory", str(self))
        return stat.S_IFDIR if info.type == FileType.Directory else stat.S_IFREG

    def entries(self) -> Iterator[ForeignEntry]:
        """Yield the entries of the directory."""
        from pyarrow.fs import FileSelector, FileType

        filesystem, path = self.place()
        for info in filesystem.get_file_info(FileSelector(path)):
            mode = stat.S_IFDIR if info.type == FileType.Directory else stat.S_IFREG
            yield ForeignEntry(info.base_name, mode, info.size or 0, info.mtime_ns or 0)

    def open_as_evidence(self) -> "StorageFile":
        """The file, open for reading."""
        try:
            return StorageFile(self)
        except (OSError, ValueError) as error:
            raise unreadable(self, error) from error


class StorageFile(EvidenceFile):
    """A file on such storage, read at positions."""

    def __init__(self, path: StoragePath) -> None:
        filesystem, name = path.place()
        info = filesystem.get_file_info(name)
        self.path = path
        self.size = info.size or 0
        self.mtime_ns = info.mtime_ns or 0
        self._file = filesystem.open_input_file(name)

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer from the position on; returns the bytes read, fewer than fit only at the end of the file."""
        try:
            self._file.seek(min(position, self.size))
            filled = 0
            while filled < len(buffer):
                count = self._file.readinto(buffer[filled:])
                if not count:
                    break
                filled += count
        except (OSError, ValueError) as error:
            raise unreadable(self.path, error, f" at byte {position}") from error
        return filled

    def changed(self) -> bool:
        """Return whether size or time of change are not what they were when it was opened."""
        assert isinstance(self.path, StoragePath)
        filesystem, name = self.path.place()
        try:
            info = filesystem.get_file_info(name)
        except OSError:
            return True
        return (info.size or 0, info.mtime_ns or 0) != (self.size, self.mtime_ns)

    def close(self) -> None:
        """Give the handle back."""
        self._file.close()


@functools.lru_cache(maxsize=64)
def _filesystem(uri: str) -> tuple[Any, str]:
    from pyarrow.fs import FileSystem

    try:
        return FileSystem.from_uri(uri)  # type: ignore[no-any-return]
    except (OSError, ValueError) as error:
        raise OSError(None, f"this storage can't be reached: {error}") from error


def expand_glob(location: Path) -> list[Path]:
    """Return the paths that match a pattern of `*`, `?` and `[…]`, sorted, or the path itself if it is no pattern."""
    if not any(GLOB_CHARACTERS & set(part) for part in location.parts[2 if isinstance(location, StoragePath) else 0 :]):
        return [location]
    found = [type(location)(location.parts[0])] if location.parts else [location]
    rest = location.parts[1:]
    if isinstance(location, StoragePath):
        found, rest = [type(location)(*location.parts[:2])], location.parts[2:]
    elif not location.is_absolute():
        found, rest = [Path()], location.parts
    for part in rest:
        if GLOB_CHARACTERS & set(part):
            found = [folder / name for folder in found for name in _names(folder) if _matches(name, part)]
        else:
            found = [one for folder in found if (one := folder / part).exists()]
    return sorted(found)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) and (pattern.startswith(".") or not name.startswith("."))


def _names(folder: Path) -> list[str]:
    try:
        if isinstance(folder, StoragePath):
            return [entry.name for entry in folder.entries()]
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def require_pyarrow() -> None:
    """Refuse, with the words that say what to install, where pyarrow is missing."""
    if find_spec("pyarrow") is None:
        raise MissingExtra("spark", "reading and writing Parquet tables")
