"""A model of replication made of the rules in `kforensics.protocol`: it replays, explores and generates histories."""
