"""The parts of `predict`: the version, the nodes, their starts, what the first minute deletes, and the ways out."""
