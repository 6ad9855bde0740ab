"""Batches in bytes that are no segment; images with files in them are in tests/cli/test_salvage_carve.py."""

from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.resync import carve_batches
from tests.builders.coordinators import batch


class ShrunkImage:
    """An image that ends before the size that it had when it was opened."""

    size = 10_000

    def __init__(self, left):
        self.left = left

    def read_into(self, position, buffer):
        return max(0, min(len(buffer), self.left - position))


def test_an_image_that_shrank_ends_the_search():
    assert [] == list(carve_batches(ShrunkImage(0), 0, 10_000))
    assert [] == list(carve_batches(ShrunkImage(60), 0, 10_000))


def test_a_batch_that_the_image_cuts_off_is_none():
    whole = batch(0, [(b"key", b"value" * 20)])
    between = bytes(4096)

    found = list(carve_batches(MemoryBytes(between + whole + between), 0, 2 * 4096 + len(whole)))
    assert [0] == [int(row["base_offset"]) for table in found for row in table]
    assert [] == [
        row for table in carve_batches(MemoryBytes(between + whole[:-5]), 0, 4096 + len(whole) - 5) for row in table
    ]
