"""The parts of every format: fixed layouts, checksums, codecs, varints, lines of text."""
