"""Inventories, globs, directories and evidence, mixed."""

import pytest

from kforensics.errors import EvidenceNotFound, EvidenceUnreadable, FormatError, UsageError
from kforensics.fleet.sources import check_output, read_sources


@pytest.fixture
def places(tmp_path):
    for name in ("b1", "b2"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        "- {node: 1, location: b1, rack: r}\n- {node: 2, location: b2}\n",
        "nodes:\n- {node: 1, location: b1, rack: r}\n- {node: 2, location: b2}\n",
        "1: {location: b1, rack: r}\n2: b2\n",
        "1: {location: [b1], rack: r}\n2: [b2]\n",
    ],
)
def test_yaml(places, text):
    (places / "nodes.yaml").write_text(text)

    found = read_sources([str(places / "nodes.yaml")])

    assert [(1, "r", places / "b1"), (2, None, places / "b2")] == [(s.node_id, s.rack, s.location) for s in found]


def test_csv_and_parquet(places):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (places / "nodes.csv").write_text(f"node,location\n1,{places / 'b1'}\n,b2\n")
    pq.write_table(pa.table({"node": [3], "location": ["mock:///bucket/x"]}), places / "nodes.parquet")

    found = read_sources([str(places / "nodes.csv"), str(places / "nodes.parquet"), str(places / "b*")])

    assert [1, None, 3, None, None] == [one.node_id for one in found]
    assert ["b1", "b2", "x", "b1", "b2"] == [one.location.name for one in found]
    assert "mock:///bucket/x" == str(found[2].location)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("- {node: one, location: b1}\n", FormatError),
        ("- {node: 1}\n", FormatError),
        ("- 5\n", FormatError),
        ("word\n", EvidenceUnreadable),
        ("- {a: [\n", EvidenceUnreadable),
        ("!!python/object:os.system {}\n", EvidenceUnreadable),
    ],
)
def test_what_is_no_inventory(places, text, error):
    (places / "nodes.yaml").write_text(text)

    with pytest.raises(error):
        read_sources([str(places / "nodes.yaml")])


def test_a_pattern_without_a_match(places):
    with pytest.raises(EvidenceNotFound, match="matches"):
        read_sources([str(places / "c*")])


def test_output_beside_the_evidence_only(places):
    sources = read_sources([str(places / "b1")])

    check_output(places / "out", sources)
    for inside in (places / "b1", places / "b1" / "out", places / "b2" / ".." / "b1" / "x"):
        with pytest.raises(UsageError, match="inside"):
            check_output(inside, sources)
