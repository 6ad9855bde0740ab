"""One module, one on-disk format: bytes in, values out, and the encoder beside the decoder."""
