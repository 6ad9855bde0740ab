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


@pytest.mark.parametrize("version", sorted({case["kafka"] for case in CASES}))
@pytest.mark.some(8)
def test_the_rules_say_what_the_loader_did(version, tmp_path):
    wrong = {}
    for at, one in enumerate(CASES):
        if one["kafka"] != version:
            continue
        case = Case(**one["case"])
        folder = tmp_path / str(at) / case.name
        write_files(edited_files(case), folder)
        wrong[at] = differences(predicted(folder, case, version), one["loaded"])

    assert {at: found for at, found in wrong.items() if found} == {}
