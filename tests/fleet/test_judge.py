"""Judging partitions: what ends one of them does not take the others."""

from typing import Any

from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.discovery.partition_dirs import find_places
from kforensics.evidence.replica import collect
from kforensics.fleet import judge
from tests.builders.directories import log_dir


def test_a_defect_in_what_is_read_of_a_directory_is_a_problem_of_its_partition(tmp_path, monkeypatch):
    (place,) = next(iter(find_places(find_inputs([log_dir(tmp_path / "broker-1")])).by_partition.values()))
    nothing: Any = None  # what the directory would be judged with
    out = judge.JudgedRows(nothing)

    def fail(*_given):
        raise ValueError("epochs that can't be")

    monkeypatch.setattr(collect, "_read_directory", fail)
    key = ("", place.topic_partition.topic, place.topic_partition.partition)
    judge._judge_by_ends(key, [judge._Listed({}, place)], [], nothing, nothing, out)

    (problem,) = out.problems
    assert (place.state.input, place.path) == (problem["input"], problem["path"])
    assert f"{place.topic_partition} could not be judged: ValueError: epochs that can't be" == problem["message"]
    assert not out.partitions
