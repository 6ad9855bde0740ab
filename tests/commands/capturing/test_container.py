import json

from hypothesis import given
from hypothesis import strategies as st

from kforensics.commands.capturing.container import DeflatedObject


@given(st.dictionaries(st.text(), st.integers(), max_size=30))
def test_an_object_that_is_held_deflated_is_the_same(members):
    held = DeflatedObject()
    for name, value in members.items():
        held.add(name, value)
        json.loads(b"".join(held.pieces()))

    assert members == json.loads(b"".join(held.pieces()))
