"""The process that Spark forks its local Python workers from, with what every worker needs imported once."""

import gc

import pyspark.worker  # noqa: F401  # the import is what this is for
from pyspark.daemon import manager

import kforensics.fleet.stages  # noqa: F401  # as above

if __name__ == "__main__":
    # A worker of Spark collects all garbage after each task: without this it would search every object of these modules again.
    gc.collect()
    gc.freeze()
    manager()
