"""Batches of a magic above those that are known are of a release that is not known: nothing is said of a start of its log."""

import pytest

from kforensics.ask.model import Ask
from kforensics.commands import predict
from kforensics.damage import Absent
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.builders.directories import log_dir

MAGIC_AT = 16


def _batches(magics):
    data = b""
    for offset, magic in enumerate(magics):
        batch = bytearray(encode_record_batch(build_record_batch(offset, [(1_700_000_000_000, b"k", b"v")])))
        batch[MAGIC_AT] = magic
        data += bytes(batch)
    return data


def _predicted(tmp_path, magics):
    broker = log_dir(tmp_path / "broker-1")
    (broker / "orders-0" / f"{0:020d}.log").write_bytes(_batches(magics))
    (log,) = predict.run(Ask(paths=(broker,), jobs=1)).body.logs
    return log


@pytest.mark.parametrize("magics", [(3,), (2, 2, 3, 3, 3), (3, 3, 3)])
def test_batches_that_are_newer_than_known_leave_the_start_unknown(tmp_path, magics):
    log = _predicted(tmp_path, magics)

    assert (log.outcome, log.after) == ("unknown", Absent.UNKNOWN)
    assert "newer" in log.message
    assert "magic 3" in log.message


def test_one_magic_alone_behind_sound_batches_is_a_flipped_bit(tmp_path):
    assert "newer" not in _predicted(tmp_path, (2, 2, 3)).message
