"""The timeline: the events of all nodes in the order of time."""
