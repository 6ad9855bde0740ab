"""Archives of files, as they are sent to support."""

import gzip
import io
import tarfile
import zipfile


def zipped(*members: tuple[str, bytes]) -> bytes:
    """A zip of files by their names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def tarred(*members: tuple[str, bytes]) -> bytes:
    """A tar of files by their names, and of directories."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name.rstrip("/"))
            info.size, info.type = len(data), tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def tarred_and_zipped(*members: tuple[str, bytes]) -> bytes:
    """A tar that is compressed by gzip."""
    return gzip.compress(tarred(*members))
