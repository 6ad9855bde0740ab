"""Every kind of file has a row, and what the row says of it holds."""

import pytest

from kforensics.damage import Absent
from kforensics.evidence.file_kinds import FILE_KINDS, understand
from kforensics.findings.rule import all_rules
from kforensics.source.naming import FileKind

STREAMED = {FileKind.SEGMENT, FileKind.METADATA_SNAPSHOT}
READ_WHOLE = [kind for kind, row in FILE_KINDS.items() if row.parse is not None]


def test_every_kind_has_a_row_in_the_order_of_the_kinds():
    assert list(FILE_KINDS) == list(FileKind)


def test_what_is_checked_has_entries_and_a_finding():
    for kind in READ_WHOLE:
        assert FILE_KINDS[kind].entries is not None, kind
        assert FILE_KINDS[kind].damage_code in all_rules(), kind
    assert {kind for kind, row in FILE_KINDS.items() if not isinstance(row.damage_code, Absent)} == {
        *READ_WHOLE,
        *STREAMED,
        FileKind.LOCK,
    }


def test_what_no_broker_writes_is_neither_read_nor_blamed():
    for kind in (FileKind.UNKNOWN, FileKind.SYMBOLIC_LINK, FileKind.SPECIAL):
        row = FILE_KINDS[kind]
        assert (row.is_known, row.parse, row.entries) == (False, None, None)


@pytest.mark.parametrize("kind", READ_WHOLE)
def test_noise_is_damage_in_every_kind_and_never_an_error(kind):
    _, damage = understand(kind, b"\xff\x00noise\n" * 5)

    assert damage
