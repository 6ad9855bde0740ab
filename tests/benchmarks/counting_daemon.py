"""The daemon that starts Python workers for `fleet_scale`, which count the files that they open."""

import gc

import kforensics.fleet.daemon  # noqa: F401  # what every worker needs
from tests.benchmarks.fleet_scale import count_opens

if __name__ == "__main__":
    from pyspark.daemon import manager

    count_opens()
    gc.collect()
    gc.freeze()
    manager()
