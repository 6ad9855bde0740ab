"""A model of replication that applies the rules of `kforensics.protocol`: it replays, explores and generates histories."""
