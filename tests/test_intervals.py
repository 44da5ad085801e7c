"""Intervals: the normal one for many items, and a slow twin that resamples."""

import time

import numpy as np
import pytest

from attnknn import intervals
from tests import oracles


def test_the_interval_of_a_mean_is_the_normal_one_for_many_items():
    values = np.random.default_rng(0).normal(3, 2, 4000)
    low, high = intervals.bootstrap_interval(values)
    half = 1.96 * values.std() / np.sqrt(len(values))
    np.testing.assert_allclose([low, high], [values.mean() - half, values.mean() + half], atol=0.1 * half)


def test_an_interval_holds_the_truth_about_nineteen_times_in_twenty():
    rng = np.random.default_rng(1)
    found = [intervals.bootstrap_interval(rng.random(200) < 0.8, resamples=500) for _ in range(200)]
    assert 180 <= sum(low <= 0.8 <= high for low, high in found) <= 199


def test_the_paired_interval_of_one_seed_is_the_interval_of_the_difference():
    a, b = np.random.default_rng(0).random((2, 100))
    expected = intervals.bootstrap_interval(a - b, seed=3)
    assert intervals.paired_interval(a, b, seed=3) == expected
    assert intervals.paired_interval(a[None], b[None], seed=3) == expected


def test_the_paired_interval_resamples_items_and_seeds():
    rng = np.random.default_rng(0)
    a = rng.random((4, 30)) + rng.normal(0, 0.3, (4, 1)) + rng.normal(0, 0.3, 30)
    b = rng.random((4, 30))
    low, high = intervals.paired_interval(a, b, resamples=20_000)
    slow_low, slow_high = np.quantile(oracles.paired_means(a, b, 3000), [0.025, 0.975])
    assert low == pytest.approx(slow_low, abs=0.03)
    assert high == pytest.approx(slow_high, abs=0.03)


def test_seeds_that_differ_widen_the_interval_and_equal_seeds_do_not():
    rng = np.random.default_rng(0)
    a = rng.random(200)
    one_low, one_high = intervals.paired_interval(a, np.zeros(200))
    same_low, same_high = intervals.paired_interval(np.tile(a, (5, 1)), np.zeros((5, 200)))
    assert same_high - same_low == pytest.approx(one_high - one_low, rel=0.1)
    apart = a + np.array([[-0.4], [-0.2], [0], [0.2], [0.4]])
    apart_low, apart_high = intervals.paired_interval(apart, np.zeros((5, 200)))
    assert apart_high - apart_low > 3 * (one_high - one_low)


def test_pairing_removes_what_items_have_in_common():
    rng = np.random.default_rng(0)
    difficulty = rng.normal(0, 5, 500)
    a, b = difficulty + 0.5 + rng.normal(0, 1, 500), difficulty + rng.normal(0, 1, 500)
    low, high = intervals.paired_interval(a, b)
    assert 0 < low < 0.5 < high
    assert intervals.paired_interval(a, a) == (0.0, 0.0)


def test_draws_are_named_by_their_seed():
    values = np.random.default_rng(0).random(50)
    assert intervals.bootstrap_interval(values, seed=1) == intervals.bootstrap_interval(values, seed=1)
    assert intervals.bootstrap_interval(values, seed=1) != intervals.bootstrap_interval(values, seed=2)
    narrow, wide = intervals.bootstrap_interval(values, 0.5), intervals.bootstrap_interval(values, 0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_ten_thousand_items_are_resampled_in_a_moment():
    values = np.random.default_rng(0).random((5, 10_000))
    start = time.process_time()
    intervals.paired_interval(values, values[::-1])
    assert time.process_time() - start < 1.5


# ---- Impossible arguments


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: intervals.bootstrap_interval([]), "values must be finite numbers, at least one"),
        (lambda: intervals.bootstrap_interval([np.nan]), "values must be finite numbers"),
        (lambda: intervals.bootstrap_interval([[1.0]]), "values must be of shape"),
        (lambda: intervals.bootstrap_interval([1.0], level=95), "level must be between 0 and 1"),
        (lambda: intervals.paired_interval([1.0], [1.0, 2.0]), "a and b must share a shape"),
        (lambda: intervals.paired_interval([[[1.0]]], [[[1.0]]]), "a and b must share a shape"),
    ],
)
def test_impossible_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "however:" in str(error.value)
