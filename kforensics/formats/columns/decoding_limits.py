"""Limits of what is decoded at once."""

PAYLOAD_LENGTH = 8 << 20
"""The bytes that are decompressed before they are decoded; a larger batch makes the buffer grow up to the output limit."""


class ExactReads:
    """The budget of the exact reader, in bytes of bodies: a few hundred compressed bytes hold millions of records, and each costs it microseconds."""

    def __init__(self, allowance: int) -> None:
        self._left = allowance

    def take(self, length: int) -> bool:
        """Return whether this many bytes may be read, and take them from the budget.

        Args:
            length: bytes of a body; nothing is taken where it exceeds what is left.
        """
        if length > self._left:
            return False
        self._left -= length
        return True
