"""The file systems behind URIs: those of pyarrow by name, any other through fsspec where it is installed.

Credentials come from where each storage's own tools take them (environment, files, the machine's role) unless options say otherwise.
Waiting is bounded: what does not answer ends in an error.
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any

from kforensics.errors import UsageError, did_you_mean, nearest_names

HIDDEN = "***"

_SECRET_NAME = re.compile(
    r"(?i)secret|token|passw|(access|account|api)[._-]?key|^key$|sas|signature|^sig$|userinfo|credential"
)
_IN_URI = re.compile(r"(?<=://)[^/@\s:]*:[^/@\s]*(?=@)")
_IN_QUERY = re.compile(r"([?&;]([\w.-]+)=)([^&\s'\"]+)")

_SHORTEST = 4
"""Characters of a value below which hiding it everywhere would hide ordinary words."""

_known: set[str] = set()


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def hide(options: Mapping[str, str]) -> None:
    """Take note of the credentials among options; `redacted` leaves their values out from now on, in this process."""
    _known.update(value for name, value in options.items() if _is_secret(name) and len(value) >= _SHORTEST)


def redacted(text: str) -> str:
    """Return the text without credentials: those that are known, those of a URI's user, and those in a query."""
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    text = _IN_URI.sub(HIDDEN, text)
    return _IN_QUERY.sub(lambda found: found[1] + (HIDDEN if _is_secret(found[2]) else found[3]), text)


# ---------------------------------------------------------------- storage

SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfs",
    "hdfs": "hdfs",
    "viewfs": "hdfs",
    "mock": "mock",
}
"""The kind of storage behind the scheme of a URI; others are asked of fsspec."""

CONNECT_SECONDS, REQUEST_SECONDS, ATTEMPTS = 10.0, 60.0, 5
"""The most that a connection and an answer may take, and how often a request is sent, unless options say otherwise."""


def _boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


Reads = Callable[[str], Any]

_KNOWN: Mapping[str, Mapping[str, Reads]] = {
    "s3": {
        **dict.fromkeys(("access_key", "secret_key", "session_token", "region", "endpoint_override", "scheme"), str),
        **dict.fromkeys(("role_arn", "session_name", "external_id", "tls_ca_file_path"), str),
        **dict.fromkeys(("anonymous", "force_virtual_addressing", "allow_bucket_creation"), _boolean),
        **dict.fromkeys(("connect_timeout", "request_timeout"), float),
        "max_attempts": int,
    },
    "gs": {
        **dict.fromkeys(("access_token", "target_service_account", "scheme", "endpoint_override", "project_id"), str),
        "anonymous": _boolean,
        "retry_limit_seconds": float,
    },
    "abfs": dict.fromkeys(
        (
            *("account_name", "account_key", "sas_token", "tenant_id", "client_id", "client_secret"),
            *("blob_storage_authority", "dfs_storage_authority", "blob_storage_scheme", "dfs_storage_scheme"),
        ),
        str,
    ),
    "hdfs": {"user": str, "kerb_ticket": str, "replication": int},
    "mock": {},
}
"""The options of each kind of storage, and how their text is read; those of `hdfs` beyond these are Hadoop's own."""


def check_options(options: Mapping[str, str]) -> None:
    """Refuse options that no storage knows."""
    known = {name for names in _KNOWN.values() for name in names}
    for name in options:
        if ":" not in name and name not in known:
            nearest = did_you_mean(nearest_names(name, known))
            words = f"; {nearest}" if nearest else ""
            raise UsageError(
                f"--storage-option {name}: only SCHEME:{name} can be an option that no storage knows{words}"
            )


def options_of(scheme: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that are for a scheme: those that name it (`SCHEME:name`), and of the others those that it knows."""
    known = _KNOWN.get(SCHEMES.get(scheme, ""), {})
    own = {name: value for name, value in options.items() if name in known}
    return own | {name.partition(":")[2]: value for name, value in options.items() if name.startswith(f"{scheme}:")}


def children(filesystem: Any, path: str) -> list[Any]:
    """Return what is in a directory, as `FileInfo`.

    pyarrow lists all objects below a directory of Google Cloud Storage at any rate, and leaves out directories that are no objects themselves.
    """
    from pyarrow.fs import FileInfo, FileSelector, FileType

    is_flat = filesystem.type_name == "gcs"
    found = filesystem.get_file_info(FileSelector(path, recursive=is_flat))
    if not is_flat:
        return list(found)
    prefix = f"{path.rstrip('/')}/"
    out: dict[str, Any] = {}
    for one in found:
        name, below, _ = one.path.removeprefix(prefix).partition("/")
        out.setdefault(name, FileInfo(f"{prefix}{name}", FileType.Directory) if below else one)
    return list(out.values())


def make_file_system(scheme: str, authority: str, options: Mapping[str, str]) -> tuple[Any, str]:
    """Return a file system of pyarrow, and the path in it at which the URI's own path begins."""
    kind = SCHEMES.get(scheme)
    if kind is None:
        return _by_fsspec(scheme, authority, options)
    known = _KNOWN[kind]
    unknown = sorted(set(options) - set(known)) if kind != "hdfs" else []
    if unknown:
        raise OSError(None, f"no option {', '.join(unknown)} of {scheme}: expected some of {', '.join(sorted(known))}")
    try:
        values = {name: known.get(name, str)(value) for name, value in options.items()}
    except ValueError as error:
        raise OSError(None, f"an option of {scheme} is not understood: {error}") from None
    found: tuple[Any, str] = _MAKERS[kind](authority, values)
    return found


def _s3(bucket: str, values: dict[str, Any]) -> tuple[Any, str]:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem, resolve_s3_region

    attempts = values.pop("max_attempts", ATTEMPTS)
    values = {"connect_timeout": CONNECT_SECONDS, "request_timeout": REQUEST_SECONDS, **values}
    given = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
    if not {"region", "endpoint_override"} & set(values) and not any(map(os.environ.get, given)):
        values["region"] = resolve_s3_region(bucket)
    return S3FileSystem(retry_strategy=AwsStandardS3RetryStrategy(max_attempts=attempts), **values), bucket


def _gs(bucket: str, values: dict[str, Any]) -> tuple[Any, str]:
    from pyarrow.fs import GcsFileSystem

    user, at, name = bucket.rpartition("@")
    if at and user == "anonymous":
        values["anonymous"] = True
    if "access_token" in values:
        values["credential_token_expiration"] = datetime.now(UTC) + timedelta(hours=1)
    limit = timedelta(seconds=values.pop("retry_limit_seconds", REQUEST_SECONDS))
    return GcsFileSystem(retry_time_limit=limit, **values), name


def _abfs(authority: str, values: dict[str, Any]) -> tuple[Any, str]:
    from pyarrow.fs import AzureFileSystem

    whole = with_azure_environment(authority, values)
    if "account_name" not in whole:
        raise OSError(
            None, "no storage account: abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/…, or AZURE_STORAGE_ACCOUNT"
        )
    return AzureFileSystem(**whole), authority.partition("@")[0]


def with_azure_environment(authority: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with the account of a URI, and what the environment says of accounts and keys that no option names."""
    values = dict(options)
    _, at, host = authority.partition("@")
    if at:
        values.setdefault("account_name", host.partition(".")[0])
    for name, variables in (
        ("account_name", ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME")),
        ("account_key", ("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY")),
        ("sas_token", ("AZURE_STORAGE_SAS_TOKEN",)),
    ):
        found = next(filter(None, map(os.environ.get, variables)), None)
        # Of two ways to prove who one is the storage takes none.
        is_other = name != "account_name" and {"account_key", "sas_token", "client_secret"} & set(values)
        if found is not None and name not in values and not is_other:
            values[name] = found
    return values


def _hdfs(authority: str, values: dict[str, Any]) -> tuple[Any, str]:
    from pyarrow.fs import HadoopFileSystem

    user, at, place = authority.rpartition("@")
    host, _, port = place.partition(":")
    own = {name: values.pop(name) for name in _KNOWN["hdfs"] if name in values}
    if at:
        own.setdefault("user", user)
    try:
        return HadoopFileSystem(host or "default", int(port or 0), extra_conf=values or None, **own), ""
    except OSError as error:
        if find_spec("hdfs_native") is not None and "unable to load lib" in str(error).lower():
            return _hdfs_native(host, port, own, values), ""
        help_ = (
            "pyarrow loads Hadoop's own libraries: HADOOP_HOME, JAVA_HOME, and CLASSPATH=$(hadoop classpath --glob); "
            "without them: pip install hdfs-native fsspec"
        )
        raise OSError(None, f"{str(error).partition(chr(10))[0]}; {help_}") from None


def _hdfs_native(host: str, port: str, own: dict[str, Any], values: dict[str, Any]) -> Any:
    """HDFS without Hadoop's own libraries."""
    from hdfs_native.fsspec import HdfsFileSystem

    refused = sorted({"user", "kerb_ticket"} & set(own))
    if refused:
        words = (
            f"hdfs-native has no option {', '.join(refused)}; it takes HADOOP_USER_NAME, or the ticket of KRB5CCNAME"
        )
        raise OSError(None, words)
    if "replication" in own:
        values = {**values, "dfs.replication": str(own["replication"])}
    named = {} if host in {"", "default"} else {"host": host, **({"port": int(port)} if port else {})}
    return _of_fsspec(HdfsFileSystem(**named, **values))


def _mock(_authority: str, _values: dict[str, Any]) -> tuple[Any, str]:
    from pyarrow.fs import FileSystem

    found: tuple[Any, str] = FileSystem.from_uri("mock:///")
    return found


def _by_fsspec(scheme: str, authority: str, options: Mapping[str, str]) -> tuple[Any, str]:
    if find_spec("fsspec") is None:
        raise OSError(None, f"storage {scheme}:// is none of {', '.join(sorted(SCHEMES))}, and fsspec is not installed")
    import fsspec

    values = dict(options)
    user = values.pop("userinfo", "")
    try:
        storage, path = fsspec.core.url_to_fs(f"{scheme}://{user}{'@' if user else ''}{authority}", **values)
    except (ValueError, ImportError, TypeError) as error:
        raise OSError(None, f"fsspec can't open {scheme}://: {redacted(str(error))}") from None
    return _of_fsspec(storage), str(path)


_MILLISECONDS = ("modificationTime", "modification_time")
"""Names of the time of change in milliseconds, as Hadoop's interfaces have it."""
_TIMES = ("LastModified", "last_modified", "updated", "timeModified")
"""Names of the time of change as object storage has it."""


def _of_fsspec(storage: Any) -> Any:
    """Return a file system of fsspec for pyarrow, with the times of change, which pyarrow looks for under one name alone."""
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    class Handler(FSSpecHandler):  # type: ignore[misc]
        @staticmethod
        def _create_file_info(path: str, info: Mapping[str, Any]) -> Any:
            return FSSpecHandler._create_file_info(path, {**info, "mtime": _time_of_change(info)})  # noqa: SLF001

    return PyFileSystem(Handler(storage))


def _time_of_change(info: Mapping[str, Any]) -> datetime | None:
    """Return it, None where a storage says none that is understood."""
    for name in _MILLISECONDS:
        if isinstance(info.get(name), int):
            return _moment(info[name] / 1000)
    found = info.get("mtime") or next((info[name] for name in _TIMES if info.get(name)), None)
    if isinstance(found, str):
        try:
            return datetime.fromisoformat(found)
        except ValueError:
            return None
    return _moment(found) if isinstance(found, float | int) else found if isinstance(found, datetime) else None


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OSError, OverflowError, ValueError):  # before or behind the years of a date
        return None


_MAKERS: Mapping[str, Callable[[str, dict[str, Any]], tuple[Any, str]]] = {
    "s3": _s3,
    "gs": _gs,
    "abfs": _abfs,
    "hdfs": _hdfs,
    "mock": _mock,
}
