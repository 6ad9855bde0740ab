"""What commands print, held against the schemas that are shipped."""

import io
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing import Registry, Resource

from kforensics.schema import load, names
from tests.compiled_schemas import compiled

FINISHED = frozenset({0, 1, 3})
"""Exit codes with which a command that printed anything has printed all of it."""

_known: set[tuple[str | int, int]] = set()
"""Documents, lines and elements of lists that were found valid, by schema; tests repeat many."""

_resolved: dict[int, tuple[Any, Any, Any]] = {}
"""The object that a reference stands in, which is kept so that no other gets its id, and what it leads to; by that id."""


class SchemaMismatch(AssertionError):  # noqa: N818 - named like what it is
    """A command printed what its schema does not allow."""


@cache
def registry() -> Registry[Any]:
    """All shipped schemas by their `$id`."""
    return Registry[Any]().with_resources((f"{name}.json", Resource.from_contents(load(name))) for name in names())


def _items(one: Validator, items: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    """The keyword `items`, which looks at equal objects once: the same files are told by many documents."""
    if not isinstance(instance, list):
        return
    for at, item in enumerate(instance[len(schema.get("prefixItems", ())) :], start=len(schema.get("prefixItems", ()))):
        key = (id(items), hash(repr(item)))
        if key in _known:
            continue
        errors = list(one.descend(item, items, path=at))  # type: ignore[attr-defined] # of every class that `extend` makes
        yield from errors
        if not errors:
            _known.add(key)


def _ref(one: Validator, ref: str, instance: Any, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    """The keyword `$ref`, which looks each reference up once."""
    if id(schema) not in _resolved:
        found = one._resolver.lookup(ref)  # type: ignore[attr-defined] # likewise
        _resolved[id(schema)] = (schema, found.contents, found.resolver)
    _, contents, resolver = _resolved[id(schema)]
    yield from one.descend(instance, contents, resolver=resolver)  # type: ignore[attr-defined]


_Validator = extend(Draft202012Validator, {"items": _items, "$ref": _ref})


@cache
def validator(name: str) -> Validator:
    """The validator of one schema, made once."""
    made: Validator = _Validator(load(name), registry=registry())
    return made


@cache
def accepts(name: str) -> Callable[[Any], bool]:
    """What says quickly that a document is as one schema says, and leaves it to the validator where it does not."""
    return compiled(name)


def reason(held: Mapping[str, Any], name: str) -> str | None:
    """Why a field is null, none where it simply does not apply."""
    assert held[name] is None, (name, held[name])
    why: str | None = held.get("absent", {}).get(name)
    return why


def validate(command: str, document: Any) -> None:
    """Refuse a document, or with `-line` behind the name a line, that is not as the schema says."""
    error = None if accepts(command)(document) else best_match(validator(command).iter_errors(document))
    if error is not None:
        shown = repr(error.instance)
        place = error.json_path
        raise SchemaMismatch(f"{command}: {place}: {error.message[:600]} (found {shown[:400]})")


def validate_text(command: str, text: str) -> None:
    """The same for text; what was found valid once is not looked at again."""
    key = (command, hash(text))
    if key not in _known:
        validate(command, json.loads(text))
        _known.add(key)


def validate_document(text: str) -> None:
    """A document by the schema that it names itself."""
    key = ("", hash(text))
    if key not in _known:
        document = json.loads(text)
        program, name, version = document["schema"].split("/")
        assert (program, version) == ("kforensics", "2")
        validate(name, document)
        _known.add(key)


def validate_lines(command: str, text: str) -> None:
    """Every line of `--format jsonl`; the last one names the document that the lines are made of, where they are made of one."""
    last = text.rpartition('{"type": "result", "schema": "kforensics/')[2].partition("/")
    command = last[0] if last[1] and text.count('"type": "result"') else command
    for line in text.splitlines():
        validate_text(f"{command}-line", line)


class _Watch:
    """Whether commands are watched in the test that runs; the watch is set once, before any test is imported."""

    on = False


def watch_commands() -> None:
    """From now on `kforensics.cli.app.run` refuses to return where what it printed is not as the schemas say."""
    from kforensics.cli import app

    app.run = _watched(app.run)  # type: ignore[assignment] # it takes and gives the same


def switch(*, on: bool) -> None:
    """Watch commands in the test that begins, or not."""
    _Watch.on = on


def _watched(run: Callable[[Sequence[str]], int]) -> Callable[[Sequence[str]], int]:
    @wraps(run)
    def run_and_validate(arguments: Sequence[str]) -> int:
        kind = _printed_kind(arguments) if _Watch.on else None
        if kind is None:
            return run(arguments)
        target = None if arguments[0] == "capture" else _option(arguments, "--out", "-o")  # its output is no document
        before = None if target else _length(sys.stdout)
        code = run(arguments)
        if code in FINISHED:
            text = _content(target) if target else _text_from(sys.stdout, before)
            if text:
                validate_document(text) if kind == "json" else validate_lines(
                    "-".join(arguments[: 2 if arguments[0] == "fleet" else 1]), text
                )
        return code

    return run_and_validate


def _printed_kind(arguments: Sequence[str]) -> str | None:
    """`json` or `jsonl` where a command prints that; a manifest is JSON where no form is asked for."""
    kind = _option(arguments, "--format")
    if arguments[:1] == ["seal"] and not any(word.startswith(("--check", "--help", "-h")) for word in arguments):
        return "json" if kind in {None, "text"} else kind if kind in {"json", "jsonl"} else None
    return kind if kind in {"json", "jsonl"} else None


def _option(arguments: Sequence[str], *names_: str) -> str | None:
    """The value of an option, the last one where it is given twice."""
    found = None
    for at, word in enumerate(arguments):
        if word in names_ and at + 1 < len(arguments):
            found = arguments[at + 1]
        elif any(name.startswith("--") and word.startswith(f"{name}=") for name in names_):
            found = word.partition("=")[2]
    return found


def _content(path: str) -> str:
    """What was written to a file; an output to anything else, a device for one, is not read back."""
    file = Path(path)
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _length(stream: Any) -> int | None:
    """Bytes that a stream holds so far, none where they can't be read back: a terminal, a pipe, a stream that fails."""
    memory = _memory(stream)
    if memory is not None:
        return len(memory)
    try:
        stream.flush()
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None
    return os.lseek(descriptor, 0, os.SEEK_CUR) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _text_from(stream: Any, start: int | None) -> str:
    """What a stream was given since."""
    end = _length(stream)
    if start is None or end is None:
        return ""
    memory = _memory(stream)
    return (os.pread(stream.fileno(), end - start, start) if memory is None else memory[start:]).decode()


def _memory(stream: Any) -> bytes | None:
    if isinstance(stream, io.StringIO):
        return stream.getvalue().encode()
    buffer = getattr(stream, "buffer", None)
    return buffer.getvalue() if isinstance(buffer, io.BytesIO) else None
