"""Made directories through Kafka's own loader and through the rules of `protocol.loading`: they agree on all of them."""

import shutil
from random import Random

import pytest

from tests.oracle.jars import RELEASES, class_path
from tests.oracle.loading.judge import Judge, differences, judge_case
from tests.oracle.loading.made import random_case

CASES = 500
LOADERS = ("2.5.1", "2.8.1", "3.9.1", "4.1.0")


@pytest.mark.oracle
@pytest.mark.parametrize("kafka", LOADERS)
def test_predicted_is_what_the_loader_does(kafka, tmp_path):
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("needs Java and Maven")
    release = next(one for one in RELEASES if one.version == kafka)
    compared = 0
    with Judge(kafka, class_path(release)) as judge:
        for seed in range(CASES):
            told, judged = judge_case(judge, random_case(Random(seed)), kafka, tmp_path)
            if "unpredictable" not in told:
                compared += 1
                assert differences(told, judged) == {}, seed

    assert compared > CASES * 0.98
