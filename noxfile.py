"""What is run while working, by the packages of .venv: `nox -s check`, `nox -s test -- tests/protocol`, `nox -l` for all.

.ci/run stays the judge of a change; nothing here checks what it doesn't.
"""

from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["check", "quick"]

BIN = ".venv/bin"
LOCK = "uv pip compile pyproject.toml --universal --fork-strategy fewest --python-version 3.11 --all-extras --group dev --group docs --group tools"
LOCK_FORM = "--generate-hashes --no-annotate --no-emit-index-url --quiet --output-file requirements.lock"


@nox.session
def check(session: nox.Session) -> None:
    """Format, lint, types, import contracts, generated pages, pins: everything that is quick and not a test."""
    session.run(f"{BIN}/ruff", "format", "--check", ".")
    session.run(f"{BIN}/ruff", "check", ".")
    session.run(f"{BIN}/mypy")
    session.run(f"{BIN}/lint-imports")
    session.run(f"{BIN}/python", "-m", "kforensics.cli.manpage", "--check")
    session.run(f"{BIN}/python", ".ci/pins.py")


@nox.session
def quick(session: nox.Session) -> None:
    """Run the quick tests, or what is named behind `--`; stop at the first failure."""
    session.run(f"{BIN}/pytest", "-x", "-n", "auto", *(session.posargs or ["-m", "quick"]))


@nox.session
def test(session: nox.Session) -> None:
    """Run the whole default suite, or what is named behind `--`."""
    session.run(f"{BIN}/pytest", *(session.posargs or ["-n", "auto"]))


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the tests that need no Spark under coverage, in all their cases, and hold it against its floors."""
    session.run(f"{BIN}/python", ".ci/coverage.py", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into site/; a link that leads nowhere fails."""
    session.run(f"{BIN}/mkdocs", "build", "--strict", *session.posargs, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def bench(session: nox.Session) -> None:
    """Run one of tests/benchmarks: `nox -s bench -- verify DIRECTORY`."""
    session.run(f"{BIN}/python", "-m", f"tests.benchmarks.{session.posargs[0]}", *session.posargs[1:])


@nox.session
def release(session: nox.Session) -> None:
    """Run all checks, then build what is published into dist/ (docs/releasing.md)."""
    session.run(".ci/run", external=True)
    session.run(f"{BIN}/python", "-m", "build", "--outdir", "dist", ".")


@nox.session
def lock(session: nox.Session) -> None:
    """Renew requirements.lock and constraints.txt; `-- --upgrade` takes the newest versions, else what is pinned stays."""
    pinned = [] if "--upgrade" in session.posargs else ["--constraint", "constraints.txt"]
    command = [*LOCK.split(), *LOCK_FORM.split(), "--custom-compile-command", "nox -s lock", *pinned, *session.posargs]
    session.run(f"{BIN}/{command[0]}", *command[1:])
    session.run(f"{BIN}/python", ".ci/pins.py", "--write")


@nox.session
def pyz(session: nox.Session) -> None:
    """Build pyz/kforensics.pyz, one file for brokers that have a Python and nothing else, and run it in an empty environment; `-- python3.12 …` by other interpreters, too."""
    session.run(f"{BIN}/python", "-m", "build", "--wheel", "--outdir", "pyz", ".")
    wheel = max(Path("pyz").glob("*.whl"), key=lambda one: one.stat().st_mtime)
    session.run(f"{BIN}/python", ".ci/pyz.py", str(wheel), "pyz/kforensics.pyz")
    session.run(f"{BIN}/python", ".ci/pyz.py", "--check", "pyz/kforensics.pyz", f"{BIN}/python", *session.posargs)
