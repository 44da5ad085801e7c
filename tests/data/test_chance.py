"""Numbers that hang on names alone, and are as good as random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnknn.data.chance import hash_to_units
from tests.data.oracles import slow_units

N = 20_000


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=8))
def test_units_equal_their_slow_twin(names):
    units = hash_to_units(names)
    assert units.shape == (len(names), 2)
    assert [tuple(row) for row in units.tolist()] == [slow_units(name) for name in names]


@pytest.fixture(scope="module")
def units() -> np.ndarray:
    return hash_to_units(f"0:item/{i}" for i in range(N))


def test_units_are_uniform(units):
    """Kolmogorov and Smirnov: a deviation of 1.95 / √N has a chance of one in a thousand."""
    for column in units.T:
        steps = (np.arange(N) + 0.5) / N
        assert np.abs(np.sort(column) - steps).max() < 1.95 / np.sqrt(N)
        assert 0 <= column.min() <= column.max() < 1


def test_units_of_a_name_neither_know_each_other_nor_another_seed(units):
    others = hash_to_units(f"1:item/{i}" for i in range(N))
    correlations = np.corrcoef(np.hstack([units, others]).T) - np.eye(4)
    assert np.abs(correlations).max() < 4 / np.sqrt(N)
