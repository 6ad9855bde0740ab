"""The process that Spark forks its local Python workers from, with what every worker needs imported once."""

from pyspark.daemon import manager

import kforensics.fleet.stages  # noqa: F401  # the import is what this is for

if __name__ == "__main__":
    manager()
