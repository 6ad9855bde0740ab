"""The JSON Schemas (draft 2020-12) of what the commands print; `docs/json.md` says what the fields mean.

`diff.json` is the schema of `kforensics diff --format json`, `diff-line.json` that of a line of `--format jsonl`. Each is whole in itself, but for the lines
of `dump`, to which its document refers. They are made of what is written: `python -m kforensics.cli.manpage`.
"""

import json
from importlib.resources import files
from typing import Any

_SUFFIX = ".json"


def names() -> tuple[str, ...]:
    """Return the names of all schemas, in order, as `load` takes them."""
    found = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


def load(command: str) -> dict[str, Any]:
    """Return the schema of a command's document or, with `-line` behind the name, of one line of its `--format jsonl`."""
    if command not in names():
        raise LookupError(f"no schema of {command!r}: {', '.join(names())}")
    schema: dict[str, Any] = json.loads(files(__name__).joinpath(command + _SUFFIX).read_text(encoding="utf-8"))
    return schema
