"""Recorded verdicts: what Kafka's own loader made of made directories, and what the rules say of the same.

Each line of the files holds a description (`tests.oracle.loading.made.Case`) and what the loader of that version did. They are written by
`python -m tests.oracle.loading.judge --write`.
"""

import json
from pathlib import Path

import pytest

from tests.oracle.loading.judge import differences, predicted
from tests.oracle.loading.made import Case, edited_files, write_files

CASES = [
    json.loads(line)
    for path in sorted(Path(__file__).parent.glob("judged-*.jsonl"))
    for line in path.read_text().splitlines()
]


def test_there_are_many_of_all_kinds():
    assert len(CASES) >= 200
    thrown = {case["loaded"]["exception"] for case in CASES}
    assert thrown > {
        None,
        "CorruptRecordException",
        "IllegalArgumentException",
        "KafkaStorageException",
        "NumberFormatException",
    }
    assert {case["case"]["clean"] for case in CASES} == {True, False}


@pytest.mark.parametrize("at", range(len(CASES)), ids=lambda at: f"{CASES[at]['kafka']}-{at}")
def test_the_rules_say_what_the_loader_did(at, tmp_path):
    one = CASES[at]
    case = Case(**one["case"])
    folder = tmp_path / case.name
    write_files(edited_files(case), folder)

    assert differences(predicted(folder, case, one["kafka"]), one["loaded"]) == {}
