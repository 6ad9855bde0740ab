from hypothesis import given
from hypothesis import strategies as st

from kforensics.evidence.coordinators.replica_log import batch_outline, first_difference, list_log
from tests.builders.coordinators import batch, write_log

ROWS = st.lists(st.integers(0, 2), max_size=8)


def outline_of(folder, contents):
    content = b"".join(batch(at, [(b"k", b"%d" % value)]) for at, value in enumerate(contents))
    return batch_outline(list_log(write_log(folder, "t-0", (0, content))))


@given(log=ROWS, copy=ROWS, start=st.integers(0, 4))
def test_the_first_batch_that_the_log_does_not_hold(tmp_path_factory, log, copy, start):
    own, theirs = (outline_of(tmp_path_factory.mktemp("log"), rows) for rows in (log, copy))

    wanted = [at for at, value in enumerate(copy) if at >= start and (at >= len(log) or log[at] != value)]

    assert first_difference(own, theirs, from_offset=start) == (wanted[0] if wanted else None)
