"""Kafka's own jars, fetched once through Maven into a cache outside of the repository."""

import fcntl
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

CACHE_VARIABLE = "KFORENSICS_ORACLE_CACHE"
FETCH_SECONDS = 600

_LOG4J_1 = ("org.slf4j:slf4j-log4j12:1.7.25", "log4j:log4j:1.2.17")
# The 3.4 client that old brokers bring can't resolve addresses on Java 14 and later.
_ZOOKEEPER = ("org.apache.zookeeper:zookeeper:3.5.9",)
# Brokers up to 0.11 encode with a class that Java 11 dropped.
_JAXB = ("javax.xml.bind:jaxb-api:2.3.0",)


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Kafka with what it needs to run alone."""

    version: str
    scala: str
    extra: tuple[str, ...]
    """Artifacts beside `kafka_<scala>`, as group:artifact:version."""
    is_kraft: bool = False
    has_log4j_2: bool = False
    has_epochs: bool = True
    """Batches of magic 2, with the leader epoch, and the requests that came with them."""


RELEASES = (
    Release("0.10.2.2", "2.12", (*_ZOOKEEPER, *_LOG4J_1, *_JAXB), has_epochs=False),
    Release("0.11.0.3", "2.12", (*_ZOOKEEPER, *_LOG4J_1, *_JAXB)),
    Release("1.1.1", "2.12", (*_ZOOKEEPER, *_LOG4J_1)),
    Release("2.5.1", "2.12", (*_ZOOKEEPER, *_LOG4J_1)),
    Release("2.8.1", "2.13", (*_ZOOKEEPER, *_LOG4J_1)),
    Release("3.9.1", "2.13", ("org.slf4j:slf4j-reload4j:1.7.36",), is_kraft=True),
    Release(
        "4.1.0",
        "2.13",
        ("org.apache.logging.log4j:log4j-slf4j-impl:2.24.3", "org.apache.kafka:kafka-tools:4.1.0"),
        is_kraft=True,
        has_log4j_2=True,
    ),
)


def cache_directory() -> Path:
    """Where jars are kept: `KFORENSICS_ORACLE_CACHE`, else below the user's cache directory."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kforensics" / "oracle"


def class_path(release: Release) -> str:
    """The class path of a release, fetched where it is not in the cache."""
    home = cache_directory() / release.version
    libraries = home / "libs"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        project = home / "pom.xml"
        wanted = _project(release)
        if not libraries.is_dir() or not project.is_file() or project.read_bytes() != wanted:
            project.write_bytes(wanted)
            _fetch(release, home, project)
    return f"{libraries}/*"


def _fetch(release: Release, home: Path, project: Path) -> None:
    partial = home / "libs.partial"
    for old in (partial, home / "libs"):
        shutil.rmtree(old, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", str(project), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    assert done.returncode == 0, f"Maven could not fetch Kafka {release.version}:\n{done.stdout}{done.stderr}"
    partial.rename(home / "libs")


def _project(release: Release) -> bytes:
    project = ET.Element("project", xmlns="http://maven.apache.org/POM/4.0.0")
    for tag, text in (("modelVersion", "4.0.0"), ("groupId", "oracle"), ("artifactId", "oracle"), ("version", "1")):
        ET.SubElement(project, tag).text = text
    ET.SubElement(project, "packaging").text = "pom"
    dependencies = ET.SubElement(project, "dependencies")
    for coordinates in (f"org.apache.kafka:kafka_{release.scala}:{release.version}", *release.extra):
        dependency = ET.SubElement(dependencies, "dependency")
        for tag, text in zip(("groupId", "artifactId", "version"), coordinates.split(":"), strict=True):
            ET.SubElement(dependency, tag).text = text
    return ET.tostring(project)
