"""Captures of replicas that are the same: what is said of them without reading each, and that it is said of no other."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from kforensics.case import comparison as comparing
from kforensics.case.comparison import compare_all, comparison_of
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.reconcile.replicas.partition import PartitionJudge
from tests.benchmarks.captures import make_broker
from tests.builders.cases import case_of
from tests.captures import compare_short_ways, take

COUNT = 5
SEGMENT, EPOCHS = f"{0:020}.log", "leader-epoch-checkpoint"
HIGH_WATERMARKS, RECOVERY_POINTS = "replication-offset-checkpoint", "recovery-point-offset-checkpoint"


def flip_last_byte(path):
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def shorten(path):
    path.write_bytes(path.read_bytes()[:-100])


def other_line(path, old, new):
    path.write_text(path.read_text().replace(old, new))


ODD = {
    "damaged": lambda folder: flip_last_byte(folder / "topic-0-3" / SEGMENT),
    "shorter": lambda folder: shorten(folder / "topic-0-3" / SEGMENT),
    "empty": lambda folder: (folder / "topic-0-3" / SEGMENT).write_bytes(b""),
    "without its segment": lambda folder: (folder / "topic-0-3" / SEGMENT).unlink(),
    "about to be removed": lambda folder: (folder / "topic-0-3" / SEGMENT).rename(
        folder / "topic-0-3" / f"{SEGMENT}.deleted"
    ),
    "of another epoch": lambda folder: (folder / "topic-0-3" / EPOCHS).write_text("0\n1\n3 0\n"),
    "without epochs": lambda folder: (folder / "topic-0-3" / EPOCHS).unlink(),
    "with epochs that can't be read": lambda folder: (folder / "topic-0-3" / EPOCHS).write_text("0\n1\nx y\n"),
    "with a topic id": lambda folder: (folder / "topic-0-3" / "partition.metadata").write_text(
        "version: 0\ntopic_id: 6It1kTHbTjKY3LNflMZizQ\n"
    ),
    "with a high watermark above its end": lambda folder: other_line(
        folder / HIGH_WATERMARKS, "topic-0 3 ", "topic-0 3 9"
    ),
    "without a high watermark": lambda folder: other_line(folder / HIGH_WATERMARKS, "topic-0 3 ", "topic-9 3 "),
    "with another recovery point": lambda folder: other_line(folder / RECOVERY_POINTS, "topic-0 3 ", "topic-0 3 9"),
    "with a directory in it": lambda folder: (folder / "topic-0-3" / "more").mkdir(),
}


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """Captures of three brokers whose replicas are the same."""
    root = tmp_path_factory.mktemp("brokers")
    for node in (1, 2, 3):
        make_broker(root / f"broker-{node}", node, COUNT, COUNT * 2000)
    return [take([root / f"broker-{node}"], root / f"{node}.kfc") for node in (1, 2, 3)]


def comparison(captures):
    inputs = find_inputs(captures, with_server_logs=True)
    return comparison_of(case_of(inputs))


def test_of_partitions_that_are_alike_one_is_judged(captured):
    short = comparison(captured)._replace(keep_quiet=False)

    with patch.object(PartitionJudge, "report", autospec=True, side_effect=PartitionJudge.report) as judged:
        found = compare_all(short, 1, None)

    assert (COUNT, 1) == (len(found), judged.call_count)
    assert [one for one, _ in short.groups] == [one.judged.partition for one in found]
    assert {"unknown"} == {one.state for one in found}


@pytest.mark.parametrize(("odd", "node"), [(odd, (1, 3)[at % 2]) for at, odd in enumerate(ODD)])
@pytest.mark.some(4)
def test_a_partition_that_is_not_like_the_others_is_judged_by_itself(odd, node, captured, tmp_path):
    folder = tmp_path / "broker"
    make_broker(folder, node, COUNT, COUNT * 2000)
    ODD[odd](folder)
    captures = list(captured)
    captures[node - 1] = take([folder], tmp_path / "odd.kfc")

    assert [] == list(compare_short_ways(captures))


@pytest.mark.parametrize("blocks", [(0, 0, 0, 1, 1, 1, 2), (None,) * 7, (0,) * 7, (0, 1, 2, 3, 4, 5, 6)])
def test_every_partition_is_taken_once_and_no_block_by_two(blocks):
    shared: Any = SimpleNamespace(groups=[(None, (at,)) for at in range(7)])
    with patch.object(comparing, "_block_of", blocks.__getitem__):
        runs = list(comparing._at_blocks(shared, range(7), [(0, 2), (2, 4), (4, 7)]))

    assert list(range(7)) == [at for first, end in runs for at in range(first, end)]
    assert all(blocks[end - 1] != blocks[end] for _, end in runs[:-1]) or blocks[0] is None
