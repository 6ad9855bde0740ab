"""Batches in bytes that are no segment; images with files in them are in tests/cli/test_salvage_carve.py."""

from kforensics.formats.segment.carve import carve_batches


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
