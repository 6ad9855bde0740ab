"""The schemas of what is written, made of the tables of fields and of the types of the values.

`python -m kforensics.cli.manpage` writes them to `kforensics/schema`.
"""

import ast
import dataclasses
import inspect
import json
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import kforensics
from kforensics.damage import Absent
from kforensics.evidence.model import Input, Problem
from kforensics.findings.answers.model import STATES, Answer
from kforensics.findings.model import Finding
from kforensics.render.emit import SHAPES as WRITTEN
from kforensics.render.json.document import COMMON_LINES, REST, ROWS, SCHEMA_NUMBER, SEAL
from kforensics.render.json.shape import (
    DOCUMENTS,
    SHAPES,
    Document,
    Each,
    Field,
    Shape,
    plain_document,
    shape_of,
    steps_of,
)
from kforensics.units import EpochEntry

DRAFT = "https://json-schema.org/draft/2020-12/schema"
BYTES = {
    "type": "object",
    "required": ["base64"],
    "properties": {"base64": {"type": "string", "contentEncoding": "base64", "pattern": "^[A-Za-z0-9+/]*={0,2}$"}},
    "additionalProperties": False,
    "description": "Bytes, or a name that is not UTF-8.",
}
EPOCH = {
    "type": "array",
    "prefixItems": [{"type": "integer"}, {"type": "integer"}],
    "items": False,
    "minItems": 2,
    "description": "A leader epoch, and the offset where it begins.",
}
ENDS = ("answer", "findings", "problems", "exit_code")
REASONS = ["not-written", "unreadable", "unknown"]
NATURAL = frozenset(
    {"input", "position", "length", "line", "bytes", "records", "markers", "files", "segments", "replicas"}
)
"""Fields that no number below 0 is written in."""


def schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each document and of each line, by its name."""
    import_module("kforensics.render.json.entries")  # those of `dump`
    for shape, how in WRITTEN.items():
        if how.json:
            import_module(f"kforensics.render.json.{how.json.partition(':')[0]}")
        else:
            returned = get_type_hints(import_module(f"kforensics.commands.{shape}").run)["return"]
            plain_document(shape, *get_args(returned))
    import_module("kforensics.commands.seal_of_report")  # names the class of a seal
    made = {}
    for name, told in sorted(DOCUMENTS.items()):
        made[name] = _Maker().document(told)
        if name != "refusal":
            made[f"{name}-line"] = _Maker().line(told)
    return made


class _Maker:
    """Makes one schema; what it refers to is in its `$defs`."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}

    def document(self, told: Document) -> dict[str, Any]:
        kinds = [told.command, f"{told.command} --erasure"]
        states = list(dict.fromkeys(state.value for kind in kinds for state in STATES.get(kind, {})))
        own = self.fields(told.whole, told.whole.of)
        after = {} if told.after is None else self.fields(told.after, told.after.of)
        others = {key: one for other in told.others for key, one in self.fields(other, other.of).items()}
        answer = self.of(Answer)
        ends = {
            "answer": {"allOf": [answer], "properties": {"state": {"enum": states}}} if states else answer,
            "findings": {"type": "array", "items": self.of(Finding)},
            "problems": {"type": "array", "items": self.of(Problem)},
            "exit_code": {"enum": [0, 1, 3], "description": "What the process exits with."},
        }
        begins = {
            "schema": {"const": f"kforensics/{told.name}/{SCHEMA_NUMBER}"},
            "tool_version": {"type": "string"},
            "inputs": {"type": "array", "items": self.of(Input)},
        }
        if told.is_bare:
            own |= {"inputs": own.pop("inputs")}
            begins.pop("inputs")
            ends = {"exit_code": ends["exit_code"]}
        required = [
            *begins,
            *(key for key, one in told.whole.fields.items() if not one.is_optional),
            *after,
            *ends,
        ]
        properties = {**begins, **others, **own, **after, **ends}
        if not told.is_bare:
            properties["seal"] = self.of(SEAL)
        return {
            "$schema": DRAFT,
            "$id": f"{told.name}.json",
            "title": f"kforensics {told.name.replace('-', ' ', 1) if told.name.startswith('fleet') else told.name} --format json",
            **_object(properties, required),
            "$defs": self.used(properties),
        }

    def line(self, told: Document) -> dict[str, Any]:
        rules = []
        targets = {kind: self.of(_line_type(told, kind, of)) for kind, of in told.lines.items()} or self.rows(told)
        for kind, target in targets.items():
            made = self.definitions[target["$ref"].rpartition("/")[2]] if "$ref" in target else target
            properties = {"type": {"const": kind}, **made["properties"]}
            required = ["type", *(key for key in made["required"] if key != "type")]
            rules.append(
                {"if": {"properties": {"type": {"const": kind}}}, "then": {**made, **_object(properties, required)}}
            )
        return {
            "$schema": DRAFT,
            "$id": f"{told.name}-line.json",
            "title": f"A line of kforensics {told.name} --format jsonl",
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"enum": list(targets)}},
            "allOf": rules,
            "$defs": self.used(rules),
        }

    def rows(self, told: Document) -> dict[str, Any]:
        """Return the schemas of the lines that are made of a document by their types."""
        whole = self.document(told)
        made, rest = {}, {}
        for name, one in whole["properties"].items():
            if name not in ROWS:
                rest[name] = one
                continue
            listed = one if "items" in one else next((each for each in one.get("anyOf", ()) if "items" in each), None)
            made[ROWS[name]] = self.of(Answer) if name == "answer" else one if listed is None else listed["items"]
            if _may_be_null(one):
                rest[name] = {"type": "null", "description": "It was not asked for."}
        rest.pop("absent", None)
        required = [name for name in whole["required"] if name in rest and name not in ROWS]
        return {**made, REST: _object(rest, required)}

    def used(self, told: Any) -> dict[str, Any]:
        names: set[str] = set()
        texts = [json.dumps(told)]
        while texts:
            found = {*re.findall(r'"#/\$defs/([^"]+)"', texts.pop())} - names
            names |= found
            texts += [json.dumps(self.definitions[name]) for name in found]
        return {name: self.definitions[name] for name in sorted(names)}

    def fields(self, told: Shape, of: Any) -> dict[str, Any]:
        """Return the schemas of the fields of an object that is made of a value."""
        return {name: self.field(name, one, of) for name, one in told.fields.items()}

    def field(self, name: str, one: Field, of: Any) -> dict[str, Any]:
        if isinstance(one.type, str) and one.type.endswith(".json"):
            return {"type": "array", "items": {"$ref": one.type}, "description": one.words}
        hint, words = _hint(name, one, of)
        made = self.typed(one, hint)
        if made == {"type": "integer"} and name in NATURAL:
            made = {"type": "integer", "minimum": 0}
        words = one.words or words
        return {**made, "description": words} if words and "description" not in made else made

    def typed(self, one: Field, hint: Any) -> dict[str, Any]:
        match one.type:
            case Each(fields):
                told = shape_of(fields)
                items = self.shaped(told, told.of or _element(hint))
                return _or_null({"type": "array", "items": items}, _is_nullable(hint))
            case Shape():
                return _or_null(self.shaped(one.type, one.type.of), _is_nullable(hint))
            case Mapping():
                return _or_null(self.shaped(shape_of(one.type), _present(hint)), _is_nullable(hint))
        return self.of(hint)

    def shaped(self, told: Shape, of: Any) -> dict[str, Any]:
        """Return the schema of the objects of a shape; one with a name is a definition."""
        name = _name_of(told.of)
        if not name:
            return self.object_of(told, of)
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self.object_of(told, of)
        return {"$ref": f"#/$defs/{name}"}

    def object_of(self, told: Shape, of: Any) -> dict[str, Any]:
        properties = self.fields(told, of)
        required = [name for name, one in told.fields.items() if not one.is_optional]
        made = _object(properties, required)
        return {"description": told.words, **made} if told.words else made

    def of(self, hint: Any) -> dict[str, Any]:
        if isinstance(hint, Shape):
            return self.shaped(hint, hint.of)
        hint = _evaluated(hint)
        members = _members(hint)
        if len(members) > 1 or _is_nullable(hint):
            made = [self.of(one) for one in members if not _is_nothing(one)]
            plain = {"anyOf": made} if len(made) > 1 else made[0] if made else {}
            return _or_null(_flat(plain), _is_nullable(hint)) if made else {"type": "null"}
        return self.single(hint)

    def single(self, hint: Any) -> dict[str, Any]:
        origin, arguments = get_origin(hint), get_args(hint)
        if hint is Any or hint is object or isinstance(hint, TypeVar):
            return {}
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is not None:
            return self.generic(origin, arguments)
        simple = {int: "integer", bool: "boolean", float: "number"}.get(hint)
        if simple:
            return {"type": simple}
        if hint in SHAPES:
            return self.shaped(SHAPES[hint], hint)
        if issubclass(hint, Enum):
            return self.named(hint, lambda: {"enum": [one.value for one in hint]})
        if issubclass(hint, (str, PurePath)):
            return self.named_text()
        if issubclass(hint, bytes):
            self.definitions.setdefault("bytes", BYTES)
            return {"$ref": "#/$defs/bytes"}
        if hint is EpochEntry:
            self.definitions.setdefault("leader-epoch", EPOCH)
            return {"$ref": "#/$defs/leader-epoch"}
        if hint in (dict, list, tuple):
            return {"type": "object"} if hint is dict else {"type": "array"}
        return self.shaped(Shape(hint, _words_of(hint), dict.fromkeys(_attributes(hint), "")), hint)

    def named_text(self) -> dict[str, Any]:
        self.definitions.setdefault("bytes", BYTES)
        text = {
            "anyOf": [{"type": "string"}, {"$ref": "#/$defs/bytes"}],
            "description": "A string; as bytes where it is not UTF-8.",
        }
        self.definitions.setdefault("text", text)
        return {"$ref": "#/$defs/text"}

    def named(self, hint: type, make: Any) -> dict[str, Any]:
        name = _name_of(hint)
        if name not in self.definitions:
            self.definitions[name] = {**make(), "description": _words_of(hint)}
        return {"$ref": f"#/$defs/{name}"}

    def generic(self, origin: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if issubclass(origin, Mapping):
            key, value = arguments or (str, Any)
            item = self.of(value)
            key = _evaluated(key)
            if isinstance(key, type) and issubclass(key, Enum):
                names = [one.value for one in key]
                return _object(dict.fromkeys(names, item), names)
            return {"type": "object", "additionalProperties": item} if item else {"type": "object"}
        if issubclass(origin, tuple) and arguments and arguments[-1] is not Ellipsis:
            items = [self.of(one) for one in arguments]
            return {"type": "array", "prefixItems": items, "items": False}
        if issubclass(origin, (Sequence, AbstractSet, Iterable)):
            item = self.of(arguments[0]) if arguments else {}
            return {"type": "array", "items": item} if item else {"type": "array"}
        return self.of(origin)


def _object(properties: dict[str, Any], required: Iterable[str]) -> dict[str, Any]:
    """Return the schema of an object; where a field may be null, `absent` may say why."""
    absent = [name for name, one in properties.items() if _may_be_null(one)]
    if absent:
        reasons = {
            "type": "object",
            "propertyNames": {"enum": absent},
            "additionalProperties": {"enum": REASONS},
            "description": "Why fields are null that could have a value.",
        }
        properties = {**properties, "absent": reasons}
    return {
        "type": "object",
        "required": list(dict.fromkeys(required)),
        "properties": properties,
        "additionalProperties": False,
    }


def _may_be_null(made: Mapping[str, Any]) -> bool:
    return made.get("type") == "null" or any(_may_be_null(one) for one in made.get("anyOf", ()))


def _or_null(made: dict[str, Any], is_nullable: bool) -> dict[str, Any]:
    if not is_nullable:
        return made
    return {"anyOf": [*(made["anyOf"] if made.keys() == {"anyOf"} else [made]), {"type": "null"}]}


def _flat(made: dict[str, Any]) -> dict[str, Any]:
    """Return alternatives without those that are named twice."""
    if "anyOf" not in made:
        return made
    unique = {json.dumps(one, sort_keys=True): one for one in made["anyOf"]}
    return {"anyOf": [*unique.values()]} if len(unique) > 1 else next(iter(unique.values()))


def _is_nothing(hint: Any) -> bool:
    return hint in (None, type(None), Absent)


def _is_nullable(hint: Any) -> bool:
    return any(_is_nothing(one) or (get_origin(one) is Literal and None in get_args(one)) for one in _members(hint))


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, those of unions in it too."""
    hint = _evaluated(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(inner for one in get_args(hint) for inner in _members(one))
    return (hint,)


def _present(hint: Any) -> Any:
    """Return a type without null."""
    present = [one for one in _members(hint) if not _is_nothing(one)]
    return Union[tuple(present)] if present else hint  # noqa: UP007 - of a list


def _element(hint: Any) -> Any:
    present = _present(hint)
    arguments = [one for one in get_args(present) if one is not Ellipsis]
    if not arguments:
        raise TypeError(f"no type of the items of {present}")
    return arguments[0]


def _line_type(told: Document, kind: str, of: Any) -> Any:
    """Return the type of the lines of a kind, as the table of a document has them."""
    if kind in COMMON_LINES and not of:
        return COMMON_LINES[kind][0]
    if not isinstance(of, str):
        return of.type if isinstance(of, Field) else of
    field = told.whole.fields[of]
    return field.type.fields if isinstance(field.type, Each) else _element(_hint(of, field, told.whole.of).hint)


class _Found(NamedTuple):
    hint: Any
    words: str


def _hint(name: str, one: Field, of: Any) -> _Found:
    """Return the type of a field, and what its attribute says of itself."""
    is_type = one.type is not None and not isinstance(one.type, (Shape, Each, Mapping))
    if is_type:
        return _Found(_typed_by_path(one.type), "")
    if callable(one.get):
        hints = get_type_hints(one.get, _namespace())
        if "return" not in hints:
            if isinstance(one.type, (Shape, Each)):
                return _Found(list[Any] if isinstance(one.type, Each) else Absent, "")
            raise TypeError(f"{name}: the function says no type")
        return _Found(hints["return"], "")
    hint, words, may_be_null = of, "", False
    for step, is_method in steps_of(one.get or name):
        may_be_null = may_be_null or _is_nullable(hint)
        hint, words = _attribute(name, _present(hint), step, is_method=is_method)
    return _Found(hint | None if may_be_null and not _is_nullable(hint) else hint, words)


def _typed_by_path(given: Any) -> Any:
    """Return a type that is given as `Class.attribute`, or as it is."""
    if isinstance(given, str) and given.count(".") == 1:
        owner, _, attribute = given.partition(".")
        return _attribute(attribute, _namespace()[owner], attribute, is_method=False).hint | Absent
    return given


def _attribute(name: str, of: Any, step: str, *, is_method: bool) -> _Found:
    """Return the type of an attribute, of all members of a union that have it."""
    found = []
    words = ""
    for one in _members(of):
        base = get_origin(one) or one
        if step.isdigit():
            arguments = get_args(one)
            found.append(arguments[0] if arguments[-1] is Ellipsis else arguments[int(step)])
            continue
        if base is Any:
            raise TypeError(f"{name}: {step} of a value of any type")
        owned = _attributes(base).get(step)
        if owned is None:
            member = inspect.getattr_static(base, step)
            function = member.fget if isinstance(member, property) else member
            owned = get_type_hints(function, _namespace())["return"]
            words = "" if is_method else _sentence(inspect.getdoc(function) or "")
        else:
            words = _attribute_words(base).get(step, words)
        found.append(owned)
    return _Found(Union[tuple(found)], words)  # noqa: UP007 - of a list


@cache
def _namespace() -> dict[str, Any]:
    """Return the classes of the package by name: annotations name some that are loaded for them alone."""
    return {
        name: value
        for module in list(sys.modules.values())
        if (getattr(module, "__name__", "") or "").startswith(kforensics.__name__)
        for name, value in vars(module).items()
        if isinstance(value, type) or get_origin(value) is not None
    }


def _evaluated(hint: Any) -> Any:
    return eval(hint, {**vars(types), **_namespace()}) if isinstance(hint, str) else hint  # noqa: S307 - of the tables


@cache
def _attributes(of: Any) -> dict[str, Any]:
    """Return the fields of a dataclass or named tuple, each with its type."""
    if dataclasses.is_dataclass(of) or hasattr(of, "_fields"):
        hints = get_type_hints(of, None, _namespace())
        names = [one.name for one in dataclasses.fields(of)] if dataclasses.is_dataclass(of) else of._fields
        return {name: hints[name] for name in names}
    return {}


@cache
def _attribute_words(of: type) -> dict[str, str]:
    """Return what a class says below each of its fields."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(of)))
    except (OSError, TypeError):
        return {}
    (made,) = tree.body
    assert isinstance(made, ast.ClassDef)
    found = {}
    for one, following in zip(made.body, made.body[1:], strict=False):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(following, ast.Expr):
            found[one.target.id] = _sentence(ast.literal_eval(following.value))
    return found


def _words_of(of: type) -> str:
    return _sentence(
        (of.__doc__ or "") if not dataclasses.is_dataclass(of) or "(" not in (of.__doc__ or "(")[:60] else ""
    )


def _sentence(words: str) -> str:
    return " ".join(words.partition("\n\n")[0].split())


def _name_of(of: Any) -> str:
    """Return the name of a definition; empty where there is none."""
    name = of if isinstance(of, str) else getattr(of, "__name__", "")
    name = "".join(f"-{one.lower()}" if one.isupper() else one for one in name.lstrip("_")).lstrip("-")
    return "" if not name.replace("-", "").isalnum() or name in {"object", "mapping"} else name


PAGE = "docs/json.md"
FIELDS = "<!-- What follows is generated of the schemas: python -m kforensics.cli.manpage -->\n"
SHARED = ("input", "answer", "finding", "citation", "offset-range", "problem", "checked-seal")
"""Definitions of every document."""


def texts() -> Iterator[tuple[str, str]]:
    """Yield the path of each schema in the repository, and its text; then the page, with all fields behind its prose."""
    made = schemas()
    for name, one in made.items():
        yield f"kforensics/schema/{name}.json", _text(one)
    prose = (Path(kforensics.__file__).parent.parent / PAGE).read_text(encoding="utf-8").partition(FIELDS)[0]
    yield PAGE, prose + FIELDS + "\n" + "\n".join(_fields_page(made)) + "\n"


def _fields_page(made: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "## Every field"
    yield ""
    yield "Of every document:"
    yield ""
    shared = made["diff"]
    yield from _rows(
        "", {name: shared["properties"][name] for name in ("schema", "tool_version", "inputs", "seal", *ENDS)}
    )
    for name in SHARED:
        yield from _rows(name, shared["$defs"][name]["properties"])
    common = {"schema", "tool_version", "inputs", "seal", *ENDS}
    shown = {*SHARED, "bytes"}
    for name, one in made.items():
        if name.endswith("-line") and name != "dump-line":
            continue
        yield f"### {name}"
        yield ""
        yield from _rows("", {field: told for field, told in one.get("properties", {}).items() if field not in common})
        for rule in one.get("allOf", ()):
            kind = rule["if"]["properties"]["type"]["const"]
            yield from _rows(kind, rule["then"]["properties"])
        for inner, told in one["$defs"].items():
            if inner not in shown and "properties" in told:
                shown.add(inner)
                yield from _rows(inner, told["properties"])


def _rows(name: str, properties: Mapping[str, Any]) -> Iterator[str]:
    if name:
        yield f"*{name}*"
        yield ""
    yield "| field | form | meaning |"
    yield "|---|---|---|"
    for field, told in properties.items():
        if field not in {"absent", "type", "file"} or ("const" not in told and field == "type"):
            words = told.get("description", "").replace("|", "\\|")
            yield f"| `{field}` | {_form(told)} | {words} |"
    yield ""


def _form(told: Mapping[str, Any]) -> str:
    if "$ref" in told:
        name = told["$ref"].rpartition("/")[2].removesuffix(".json")
        return {"text": "text", "bytes": "bytes"}.get(name, f"*{name}*")
    if "const" in told:
        return f"`{told['const']}`"
    if "enum" in told:
        return ", ".join(f"`{one}`" if isinstance(one, str) else str(one) for one in told["enum"])
    if "anyOf" in told:
        return " or ".join(_form(one) for one in told["anyOf"])
    if "allOf" in told:
        return _form(told["allOf"][0])
    if told.get("type") == "array":
        if told.get("items"):
            return f"list of {_form(told['items'])}"
        return f"[{', '.join(map(_form, told.get('prefixItems', ())))}]"
    if "properties" in told:
        return ", ".join(f"`{one}`" for one in told["properties"] if one != "absent")
    if isinstance(told.get("additionalProperties"), Mapping):
        return f"{_form(told['additionalProperties'])} by name"
    names = {"integer": "number", "object": "by name", "null": "null", "boolean": "true or false"}
    name = str(told.get("type", "any"))
    return names.get(name, name)


def _text(made: Mapping[str, Any]) -> str:
    """Return a schema with a line for each field and each definition."""
    parts = []
    for key, value in made.items():
        if key in {"properties", "$defs"}:
            rows = ",\n".join(
                f"    {json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in value.items()
            )
            parts.append(f"  {json.dumps(key)}: {{\n{rows}\n  }}")
        elif key == "allOf":
            rows = ",\n".join(f"    {json.dumps(one, ensure_ascii=False)}" for one in value)
            parts.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
