"""Where files are: what the rest of the package may ask, and captures that are replaced while a process lives."""

import os
import pickle
import re
import shutil
from pathlib import Path

import pytest

import kforensics
from kforensics.source.capture import split_at_capture
from kforensics.source.mapped import open_evidence
from kforensics.source.store import store_of
from tests.captures import take
from tests.conftest import FIXTURES, ROOT

ENDS = FIXTURES / "unclean-election"
ASKED_OUTSIDE = {"captured_roots", "captures_in", "is_capture", "open_capture", "split_at_capture", "with_records"}
"""What other layers than that of evidence may ask of captures."""
READS_AN_EARLIER_ONE = "earlier_captures.py"


def _modules(*besides):
    return [one for one in (ROOT / "kforensics").rglob("*.py") if not {*besides} & set(one.parts)]


def test_no_other_layer_asks_for_the_class_of_a_path():
    named = [one for one in _modules("source") if re.search(r"\bCapturePath\b", one.read_text())]

    assert [] == named


def test_how_a_segment_is_kept_is_known_to_the_readers_of_evidence_alone():
    imports = re.compile(r"^from kforensics\.source\.capture import (.*|\([^)]*\))$", re.MULTILINE)

    for one in _modules("source", "evidence"):
        asked = {name for found in imports.findall(one.read_text()) for name in re.findall(r"\w+", found)}
        allowed = ASKED_OUTSIDE | ({"CapturedSegment"} if one.name == READS_AN_EARLIER_ONE else set())
        assert set() == asked - allowed, one


@pytest.fixture
def nights(tmp_path):
    """Captures of two states of a broker: what is at one path in two nights."""
    return [
        take([ENDS / f"broker-{number}"], tmp_path / f"night-{at}" / "broker.kfc")
        for at, number in enumerate((1, 2))
        if (tmp_path / f"night-{at}").mkdir() is None
    ]


@pytest.mark.parametrize("replace", [shutil.copyfile, shutil.move], ids=["written over", "another file"])
@pytest.mark.some(1)
def test_a_capture_that_is_replaced_is_read_again_in_the_same_process(nights, tmp_path, replace):
    at = tmp_path / "broker.kfc"
    shutil.copyfile(nights[0], at)
    first = kforensics.ls(at)
    replace(nights[1], at)
    os.utime(at, ns=(1, 1))
    second = kforensics.ls(at)

    assert [1, 2] == [one.to_dict()["inputs"][0]["broker_id"] for one in (first, second)]


def _inside(path):
    found = split_at_capture(path)
    assert found is not None
    return found


def _capture_at(path):
    found = store_of(path).capture
    assert found is not None
    return found


def test_a_path_that_arrives_in_a_process_is_of_the_capture_that_was_meant(nights, tmp_path):
    at = tmp_path / "broker.kfc"
    shutil.copyfile(nights[0], at)
    old = _capture_at(_inside(at))
    shutil.move(nights[1], at)
    sent = pickle.dumps(_inside(at))
    arrived = _capture_at(pickle.loads(sent))

    assert old.sha256 != arrived.sha256
    assert arrived.manifest["node"]["node_id"] == 2


def test_what_is_known_of_a_place(nights, tmp_path):
    captured = store_of(_inside(nights[0] / "broker-1" / "orders-0"))
    here = store_of(Path(tmp_path))

    assert (captured.is_here, captured.holds_bytes, captured.container) == (True, False, nights[0])
    assert captured.origin == str(ENDS / "broker-1" / "orders-0")
    assert (here.is_here, here.holds_bytes, here.container, here.origin) == (True, True, None, None)


def test_a_file_says_where_its_bytes_stayed(nights):
    segment = Path("broker-1", "orders-0", f"{0:020}.log")
    with open_evidence(_inside(nights[0] / segment)) as captured, open_evidence(ENDS / segment) as whole:
        assert captured.where == f"{ENDS / segment} of broker 1"
        assert whole.where == ""
