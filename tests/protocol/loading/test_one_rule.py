"""What `diff` and `explain` ask of the rules of loading, for a log that was read, is what a broker's own loader does with the directory.

The judged directories are read as evidence, loaded by the rules, and compared where recovery alone decides: files with their own names, and no exception.
"""

import json
from pathlib import Path

import pytest

from kforensics.evidence.discovery.partition_dirs import LogDirState, PartitionPlace
from kforensics.evidence.replica.collect import collect_replica
from kforensics.protocol.versions import parse_version
from kforensics.reconcile.logs.loaded_log import load_replica
from kforensics.source.walk import Listings
from kforensics.units import TopicPartition
from tests.oracle.loading.made import Case, edited_files, write_files

PARTITION = TopicPartition("orders", 0)
KINDS = {
    "flip": (".log",),
    "cut": (".log", ".timeindex", ".snapshot"),
    "zeros": (".log", ".snapshot"),
    "append": (".log",),
    "remove": ("leader-epoch-checkpoint", ".snapshot", ".timeindex"),
}


def known_to_both(one):
    case = one["case"]
    return (
        case["name"] == "orders-0"
        and case["batches"]
        and parse_version(one["kafka"]) >= (2, 8)  # before, the recovery point became the log end
        and not case["clean"]
        and one["loaded"]["exception"] is None
        and one["loaded"]["end"] < 1 << 31  # no segment was split
        and all(name.endswith(KINDS.get(kind, ("-",))) for kind, name, *_ in case["edits"])
    )


CASES = [
    one
    for path in sorted(Path(__file__).parent.glob("judged-*.jsonl"))
    for one in map(json.loads, path.read_text().splitlines())
    if known_to_both(one)
]


def test_there_are_some():
    assert len(CASES) > 30


@pytest.mark.parametrize("at", range(len(CASES)))
def test_recovery_is_that_of_the_loader(at, tmp_path):
    one = CASES[at]
    case = Case(**one["case"])
    write_files(edited_files(case), tmp_path / "orders-0")
    (tmp_path / "recovery-point-offset-checkpoint").write_text(f"0\n1\norders 0 {case.recovery_point}\n")
    (tmp_path / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {case.log_start}\n")
    packed = {
        name: {PARTITION: value << 32 | 3}
        for name, value in (("recovery_point", case.recovery_point), ("log_start", case.log_start))
    }
    state = LogDirState(
        listings=Listings(tmp_path), input=0, log_dir="", broker_id=1, clean_shutdown=False, checkpoints=packed
    )
    place = PartitionPlace(state=state, path="orders-0", topic_partition=PARTITION, directory_state="live")

    outcome = load_replica(collect_replica(place).replica)

    loaded, log = one["loaded"], outcome.state
    assert [log.log_start_offset, log.log_end_offset] == [loaded["start"], loaded["end"]]
    assert [list(entry) for entry in log.epochs] == loaded["epochs"]
    assert log.recovery_point == loaded["recovery_point"]
