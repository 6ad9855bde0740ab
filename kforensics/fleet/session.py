"""A Spark session: the user's where there is one, else a quiet local one with the interpreter that runs this program.

What the user has set stays as it is, wherever Spark would take it from: options, `spark-defaults.conf`, `PYSPARK_SUBMIT_ARGS`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from kforensics.errors import EvidenceUnreadable, MissingExtra, UsageError
from kforensics.fleet.file_systems import hide, redacted
from kforensics.fleet.storage import require_pyarrow

LEAST_JAVA = 17
LOCAL_FAILURES = 4
"""Attempts of a task in local mode, where Spark's own default is one."""

APP_NAME = "kforensics fleet audit"

CONNECT = "sc://"

_LOCAL_MASTER = re.compile(r"local\[(?P<cores>[0-9]+|\*)\]")
_SETTING = re.compile(r"\s*(spark\.[^\s=:#]+)\s*[\s=:]\s*(.*)")
_JAVA_VERSION = re.compile(r'version "(?P<major>[0-9]+)(\.(?P<minor>[0-9]+))?')
_JAVA_PLACES = ("/usr/lib/jvm", "/Library/Java/JavaVirtualMachines", "/opt/java", "/opt")

_QUIET_LOG = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
logger.noise.name = org.apache.spark.sql.execution.python
logger.noise.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
"""


def run(command: str, request: Any, **more: Any) -> Any:
    """Return what a command for fleets answers, unless the packages that it needs are missing."""
    (require_spark if command == "fleet-audit" else require_pyarrow)()
    from kforensics.fleet import commands

    is_comparison = command == "fleet-report" and request.since is not None
    name = "comparison" if is_comparison else command.removeprefix("fleet-")
    return getattr(commands, f"run_{name}")(request, **more)


def require_spark() -> None:
    """Refuse, with the words that say what to install, where pyspark or pyarrow is missing."""
    if any(find_spec(name) is None for name in ("pyarrow", "pyspark")):
        raise MissingExtra("spark", "fleet audit")


def find_java() -> Path:
    """Return the home of a Java that Spark can use: `JAVA_HOME`, the one on the path, or one in a usual place."""
    seen = []
    for home in _java_homes():
        version = _java_version(home)
        if version is None:
            continue
        if version >= LEAST_JAVA:
            return home
        seen.append(f"Java {version} in {home}")
    found = f" (found {', '.join(seen)})" if seen else ""
    raise UsageError(
        f"fleet audit needs Java {LEAST_JAVA} or later{found}: install one, for example "
        "`apt install openjdk-17-jre-headless` or `brew install openjdk`, or set JAVA_HOME"
    )


def _java_homes() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    on_path = shutil.which("java")
    if on_path:
        yield Path(os.path.realpath(on_path)).parent.parent
    for place in map(Path, _JAVA_PLACES):
        if place.is_dir():
            yield from sorted(
                one / "Contents" / "Home" if (one / "Contents").is_dir() else one for one in place.iterdir()
            )


def _java_version(home: Path) -> int | None:
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _JAVA_VERSION.search(answer.stderr + answer.stdout)
    if found is None:
        return None
    major = int(found["major"])
    return int(found["minor"] or 0) if major == 1 else major


def configured() -> dict[str, str]:
    """Return the settings that Spark would take from where users keep them, by name; those of `--conf` before those of a file."""
    found: dict[str, str] = {}
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    files = [value for word, value in pairwise(words) if word == "--properties-file"]
    for path in files or [str(folder / "spark-defaults.conf") for folder in _conf_folders()[:1]]:
        try:
            lines = Path(path).read_text(errors="replace").splitlines()
        except OSError:
            continue
        found |= {one[1]: one[2].strip() for line in lines if (one := _SETTING.match(line)) is not None}
    for word, value in pairwise(words):
        if word in {"--conf", "-c"}:
            name, _, setting = value.partition("=")
            found[name] = setting
        elif word == "--master":
            found["spark.master"] = value
    return found


def _conf_folders() -> list[Path]:
    from pyspark.find_spark_home import _find_spark_home

    given = os.environ.get("SPARK_CONF_DIR")
    return [Path(given) if given else Path(_find_spark_home()) / "conf"]


@contextmanager
def open_session(master: str | None, settings: dict[str, str] | None = None) -> Iterator[Any]:
    """Open the active session, that of spark-submit, or one of our own, which ends with the work.

    Args:
        master: as Spark knows it, or a server of Spark Connect (`sc://…`); where none is given and no spark-submit started
            this program that of Spark's configuration, else `local[*]`.
    """
    require_spark()
    from pyspark.sql import SparkSession

    settings = dict(settings or {})
    hide(settings)
    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        yield active
        return
    # spark-submit, or a notebook, has a driver running already.
    if "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        yield SparkSession.builder.appName(APP_NAME).config(map=settings).getOrCreate()
        return
    if master is not None and master.startswith(CONNECT):
        session = _connected(master, settings)
        try:
            yield session
        finally:
            session.stop()
        return
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    known = configured() | settings
    hide(known)
    master = with_attempts(master or known.get("spark.master") or "local[*]")
    with tempfile.TemporaryDirectory(prefix="kforensics-spark-") as scratch:
        words = Path(scratch, "log4j2.properties")
        words.write_text(_QUIET_LOG)
        unset = {name: value for name, value in _defaults(master, words, scratch).items() if name not in known}
        builder = SparkSession.builder.master(master).config(map=unset | settings)
        if "spark.app.name" not in known:
            builder = builder.appName(APP_NAME)
        try:
            with _stderr_in(Path(scratch, "stderr")):
                session = builder.getOrCreate()
        except Exception as error:
            said = _last_words(Path(scratch, "stderr")) or str(error).partition("\n")[0]
            raise EvidenceUnreadable(redacted(master), f"Spark does not start: {redacted(said)}") from error
        try:
            yield session
        finally:
            session.stop()


def _connected(url: str, settings: dict[str, str]) -> Any:
    """Return a session of Spark Connect, which needs no Java here; its server has one."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(url).appName(APP_NAME).config(map=settings)
    try:
        return builder.getOrCreate()
    except ImportError as error:
        raise UsageError(f"{url} needs more packages: pip install 'pyspark[connect]' ({error})") from error
    except Exception as error:
        said = str(error).partition("\n")[0]
        raise EvidenceUnreadable(url, f"the server of Spark Connect does not answer: {said}") from error


def with_attempts(master: str) -> str:
    """Return the master, in local mode with as many attempts a task as a cluster has: Spark would give up at the first failure."""
    local = _LOCAL_MASTER.fullmatch("local[1]" if master == "local" else master)
    return f"local[{local['cores']},{LOCAL_FAILURES}]" if local else master


def _defaults(master: str, words: Path, scratch: str) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        # Tasks and groups are planned by bytes: there is nothing to coalesce or to split, and re-planning takes half of a small job.
        "spark.sql.adaptive.enabled": "false",
    }
    has_words = any((folder / "log4j2.properties").exists() for folder in _conf_folders())
    options = ["-XX:-UsePerfData", *([] if has_words else [f"-Dlog4j2.configurationFile={words.as_uri()}"])]
    if master.startswith("local"):
        # The work is done in Python: a machine that compiles little is ready in half of the time.
        options.append("-XX:TieredStopAtLevel=1")
        settings |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
        settings |= {
            "spark.local.dir": scratch,
            "spark.sql.warehouse.dir": str(Path(scratch, "warehouse")),
            "spark.python.daemon.module": "kforensics.fleet.daemon",
        }
        if "SPARK_LOCAL_IP" not in os.environ:
            settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    # Spark puts these before the user's own spark.driver.extraJavaOptions.
    return settings | {"spark.driver.defaultJavaOptions": " ".join(options)}


@contextmanager
def _stderr_in(path: Path) -> Iterator[None]:
    """Redirect the output of the virtual machine to a file while it starts; it keeps this stream for its life."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as target:
            os.dup2(target.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _last_words(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    errors = [line.strip() for line in lines if "Exception" in line or "Error" in line]
    return (errors or [line.strip() for line in lines if line.strip()] or [""])[0][:300]
