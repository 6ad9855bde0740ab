"""The files beside a segment: offset index, time index, transaction index and producer snapshot."""
