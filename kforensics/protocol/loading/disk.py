"""The partition directory while the rules play on it: names and sizes, what was written, and by which rule each file changed."""

from collections.abc import Mapping
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.replica.loader_values import Batches, Content, Need
from kforensics.protocol.loading.values import (
    FileAction,
    FileChange,
    LoadedDirectory,
    NeedError,
    NotModelledError,
    thrown,
)


@dataclass(slots=True)
class DiskFile:
    """One file: which file of the evidence it was, its size, and its content where the rules wrote it."""

    origin: str
    """Its name in the evidence; empty for a file that the rules made."""
    length: int
    rule: str = ""
    is_rewritten: bool = False


class Disk:
    """A working copy of a `LoadedDirectory`."""

    def __init__(self, directory: LoadedDirectory) -> None:
        self._given = directory
        self._folders = directory.folders
        self.files = {name: DiskFile(name, length) for name, length in directory.files.items()}
        self._written: dict[tuple[str, Content], object] = {}
        self._removed: dict[str, str] = {}

    def names(self) -> list[str]:
        """Return the names, sorted as the loader sorts them."""
        return sorted(self.files)

    def exists(self, name: str) -> bool:
        """Whether a file or a folder has this name."""
        return name in self.files or name in self._folders

    def refuse_folder(self, name: str, exception: str = "FileSystemException") -> None:
        """Throw what opening a folder as a file throws.

        Args:
            exception: `FileSystemException` where a channel is opened, `FileNotFoundException` for a stream or an index.

        Raises:
            LoadingError: a folder has this name.
        """
        if name in self._folders:
            raise thrown(exception, f"{name}: Is a directory", is_io=True)

    def length(self, name: str) -> int:
        """Return the length of a file in bytes.

        Raises:
            KeyError: there is no such file.
        """
        return self.files[name].length

    def is_unreadable(self, name: str) -> bool:
        """Whether a file of the evidence can't be opened."""
        return self.files[name].origin in self._given.unreadable

    def content(self, name: str, content: Content, position: int = 0) -> object:
        """Return what the rules wrote into a file, or what was read of it from the evidence.

        Args:
            name: the name that the file has now.
            content: how its bytes are to be read.
            position: of the first batch, where batches are asked for.

        Raises:
            LoadingError: IOException, where the file can't be read.
            NeedError: it was not given yet.
        """
        if (name, content) in self._written:
            written = self._written[name, content]
            return written.behind(position) if isinstance(written, Batches) else written
        if self.is_unreadable(name):
            raise thrown("IOException", f"Could not read file {name}", is_io=True)
        need = Need(self.files[name].origin, content, position)
        if need not in self._given.contents:
            raise NeedError(need)
        return self._given.contents[need]

    def create(self, name: str, length: int, rule: str) -> None:
        """Make a file that was not there.

        Args:
            length: in bytes.

        Raises:
            LoadingError: a folder has this name.
        """
        self.refuse_folder(name)
        self.files[name] = DiskFile("", length, rule, is_rewritten=True)
        self._forget(name)

    def write(self, name: str, length: int, rule: str, content: Content | None = None, value: object = None) -> None:
        """Replace the content of a file, or make it.

        Args:
            length: its new length in bytes.
            rule: why it is written; a file that another rule changed before keeps that one.
            content: how `value` is to be read again; None where nothing reads it.

        Raises:
            LoadingError: a folder has this name.
        """
        file = self.files.get(name)
        if file is None:
            self.create(name, length, rule)
        else:
            file.length, file.is_rewritten = length, True
            file.rule = file.rule or rule
        if content is not None:
            self._written[name, content] = value

    def resize(self, name: str, length: int, rule: str) -> None:
        """Truncate or extend a file, whose bytes up to the shorter length stay.

        Args:
            name: of a file that is there.
            length: the new length in bytes; nothing changes where it is the present one.
            rule: why; a file that another rule changed before keeps that one.
        """
        file = self.files[name]
        if file.length != length:
            file.length = length
            file.rule = file.rule or rule

    def delete(self, name: str, rule: str) -> None:
        """Remove a file.

        Args:
            name: of a file that is there.
        """
        file = self.files.pop(name)
        self._forget(name)
        if file.origin:
            self._removed[file.origin] = rule

    def rename(self, name: str, to_name: str, rule: str) -> None:
        """Move a file, over one that is there.

        Args:
            name: of a file that is there.
            to_name: its new name; a file of this name is removed.

        Raises:
            NotModelledError: a folder has the new name, which is replaced where it is empty.
        """
        if to_name in self._folders:
            raise NotModelledError(f"{to_name} is a directory")
        if to_name in self.files:
            self.delete(to_name, rule)
        file = self.files.pop(name)
        file.rule = rule
        self.files[to_name] = file
        for key in [key for key in self._written if key[0] == name]:
            self._written[to_name, key[1]] = self._written.pop(key)

    def _forget(self, name: str) -> None:
        for key in [key for key in self._written if key[0] == name]:
            del self._written[key]

    def tree(self) -> dict[str, int]:
        """Name and size of each file."""
        return {name: self.files[name].length for name in self.names()}

    def written(self) -> Mapping[Need, object]:
        """Return the content of files that the rules wrote."""
        return {Need(name, content): value for (name, content), value in self._written.items()}

    def origins(self) -> dict[str, str]:
        """Return files that kept their bytes, or the first of them, by their names now, with the names they had."""
        return {name: file.origin for name, file in self.files.items() if file.origin and not file.is_rewritten}

    def changes(self) -> tuple[FileChange, ...]:
        """Return the fate of each file that is not as it was."""
        out = [
            FileChange(origin, FileAction.DELETE, Absent.NOT_APPLICABLE, Absent.NOT_APPLICABLE, rule)
            for origin, rule in self._removed.items()
            if origin not in self.files
        ]
        for name, file in self.files.items():
            before = self._given.files.get(file.origin, 0)
            if not file.origin:
                action = FileAction.REBUILD if name in self._removed else FileAction.CREATE
                out.append(FileChange(name, action, Absent.NOT_APPLICABLE, file.length, file.rule))
            elif name != file.origin:
                out.append(FileChange(file.origin, FileAction.RENAME, name, file.length, file.rule))
            elif file.is_rewritten:
                out.append(FileChange(name, FileAction.REBUILD, Absent.NOT_APPLICABLE, file.length, file.rule))
            elif file.length != before:
                action = FileAction.TRUNCATE if file.length < before else FileAction.EXTEND
                out.append(FileChange(name, action, Absent.NOT_APPLICABLE, file.length, file.rule))
        return tuple(sorted(out, key=lambda change: (change.name, change.action)))
