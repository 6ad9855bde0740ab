import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent, DamageKind
from kforensics.errors import FormatError
from kforensics.formats.checkpoint.properties import (
    ESCAPE,
    MetaProperties,
    Property,
    encode_meta_properties,
    meta_properties,
    parse_meta_properties,
    parse_properties,
)

CLUSTER = "vY7JofgDRe29fJ7HCBq0TQ"
DIRECTORY = "vQJh2GyhL3rVa4H9GeSaWQ"


def test_version_1_of_a_formatted_directory():
    data = f"#\n#Sat Nov 21 06:27:44 UTC 2026\nnode.id=100\ndirectory.id={DIRECTORY}\nversion=1\ncluster.id={CLUSTER}\n".encode()
    parsed = parse_meta_properties(data)
    assert (parsed.version, parsed.node_id, parsed.cluster_id, parsed.directory_id) == (1, 100, CLUSTER, DIRECTORY)
    assert [3] == [one.line for one in parsed.entries if one.key == "node.id"]
    assert parsed.damage == ()


def test_version_0_has_a_broker_id_and_no_directory():
    parsed = parse_meta_properties(b"version=0\nbroker.id=2\n")
    assert (parsed.version, parsed.node_id, parsed.cluster_id, parsed.directory_id) == (
        0,
        2,
        Absent.NOT_WRITTEN,
        Absent.NOT_WRITTEN,
    )
    assert parse_meta_properties(b"broker.id=2\n").version == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", ("a", "b")),
        ("a : b ", ("a", "b ")),
        ("a b=c", ("a", "b=c")),
        ("  a\\ b\\==\\u0041\\n", ("a b=", "A\n")),
        ("a=one\\\n   two", ("a", "onetwo")),
        ("a", ("a", "")),
        ("a=\\", ("a", "")),
        ("a=\\ud83d\\ude00 \\ud83d", ("a", "\U0001f600 \ufffd")),
    ],
)
def test_java_properties(text, expected):
    (entry,) = parse_properties(text.encode("latin-1"))
    assert entry[:2] == expected


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=6))
def test_any_text_survives_the_escapes(pairs):
    given_entries = tuple(Property(key, value) for key, value in pairs.items())
    value = MetaProperties(
        version=0, node_id=1, cluster_id=Absent.NOT_WRITTEN, directory_id=Absent.NOT_WRITTEN, entries=given_entries
    )
    encoded = encode_meta_properties(value)
    found = [(entry.key, entry.value) for entry in parse_properties(encoded)]
    as_java = [
        (key.encode("utf-16", "surrogatepass"), text.encode("utf-16", "surrogatepass")) for key, text in pairs.items()
    ]
    assert [
        (key.encode("utf-16", "surrogatepass"), text.encode("utf-16", "surrogatepass")) for key, text in found
    ] == as_java


@given(st.integers(0, 1), st.integers(0, 2**31 - 1))
def test_round_trip(version, node_id):
    value = meta_properties(
        version=version, node_id=node_id, cluster_id=CLUSTER, directory_id=DIRECTORY if version else Absent.NOT_WRITTEN
    )
    parsed = parse_meta_properties(encode_meta_properties(value))
    assert (parsed.version, parsed.node_id, parsed.cluster_id, parsed.directory_id) == (
        version,
        node_id,
        value.cluster_id,
        value.directory_id,
    )
    assert parsed.damage == ()


def test_blanks_around_the_version_and_padding_of_a_directory_id_are_read_as_kafka_does():
    parsed = parse_meta_properties(
        f"node.id=1\ncluster.id={CLUSTER}\nversion=1 \ndirectory.id=jkNqQGRwTxqJZqXzxqgAgA==\n".encode()
    )
    assert (parsed.version, parsed.directory_id) == (1, "jkNqQGRwTxqJZqXzxqgAgA")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"node.id=one", DamageKind.TEXT),
        (b"node.id=-1", DamageKind.TEXT),
        (b"directory.id=short", DamageKind.TEXT),
        (b"directory.id=AAAAAAAAAAAAAAAAAAAAAQ", DamageKind.TEXT),
        (b"directory.id=AAAAAAAAAAAAAAAAAAAAYw", DamageKind.TEXT),
        (b"version=-7", DamageKind.VERSION),
    ],
)
def test_a_wrong_value_is_named_with_its_line(line, kind):
    parsed = parse_meta_properties(f"cluster.id={CLUSTER}\nnode.id=1\nversion=1\n".encode() + line + b"\n")
    (place,) = parsed.damage
    assert place.kind is kind
    assert place.found.startswith("line 4: ")


def test_version_1_without_an_identity():
    assert len(parse_meta_properties(b"version=1\n").damage) == 2


@given(st.binary(max_size=200))
def test_any_bytes(data):
    with contextlib.suppress(FormatError):
        parse_meta_properties(data)
    assert parse_meta_properties(b"node.id=1\n" + data).entries


def test_a_directory_before_0_10_names_no_cluster():
    value = meta_properties(version=0, node_id=3, cluster_id=Absent.NOT_WRITTEN)

    assert encode_meta_properties(value) == b"version=0\nbroker.id=3\n"


def test_an_escape_that_java_refuses_is_damage():
    sound = "version=1\nnode.id=1\ncluster.id=a\nnote=\\\\u12 \\u0041\n"
    assert not parse_meta_properties(sound.encode()).damage

    (damage,) = parse_meta_properties(sound.encode() + b"note=\\u12\n").damage
    with pytest.raises(FormatError, match="four hexadecimal digits"):
        parse_meta_properties(b"note=\\u12\n")

    assert (damage.span.position, damage.expected) == (len(sound), ESCAPE)


def test_the_version_says_which_id_counts():
    both = b"broker.id=2\nnode.id=3\ncluster.id=a\n"
    assert parse_meta_properties(both).node_id == 2
    assert parse_meta_properties(both + b"version=1\n").node_id == 3
