"""What a line about a truncation says of the log before it, where no other line shows where that ended."""

import pytest

from kforensics.damage import Absent
from kforensics.reconcile.observed.logged_truncations import logged_truncations
from tests.builders.history import logged_events

SINCE_1_0 = "[Log partition=t-0, dir=/d] Truncating to offset {}"
UP_TO_0_11 = "Truncating log t-0 to offset {}."
NONE = "[Log partition=t-0, dir=/d] Truncating to {} has no effect as the largest offset in the log is {}"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        # It is written only where something goes: at least one record.
        ((SINCE_1_0.format(22),), [(23, 22, True)]),
        ((SINCE_1_0.format(32), SINCE_1_0.format(22)), [(33, 32, True), (32, 22, True)]),
        # The log had grown from 22 on.
        ((SINCE_1_0.format(22), SINCE_1_0.format(25)), [(23, 22, True), (26, 25, True)]),
        ((NONE.format(22, 21), SINCE_1_0.format(22)), [(22, 22, False), (23, 22, True)]),
        ((NONE.format(30, 21),), [(22, 30, False)]),
        # Up to 0.11 it is written in any case.
        ((UP_TO_0_11.format(22),), [(Absent.UNKNOWN, 22, Absent.UNKNOWN)]),
    ],
)
def test_the_text_since_1_0_says_that_something_was_removed(lines, found):
    truncations = logged_truncations(logged_events(*lines))

    assert found == [(one.from_offset, one.to_offset, one.has_effect) for one in truncations]
    assert all(not one.is_exact for one in truncations if one.has_effect is True)
