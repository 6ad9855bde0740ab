"""What a system call was asked to open: evidence is opened by names below descriptors of directories."""

from pathlib import Path


def opened_path(path: int | str | Path, dir_fd: int | None = None) -> str:
    """The whole path of a name below a descriptor, or of what a descriptor itself is open for; Linux only."""
    if isinstance(path, int):
        return str(Path(f"/proc/self/fd/{path}").readlink())
    return str(path) if dir_fd is None else str(Path(f"/proc/self/fd/{dir_fd}").readlink() / path)
