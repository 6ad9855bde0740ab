"""The formats of a view: one module each, which renders every kind of block."""
