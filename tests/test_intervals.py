"""Intervals and p-values: the normal ones for many items, and slow twins."""

import time
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_embedders_are_drawn_beside_seeds_and_items():
    rng = np.random.default_rng(0)
    a = rng.random((3, 4, 30)) + rng.normal(0, 0.3, (3, 1, 1)) + rng.normal(0, 0.3, (4, 1))
    b = rng.random((3, 4, 30))
    slow = []
    for _ in range(3000):
        embedders, seeds, items = (rng.integers(0, size, size) for size in a.shape)
        slow.append((a - b)[np.ix_(embedders, seeds, items)].mean())
    found = intervals.paired_interval(a, b, resamples=20_000)
    np.testing.assert_allclose(found, np.quantile(slow, [0.025, 0.975]), atol=0.03)
    one = intervals.paired_interval(a[:1], b[:1], seed=2)
    assert one == pytest.approx(intervals.paired_interval(a[0], b[0], seed=2))


def test_things_measured_together_are_drawn_together():
    values = np.random.default_rng(0).random((3, 2, 40))
    together = intervals.resampled_means(values, seed=5, resamples=300)
    assert together.shape == (3, 300)
    for row, alone in zip(together, values, strict=True):
        np.testing.assert_allclose(row, intervals.resampled_means(alone[None], seed=5, resamples=300)[0])
    low, high = intervals.paired_interval(values[0], values[1], seed=5, resamples=300)
    assert intervals.band(together[0] - together[1], 0.95) == pytest.approx((low, high))
    p = intervals.paired_p_value(values[0], values[1], seed=5, resamples=300)
    assert intervals.p_value(together[0] - together[1]) == p


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


# ---- P-values


def test_the_p_value_of_a_difference_is_the_normal_one_for_many_items():
    rng = np.random.default_rng(0)
    for shift in (0.0, 0.03, 0.08, -0.08):
        a, b = rng.normal(shift, 1, 1000), rng.normal(0, 0.5, 1000)
        z = (a - b).mean() / ((a - b).std() / np.sqrt(1000))
        expected = 2 * NormalDist().cdf(-abs(z))
        assert intervals.paired_p_value(a, b, resamples=8000) == pytest.approx(expected, abs=0.03)


def test_the_p_value_resamples_items_and_seeds():
    rng = np.random.default_rng(1)
    a = rng.random((4, 30)) + 0.12 + rng.normal(0, 0.1, (4, 1))
    b = rng.random((4, 30))
    slow = np.array(oracles.paired_means(a, b, 3000))
    expected = 2 * min(np.mean(slow <= 0), np.mean(slow >= 0))
    assert 0.02 < expected < 0.9
    assert intervals.paired_p_value(a, b, resamples=8000) == pytest.approx(expected, abs=0.04)


def test_the_p_value_agrees_with_the_interval():
    rng, sides = np.random.default_rng(2), set()
    for _ in range(200):
        a, b = rng.normal(0.25, 1, 60), rng.normal(0, 1, 60)
        p = intervals.paired_p_value(a, b, seed=4, resamples=500)
        low, high = intervals.paired_interval(a, b, level=0.9, seed=4, resamples=500)
        if abs(p - 0.1) > 0.01:
            sides.add(p < 0.1)
            assert (p < 0.1) == (not low <= 0 <= high)
    assert sides == {True, False}


def test_a_p_value_below_five_percent_comes_by_chance_about_one_time_in_twenty():
    rng = np.random.default_rng(3)
    found = [intervals.paired_p_value(*rng.random((2, 150)), resamples=400) for _ in range(400)]
    assert 8 <= sum(p <= 0.05 for p in found) <= 36
    assert np.mean(found) == pytest.approx(0.5, abs=0.05)


def test_p_values_do_not_depend_on_who_is_named_first_nor_vanish():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 3, 40))
    assert intervals.paired_p_value(a, b) == intervals.paired_p_value(b, a)
    assert intervals.paired_p_value(a, a) == 1
    assert intervals.paired_p_value(a + 5, b, resamples=99) == 2 / 100


@given(st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.012, 0.04, 0.3, 1.0]), max_size=6), st.randoms())
def test_holm_is_bonferroni_in_every_family_that_holds_the_claim(p_values, random):
    """Marcus, Peritz and Gabriel (1976): a claim is believed if every set of claims with it is."""
    claims = range(len(p_values))
    families = [family for size in claims for family in combinations(claims, size + 1)]
    expected = [
        max(min(1.0, len(family) * min(p_values[one] for one in family)) for family in families if claim in family)
        for claim in claims
    ]
    found = intervals.holm(p_values)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    assert np.all(found >= p_values)
    shuffled = random.sample([*claims], len(claims))
    assert intervals.holm([p_values[claim] for claim in shuffled]).tolist() == found[shuffled].tolist()


def test_holm_by_hand():
    assert intervals.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert intervals.holm([0.7, 0.6]).tolist() == [1, 1]
    assert intervals.holm([0.2]).tolist() == [0.2]


# ---- Impossible arguments


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: intervals.bootstrap_interval([]), "values must be finite numbers, at least one"),
        (lambda: intervals.bootstrap_interval([np.nan]), "values must be finite numbers"),
        (lambda: intervals.bootstrap_interval([[1.0]]), "values must be of shape"),
        (lambda: intervals.bootstrap_interval([1.0], level=95), "level must be between 0 and 1"),
        (lambda: intervals.paired_interval([1.0], [1.0, 2.0]), "a and b must share a shape"),
        (lambda: intervals.paired_interval([[[[1.0]]]], [[[[1.0]]]]), "a and b must share a shape"),
        (lambda: intervals.resampled_means([1.0, 2.0]), "values must be finite numbers"),
        (lambda: intervals.resampled_means(np.zeros((0, 3))), "values must be finite numbers"),
        (lambda: intervals.paired_p_value([1.0], [1.0, 2.0]), "a and b must share a shape"),
        (lambda: intervals.paired_p_value([1.0], [np.inf]), "values must be finite numbers"),
        (lambda: intervals.paired_p_value([1.0], [1.0], resamples=0), "resamples must be at least 1"),
        (lambda: intervals.holm([0.5, 1.5]), "p_values must be of shape"),
        (lambda: intervals.holm([0.5, np.nan]), "p_values must be of shape"),
        (lambda: intervals.holm([[0.5]]), "p_values must be of shape"),
    ],
)
def test_impossible_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "however:" in str(error.value)
