"""Judging partitions: what ends one of them does not take the others."""

from types import SimpleNamespace
from typing import Any

from kforensics.ask.model import Ask
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.discovery.partition_dirs import find_places
from kforensics.evidence.model import Problem
from kforensics.evidence.replica import collect
from kforensics.fleet import closing, judge
from kforensics.fleet.facts import NOTHING, ClusterKnowledge, Gathered, SplitKnowledge, no_commits
from kforensics.fleet.keeping import Kept
from kforensics.fleet.knowledge import FACTS_TABLE
from kforensics.fleet.rows import problem_row
from kforensics.fleet.schemas import FACTS
from kforensics.fleet.tables import Tables
from kforensics.reconcile.observed.facts import CommittedFacts
from kforensics.units import TopicPartition
from tests.builders.directories import log_dir


def test_a_defect_in_what_is_read_of_a_directory_is_a_problem_of_its_partition(tmp_path, monkeypatch):
    (place,) = next(iter(find_places(find_inputs([log_dir(tmp_path / "broker-1")])).by_partition.values()))
    nothing: Any = None  # what the directory would be judged with
    out = judge.JudgedRows(nothing)

    def fail(*_given):
        raise ValueError("epochs that can't be")

    monkeypatch.setattr(collect, "_read_own_files", fail)
    key = ("", place.topic_partition.topic, place.topic_partition.partition)
    judge._judge_by_ends(key, [judge._Listed({}, place)], [], nothing, nothing, out)

    (problem,) = out.problems
    assert (place.state.input, place.path) == (problem["input"], problem["path"])
    assert f"{place.topic_partition} could not be judged: ValueError: epochs that can't be" == problem["message"]
    assert not out.partitions


def test_a_partition_that_could_not_be_judged_has_a_directory(tmp_path, monkeypatch):
    tables = Tables(tmp_path / "work")
    failed, absent = TopicPartition("orders", 0), TopicPartition("orders", 1)
    problem = Problem(input=0, path=f"{failed}/00000000000000000000.log", message="could not be judged")
    tables.create(["partitions", "problems", FACTS_TABLE])
    tables.write("problems", "run-0001-group-00000", [problem_row(problem)])
    facts = {"cluster_id": "c", "topic": "orders", "is_known": True, "topic_id": None, "facts": NOTHING}
    tables.write(FACTS_TABLE, "part", [{**facts, "partition": number} for number in (0, 1)], FACTS)
    asked: list[TopicPartition] = []

    def none_of(known, *_given, **_more):
        asked.extend(known)
        return ()

    monkeypatch.setattr(closing, "without_directories", none_of)
    context: Any = SimpleNamespace(tables=tables, clusters=("c",), audited={})
    shared = SplitKnowledge(ClusterKnowledge(facts=CommittedFacts(no_commits))).shared()
    gathered = Gathered(
        cluster="c", shared=shared, parts=("part",), racks={}, has_metadata=False, problems=(), topics={}
    )

    closing.write_absent(context, {"c": gathered}, Ask(), Kept())

    assert [absent] == asked
