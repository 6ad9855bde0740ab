"""`explain` as tests call it: with the inputs that a recording's own checks name, and its document."""

import json
from pathlib import Path

from kforensics.cli.app import run


def explain(capsys, *arguments):
    """The document and the exit code of `kforensics explain`."""
    code = run(["explain", *map(str, arguments), "--format", "json"])
    return json.loads(capsys.readouterr().out), code


def arguments_of(root: Path) -> list[str]:
    """The inputs of a recording: its snapshots in order, and its broker logs."""
    check = json.loads((root / "checks.json").read_text())["explain"]
    before = [word for name in check.get("before", []) for word in ("--before", str(root / "snapshots" / name))]
    return [*before, str(root / "snapshots" / check["snapshot"]), str(root / "logs")]
