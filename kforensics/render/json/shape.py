"""Tables of fields: an object of JSON has the fields of a value by their own names, unless a table says otherwise.

The schemas are made of the same tables: the type of a field is that of the attribute that its path leads to.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.plain import FORMS, plain_object

Getter = Callable[[Any], Any]
Given = Any
"""A field as a table has it: a path, a function, a `Field`, or the beginning of the values of one."""


class Field(NamedTuple):
    """A field of an object: where its value comes from."""

    get: str | Getter = ""
    """A path of attributes, with `()` behind that of a method and numbers for items of tuples; `.` is the value itself, nothing the attribute of the
    field's name. Or a function of the value."""
    words: str = ""
    """What it means, where neither its name nor the attribute says it."""
    type: Any = None
    """Its type, where no annotation says it: fields of an object, `Each` of several such, a `Shape`, or a type."""
    is_optional: bool = False
    """It is left out where it is None."""


class Each(NamedTuple):
    """The type of a list of objects."""

    fields: "Mapping[str, Given] | Shape"


class Shape:
    """The fields of the objects that values of one type become.

    Args:
        of: the type of the values.
        words: what an object is.
        fields: by name, in their order.
    """

    def __init__(self, of: Any, words: str, fields: Mapping[str, Given]) -> None:
        self.of = of
        self.words = words
        self.fields = {name: _field_of(given) for name, given in fields.items()}
        self._steps = [(name, _getter(name, one), one.is_optional) for name, one in self.fields.items()]

    def pairs(self, value: Any) -> Iterator[tuple[str, Any]]:
        """Yield the fields of a value by their names."""
        for name, get, is_optional in self._steps:
            found = get(value)
            if found is not None or not is_optional:
                yield name, found

    def field_of(self, value: Any, name: str) -> Any:
        """Return one field of a value."""
        return next(get for one, get, _ in self._steps if one == name)(value)

    def plain(self, value: Any) -> Any:
        """Return the object of a value; what is absent stays so."""
        return value if value is None or isinstance(value, Absent) else plain_object(self.pairs(value))


def shape(of: Any, words: str, fields: Mapping[str, Given]) -> None:
    """Give all values of a type a shape, wherever they are written."""
    SHAPES[of] = Shape(of, words, fields)
    FORMS[of] = SHAPES[of].pairs


SHAPES: dict[Any, Shape] = {}
"""By type, the shapes of values that are not simply their fields."""


def own(names: str, of: str = "") -> dict[str, Given]:
    """Return fields that have the names of the attributes, which stand with blanks between them, and paths that begin with what is given."""
    return {name: of + name for name in names.split()}


class Document:
    """A document of a command, and the lines of its `--format jsonl`.

    Args:
        name: as `schema` has it.
        of: the type of the body that the fields are of.
        fields: its own, beside those that every document has.
        streamed: those of them that are lists too long to hold; they are written behind the others.
        lines: by `type`, in their order, the field of the document that has their values, or the values of a result as a `Field`; of types of all documents nothing.
        after: fields that are known only when the lists have been written.
        others: what the document may have instead.
        command: whose states its answer has, where its name is another one.
        is_bare: it has no answer, and of the fields of all documents no more than its schema, the version and the exit code.
    """

    def __init__(
        self,
        name: str,
        of: Any,
        fields: Mapping[str, Given],
        *,
        streamed: tuple[str, ...] = (),
        lines: Mapping[str, Any] = MappingProxyType({}),
        after: Shape | None = None,
        others: tuple[Shape, ...] = (),
        command: str = "",
        is_bare: bool = False,
    ) -> None:
        self.name = name
        self.streamed = streamed
        self.lines = lines
        self.after = after
        self.is_bare = is_bare
        self.others = others
        self.command = command or name
        self.whole = Shape(of, "", fields)
        self.head = Shape(of, "", {key: one for key, one in fields.items() if key not in streamed})
        self.tail = Shape(of, "", {key: fields[key] for key in streamed})
        DOCUMENTS[name] = self


DOCUMENTS: dict[str, Document] = {}
"""By name, those whose modules are loaded."""


def plain_document(name: str, of: type) -> Document:
    """Return a document that has the fields of its body by their own names."""
    return DOCUMENTS.get(name) or Document(name, of, {one.name: "" for one in fields(of)})


def _field_of(given: Given) -> Field:
    if isinstance(given, Field):
        return given
    return Field(*given) if isinstance(given, tuple) else Field(given)


def shape_of(given: "Mapping[str, Given] | Shape") -> Shape:
    """Return a shape as it is, or that of the fields of an object."""
    return given if isinstance(given, Shape) else Shape(None, "", given)


def _getter(name: str, field: Field) -> Getter:
    get = field.get if callable(field.get) else _path(field.get or name)
    match field.type:
        case Each(fields):
            each = shape_of(fields).plain
            return lambda value: _several(get(value), each)
        case Shape() | Mapping():
            one = shape_of(field.type).plain
            return lambda value: one(get(value))
    return get


def _several(values: Any, plain: Callable[[Any], Any]) -> Any:
    return values if values is None or isinstance(values, Absent) else map(plain, values)


def steps_of(path: str) -> tuple[tuple[str, bool], ...]:
    """Return the names of a path, each with whether it is that of a method."""
    return tuple((one.removesuffix("()"), one.endswith("()")) for one in path.split(".") if one)


def _path(path: str) -> Getter:
    steps = steps_of(path)

    def get(value: Any) -> Any:
        for name, is_method in steps:
            if value is None or isinstance(value, Absent):
                break
            value = value[int(name)] if name.isdigit() else getattr(value, name)
            if is_method:
                value = value()
        return value

    return get
