"""What loading makes of the files of a log, by version: the rules of `LogManager`, `LogLoader`, `LogSegment` and `ProducerStateManager`."""
