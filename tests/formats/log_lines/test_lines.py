"""Each row of the table of lines finds a line of its own, here with other names and numbers than anywhere else."""

from pathlib import Path

import pytest

from kforensics.formats.log_lines.scan import scan_log
from kforensics.formats.log_lines.table import Weight, rows, sections
from kforensics.formats.log_lines.unwrap import find_message

LINES = [
    line.split("\t")
    for line in Path(__file__).with_name("lines.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def test_each_row_finds_a_line_and_no_other_row_before_it():
    found = [find_message(line.replace("\\n", "\n").encode()) for _, line in LINES]

    assert [kind for kind, _ in LINES] == [one.message.row.section.kind if one else None for one in found]
    assert {one.message.row.number for one in found if one} == {row.number for row in rows()}


@pytest.mark.parametrize("number", range(0, len(LINES), 50))
def test_what_is_found_in_one_line_is_found_in_a_file(number):
    some = LINES[number : number + 50]

    for kind, line in some:
        (window,) = scan_log([line.replace("\\n", "\n").encode() + b"\n"])
        assert kind in {event.kind for event in window.events}, line


def test_every_row_and_section_says_what_it_is():
    versions = {row.versions for row in rows()}

    assert all(part.count(".") in {1, 2} for one in versions for part in one.replace("-", ",").split(","))
    assert {section.weight for section in sections()} == set(Weight)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (
            "Found directory /srv/lost+found, 'lost+found' is not in the form of topic-partition",
            {"path": "/srv/lost+found"},
        ),
        ("Shutdown broker because all log dirs in /a, /b have failed", {"reason": "all log dirs in /a, /b"}),
        ("Unable to register broker 3 because the controller returned error X_Y", {"broker": 3, "error": "X_Y"}),
        (
            "Error while renaming dir for t-0 in log dir D:\\kf (kafka.log.X)",
            {"directory": "D:\\kf", "reason": "renaming dir for t-0"},
        ),
        (
            "Could not read file /srv/t-0/00000000000000004020.log",
            {"path": "/srv/t-0/00000000000000004020.log", "base_offset": 4020},
        ),
        (
            "Creating new QuorumController with clusterId my.cluster. (kafka.controller.QuorumController)",
            {"cluster": "my.cluster"},
        ),
        (
            "Creating new QuorumController with clusterId 4kX1r5JQkqJjI0RRIxCkQ-, authorizer Optional.empty.",
            {"cluster": "4kX1r5JQkqJjI0RRIxCkQ-"},
        ),
        ("Cluster ID = y4kX1r5JQkqJjI0RRIxCkQ", {"cluster": "y4kX1r5JQkqJjI0RRIxCkQ"}),
        (
            "Downgrading metadata.version from 4.3-IV0 to 4.1-IV1. (o.a.k.X)",
            {"level_name": "4.3-IV0", "level_name_after": "4.1-IV1"},
        ),
    ],
)
def test_fields_have_the_values_of_the_line(line, fields):
    found = find_message(line.encode())

    assert found is not None
    assert fields.items() <= dict(found.message.fields).items()
