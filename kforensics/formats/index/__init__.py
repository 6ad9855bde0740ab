"""The files beside a segment: offset, time and transaction index, producer snapshot."""
