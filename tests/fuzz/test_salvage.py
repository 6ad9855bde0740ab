"""A few damaged trees through `salvage`; `python -m tests.fuzz.salvage` runs many."""

import pytest

from tests.fuzz.commands import small_tree
from tests.fuzz.salvage import run_seed


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return small_tree(tmp_path_factory.mktemp("sound"))


@pytest.mark.parametrize("seed", [3, 4, 7, 11])
@pytest.mark.some(2)
def test_damage_makes_no_defect_and_nothing_outside_of_the_output(sound, tmp_path, seed):
    run_seed(seed, sound, tmp_path)
