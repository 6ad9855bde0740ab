"""Evidence on storage that pyarrow or fsspec can read (HDFS, S3, GCS, Azure, …), as paths that the rest of the package takes for local ones.

A URI is kept as path components, `s3:` first, so that joining and splitting work as for any path.
"""

import functools
import hashlib
import json
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from kforensics.errors import EvidenceUnreadable, MissingExtra
from kforensics.fleet.file_systems import SCHEMES, children, hide, make_file_system, options_of, redacted
from kforensics.source.mapped import EvidenceFile, unreadable
from kforensics.source.store import Entry, ForeignPath

WITHOUT_AUTHORITY = frozenset({"file", "mock"})
DEFAULT_AUTHORITY = "default"
"""The name that means the name node of the Hadoop configuration, where a URI names none."""

GLOB_CHARACTERS = frozenset("*?[")


Options = Mapping[str, str]
"""Options of a file system, such as its region, by name; `SCHEME:NAME` is one of that scheme alone."""


def parse_location(text: str, options: Options = MappingProxyType({})) -> Path:
    """Return a local path, made absolute, or a path on other storage where the text is a URI."""
    scheme, separator, _ = text.partition("://")
    if not separator or not scheme.isalnum():
        return Path(text).absolute()
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise EvidenceUnreadable(redacted(text), f"no valid URI: {redacted(str(error))}") from None
    if scheme == "file":
        return Path(unquote(parts.path)).absolute()
    authority, found = _without_password(scheme, parts.netloc)
    given = {**options_of(scheme, options), **found, **dict(parse_qsl(parts.query))}
    hide(given)
    authority = authority or ("" if scheme in WITHOUT_AUTHORITY else DEFAULT_AUTHORITY)
    return StoragePath(f"{scheme}:", f"{authority}?{_kept(given)}" if given else authority, *parts.path.split("/"))


def _without_password(scheme: str, netloc: str) -> tuple[str, dict[str, str]]:
    """Return the authority of a URI without its password, and the password as options."""
    user, at, host = netloc.rpartition("@")
    name, colon, password = user.partition(":")
    if not at or not colon:
        return netloc, {}
    kind = SCHEMES.get(scheme)
    if kind == "s3":
        return host, {"access_key": unquote(name), "secret_key": unquote(password)}
    if kind == "abfs":
        return f"{name}@{host}", {"account_key": unquote(password)}
    return host, {"userinfo": user}


_options: dict[str, dict[str, str]] = {}
"""The options of paths by their digest, which alone is in a path: nothing that shows a path shows a credential."""


def _kept(options: Options) -> str:
    name = hashlib.sha256(json.dumps(sorted(options.items())).encode()).hexdigest()[:16]
    _options[name] = dict(options)
    return name


@functools.lru_cache(maxsize=64)
def _filesystem(scheme: str, authority: str) -> tuple[Any, str]:
    name, _, options = authority.partition("?")
    return make_file_system(scheme, name, _options.get(options, {}))


def _restored(parts: tuple[str, ...], options: Options) -> "StoragePath":
    """Return a path that arrives on a worker, and keep the options that come with it."""
    if options:
        hide(options)
        _kept(options)
    return StoragePath(*parts)


class StoragePath(ForeignPath):
    """A path on a file system of pyarrow; small, comparable, and sent to workers as it is."""

    def __str__(self) -> str:
        scheme, authority, rest = self._pieces()
        return f"{scheme}://{authority.partition('?')[0]}{rest}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (tuple(self.parts), dict(self.options))

    def _pieces(self) -> tuple[str, str, str]:
        scheme = self.parts[0].rstrip(":") if self.parts else ""
        if scheme in WITHOUT_AUTHORITY:
            return scheme, "", "/" + "/".join(self.parts[1:])
        authority = self.parts[1] if len(self.parts) > 1 else ""
        rest = "/".join(self.parts[2:])
        return scheme, authority, f"/{rest}" if rest else ""

    @property
    def options(self) -> Options:
        """The options of the storage, credentials among them."""
        return MappingProxyType(_options.get(self._pieces()[1].partition("?")[2], {}))

    def place(self) -> tuple[Any, str]:
        """Return the pyarrow file system and the path in it."""
        scheme, authority, rest = self._pieces()
        filesystem, base = _filesystem(scheme, authority)
        return filesystem, f"{base.rstrip('/')}{rest}" if base.strip("/") else rest or "/"

    def mode(self) -> int:
        """Return the type of a directory or of a regular file, as `st_mode` has it; the storage knows no permissions."""
        from pyarrow.fs import FileType

        with _as_os_error():
            filesystem, path = self.place()
            info = filesystem.get_file_info(path)
        if info.type == FileType.NotFound:
            raise FileNotFoundError(2, "there is no such file or directory", str(self))
        return stat.S_IFDIR if info.type == FileType.Directory else stat.S_IFREG

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the directory."""
        from pyarrow.fs import FileType

        with _as_os_error():
            filesystem, path = self.place()
            found = children(filesystem, path)
        for info in found:
            mode = stat.S_IFDIR if info.type == FileType.Directory else stat.S_IFREG
            yield Entry(info.base_name, mode, info.size or 0, info.mtime_ns or 0)

    def open_as_evidence(self) -> "StorageFile":
        """Return the file, open for reading."""
        try:
            with _as_os_error():
                return StorageFile(self)
        except OSError as error:
            raise unreadable(self, error) from error


class StorageFile(EvidenceFile):
    """A file on such storage, read at positions."""

    def __init__(self, path: StoragePath) -> None:
        filesystem, name = path.place()
        info = filesystem.get_file_info(name)
        self.path = self._named = path
        self.size = info.size or 0
        self.mtime_ns = info.mtime_ns or 0
        self._file = filesystem.open_input_file(name)

    def _fill(self, position: int, buffer: memoryview) -> int:
        try:
            with _as_os_error():
                self._file.seek(min(position, self.size))
                filled = 0
                while filled < len(buffer):
                    count = self._file.readinto(buffer[filled:])
                    if not count:
                        break
                    filled += count
        except OSError as error:
            raise unreadable(self.path, error, f" at byte {position}") from error
        return filled

    def changed(self) -> bool:
        """Return whether size or time of change are not what they were when it was opened."""
        assert isinstance(self.path, StoragePath)
        try:
            with _as_os_error():
                filesystem, name = self.path.place()
                info = filesystem.get_file_info(name)
        except OSError:
            return True
        return (info.size or 0, info.mtime_ns or 0) != (self.size, self.mtime_ns)

    def close(self) -> None:
        """Give the handle back."""
        self._file.close()


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Whatever a storage raises, as an `OSError` without credentials: each has errors of its own, and some show requests."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        words = redacted(error.strerror or str(error))
        raise type(error)(error.errno, words) if error.errno else OSError(None, words) from None
    except Exception as error:  # noqa: BLE001 - see above
        raise OSError(None, redacted(f"{type(error).__name__}: {error}")) from None


def expand_glob(location: Path) -> list[Path]:
    """Return the paths that match a pattern of `*`, `?` and `[…]`, sorted, or the path itself if it is none; the scheme and the host of a URI are no pattern."""
    if not any(GLOB_CHARACTERS & set(part) for part in location.parts[2 if isinstance(location, StoragePath) else 0 :]):
        return [location]
    if not isinstance(location, StoragePath):
        return sorted(map(Path, glob(str(location))))  # noqa: PTH207 - it leaves out hidden ones
    found: list[Path] = [StoragePath(*location.parts[:2])]
    for part in location.parts[2:]:
        if GLOB_CHARACTERS & set(part):
            found = [folder / name for folder in found for name in _names(folder) if _matches(name, part)]
        else:
            found = [one for folder in found if (one := folder / part).exists()]
    return sorted(found)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) and (pattern.startswith(".") or not name.startswith("."))


def _names(folder: Path) -> list[str]:
    assert isinstance(folder, StoragePath)
    try:
        return [entry.name for entry in folder.entries()]
    except OSError:
        return []


def require_pyarrow() -> None:
    """Refuse, with the words that say what to install, where pyarrow is missing."""
    if find_spec("pyarrow") is None:
        raise MissingExtra("spark", "reading and writing Parquet tables")
