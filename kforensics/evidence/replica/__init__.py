"""One partition directory: its segments, batches and log end."""
