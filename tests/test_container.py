"""The Dockerfile, as far as a machine without a daemon can judge it."""

import json
import re
import tomllib

import yaml

from tests.conftest import ROOT

LINES = [
    line.split(None, 1)
    for line in re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text()).splitlines()
    if line and not line.startswith("#")
]
LAST = LINES[max(at for at, line in enumerate(LINES) if line[0] == "FROM") :]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def said(instruction, lines=LINES):
    return [words for name, words in lines if name == instruction]


def test_every_base_has_a_version():
    images = {re.split(" as ", words, flags=re.IGNORECASE)[0] for words in said("FROM")}

    assert all(re.fullmatch(r"[a-z]+:\d+\.\d+[a-z-]*", image) for image in images)
    assert len(images) == 1


def test_it_runs_as_nobody():
    (user,) = said("USER", LAST)

    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert LAST.index(["USER", user]) > max(at for at, line in enumerate(LAST) if line[0] in {"COPY", "RUN", "FROM"})


def test_the_entry_point_is_the_program_that_is_installed():
    (entry,) = said("ENTRYPOINT", LAST)

    (program,) = json.loads(entry)
    directory, _, name = program.rpartition("/bin/")
    assert name in PROJECT["scripts"]
    assert f"python -m venv {directory} " in said("RUN")[0]
    assert said("COPY", LAST) == [f"--from=build {directory} {directory}"]
    assert json.loads(said("CMD", LAST)[0]) == ["--help"]


def test_what_is_installed_is_pinned_and_offered():
    (steps,) = said("RUN")

    assert "-c constraints.txt" in steps
    (extras,) = re.findall(r"'\.\[([a-z,]+)\]'", steps)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    assert "curl" not in steps
    assert "apt" not in steps


def test_the_build_gets_what_the_wheel_is_made_of_and_nothing_else():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()

    assert ignored[0] == "*"
    taken = [line[1:] for line in ignored if line.startswith("!")]
    assert all((ROOT / name).exists() for name in taken)
    assert {"kforensics", "man", "pyproject.toml", "constraints.txt", PROJECT["readme"]} <= set(taken)
    assert not {"fixtures", "tests", ".git"} & set(taken)


def test_a_tag_builds_all_that_is_offered():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]

    assert {"build", "publish", "image", "pyz"} == jobs.keys()
    assert all("timeout-minutes" in job for job in jobs.values())
    assert all(job["needs"] == "build" for name, job in jobs.items() if name != "build")
    page = (ROOT / "docs/start/install.md").read_text()
    (pod,) = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
