"""Schemas as functions: what these accept is valid. They take a fraction of the time of `jsonschema`, which has the last word on what they refuse.

They know the keywords that the shipped schemas have, and refuse to be made of others. `tests/test_schema.py` holds them against `jsonschema`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from kforensics.schema import load

Keys = frozenset[str]
"""Keys of an object that a schema said something of, for `unevaluatedProperties`."""

Check = Callable[[Any], Keys | None]
"""Gives the keys that were evaluated, none where the value is not as the schema says."""

_NONE: Keys = frozenset()
_WITHOUT_EFFECT = frozenset({"$schema", "$id", "$defs", "title", "description", "contentEncoding", "format"})
_TYPES: dict[str, frozenset[type]] = {
    "object": frozenset({dict}),
    "array": frozenset({list}),
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
}


def compiled(name: str) -> Callable[[Any], bool]:
    """What says whether a document is as the schema of that name says; false of some that are, too, such as 1.0 for an integer."""
    check = _at(name, "")
    return lambda document: check(document) is not None


@cache
def _document(name: str) -> dict[str, Any]:
    return load(name)


@cache
def _at(name: str, pointer: str) -> Check:
    schema: Any = _document(name)
    for step in pointer.split("/")[1:]:
        schema = schema[step]
    return _made(schema, name)


def _made(schema: Any, name: str) -> Check:
    if isinstance(schema, bool):
        return (lambda _: _NONE) if schema else (lambda _: None)
    rest = schema.keys() - _WITHOUT_EFFECT
    checks: list[Check] = []
    for keywords, make in _MAKERS:
        if rest & keywords:
            checks.append(make(schema, name))
            rest -= keywords
    last = _unevaluated(schema, name) if "unevaluatedProperties" in rest else None
    if rest - {"unevaluatedProperties"}:
        raise NotImplementedError(f"{name}.json: {sorted(rest)}")
    if len(checks) == 1 and last is None:
        return checks[0]

    def check(value: Any) -> Keys | None:
        keys = _NONE
        for one in checks:
            found = one(value)
            if found is None:
                return None
            if found:
                keys = keys | found if keys else found
        return keys if last is None else last(value, keys)

    return check


def _ref(schema: Mapping[str, Any], name: str) -> Check:
    file, _, pointer = schema["$ref"].partition("#")
    target = file.removesuffix(".json") or name
    found: list[Check] = []

    def check(value: Any) -> Keys | None:
        if not found:  # not before it is needed: a schema may refer to itself
            found.append(_at(target, pointer))
        return found[0](value)

    return check


def _value(schema: Mapping[str, Any], _name: str) -> Check:
    """The type, and what is said of a value that has no parts."""
    told = schema.get("type")
    names = [told] if isinstance(told, str) else told
    types = None if names is None else frozenset[type]().union(*(_TYPES[one] for one in names))
    allowed = [*schema.get("enum", [schema["const"]] if "const" in schema else [])]
    assert not {"enum", "const"} <= schema.keys()
    words = frozenset((type(one), one) for one in allowed) if allowed else None
    least, most = schema.get("minimum"), schema.get("maximum")
    pattern = re.compile(schema["pattern"]) if "pattern" in schema else None

    def check(value: Any) -> Keys | None:
        kind = type(value)
        if types is not None and kind not in types:
            return None
        if words is not None and (kind in {dict, list} or (kind, value) not in words):
            return None
        if kind is int or kind is float:
            if (least is not None and value < least) or (most is not None and value > most):
                return None
        elif pattern is not None and kind is str and not pattern.search(value):
            return None
        return _NONE

    return check


def _object(schema: Mapping[str, Any], name: str) -> Check:
    required = tuple(schema.get("required", ()))
    properties = {key: _made(one, name) for key, one in schema.get("properties", {}).items()}
    others = _made(schema["additionalProperties"], name) if "additionalProperties" in schema else None
    names = _made(schema["propertyNames"], name) if "propertyNames" in schema else None
    together = tuple((key, tuple(needed)) for key, needed in schema.get("dependentRequired", {}).items())
    told = frozenset(properties)

    def check(value: Any) -> Keys | None:
        if type(value) is not dict:
            return _NONE
        for key in required:
            if key not in value:
                return None
        for key, item in value.items():
            one = properties.get(key, others)
            if one is not None and one(item) is None:
                return None
            if names is not None and names(key) is None:
                return None
        for key, needed in together:
            if key in value and not all(other in value for other in needed):
                return None
        return told if others is None else told | value.keys()

    return check


def _array(schema: Mapping[str, Any], name: str) -> Check:
    first = tuple(_made(one, name) for one in schema.get("prefixItems", ()))
    rest = _made(schema["items"], name) if "items" in schema else None
    least, most = schema.get("minItems", 0), schema.get("maxItems")

    def check(value: Any) -> Keys | None:
        if type(value) is not list:
            return _NONE
        if len(value) < least or (most is not None and len(value) > most):
            return None
        for one, item in zip(first, value, strict=False):
            if one(item) is None:
                return None
        if rest is not None:
            for item in value[len(first) :] if first else value:
                if rest(item) is None:
                    return None
        return _NONE

    return check


def _all_of(schema: Mapping[str, Any], name: str) -> Check:
    parts = tuple(_made(one, name) for one in schema["allOf"])

    def check(value: Any) -> Keys | None:
        found = [one(value) for one in parts]
        return None if None in found else _NONE.union(*(keys for keys in found if keys))

    return check


def _any_of(schema: Mapping[str, Any], name: str) -> Check:
    parts = tuple(_made(one, name) for one in schema["anyOf"])

    def check(value: Any) -> Keys | None:
        if type(value) is not dict:
            return _NONE if any(one(value) is not None for one in parts) else None
        found = [keys for one in parts if (keys := one(value)) is not None]
        return _NONE.union(*found) if found else None

    return check


def _one_of(schema: Mapping[str, Any], name: str) -> Check:
    parts = tuple(_made(one, name) for one in schema["oneOf"])

    def check(value: Any) -> Keys | None:
        found = [keys for one in parts if (keys := one(value)) is not None]
        return found[0] if len(found) == 1 else None

    return check


def _condition(schema: Mapping[str, Any], name: str) -> Check:
    condition, true, false = (_made(schema.get(key, True), name) for key in ("if", "then", "else"))

    def check(value: Any) -> Keys | None:
        keys = condition(value)
        if keys is None:
            return false(value)
        found = true(value)
        return None if found is None else keys | found

    return check


def _unevaluated(schema: Mapping[str, Any], name: str) -> Callable[[Any, Keys], Keys | None]:
    others = _made(schema["unevaluatedProperties"], name)

    def check(value: Any, keys: Keys) -> Keys | None:
        if type(value) is not dict or value.keys() <= keys:
            return keys
        rest = value.keys() - keys
        return None if any(others(value[key]) is None for key in rest) else keys | rest

    return check


_MAKERS: Sequence[tuple[frozenset[str], Callable[[Mapping[str, Any], str], Check]]] = (
    (frozenset({"type", "enum", "const", "minimum", "maximum", "pattern"}), _value),
    (frozenset({"required", "properties", "additionalProperties", "propertyNames", "dependentRequired"}), _object),
    (frozenset({"items", "prefixItems", "minItems", "maxItems"}), _array),
    (frozenset({"$ref"}), _ref),
    (frozenset({"allOf"}), _all_of),
    (frozenset({"anyOf"}), _any_of),
    (frozenset({"oneOf"}), _one_of),
    (frozenset({"if", "then", "else"}), _condition),
)
