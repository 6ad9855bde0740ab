"""What every format is made of: fixed layouts, checksums, codecs, varints, lines of text."""
