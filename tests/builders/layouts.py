"""construct's own reader of a fixed layout, which the readers of the package are held against."""

import construct

from kforensics.formats.primitives.layout import FixedLayout

KINDS = {
    "int8": construct.Int8sb,
    "int16": construct.Int16sb,
    "int32": construct.Int32sb,
    "uint32": construct.Int32ub,
    "int64": construct.Int64sb,
}


def declared(layout: FixedLayout) -> construct.Struct:
    """The layout as construct declares it."""
    return construct.Struct(*(name / KINDS[kind] for name, kind in layout.fields.items()))
