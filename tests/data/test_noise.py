"""Law 7: label noise is nested, fixed per item and seed, and exact in expectation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from attnknn.config import NOISE_KINDS, LabelNoise
from attnknn.data import NoiseDraws, draw_noise, flip_labels
from tests.data.oracles import slow_flip

RATES = st.floats(0, 1)
SEEDS = st.integers(0, 2**31)


@st.composite
def noisy_worlds(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, LabelNoise, int]:
    n_classes = draw(st.integers(2, 6))
    labels = np.array(draw(st.lists(st.integers(0, n_classes - 1), min_size=1, max_size=40)))
    ids = np.array([f"world/train/{i}" for i in range(len(labels))])
    row = st.tuples(*[st.sampled_from([0.0, 0.1, 1.0, 7.5])] * n_classes)
    kind = draw(st.sampled_from(NOISE_KINDS))
    matrix = draw(st.tuples(*[row] * n_classes)) if kind == "matrix" else None
    return ids, labels, LabelNoise(kind, draw(RATES), draw(SEEDS), matrix), n_classes


def observe(ids, labels, noise, n_classes, rate=None):
    noise = noise if rate is None else LabelNoise(noise.kind, rate, noise.seed, noise.matrix)
    return flip_labels(labels, draw_noise(ids, noise.seed), noise, n_classes)


@given(noisy_worlds())
def test_flips_equal_their_slow_twin(world):
    ids, labels, noise, n_classes = world
    draws = draw_noise(ids, noise.seed)
    expected = [slow_flip(*item, noise, n_classes) for item in zip(labels, draws.u, draws.v, strict=True)]
    assert observe(*world).tolist() == expected


@given(noisy_worlds(), RATES)
def test_a_larger_rate_only_adds_flips_and_keeps_every_flipped_label(world, other):
    ids, labels, noise, n_classes = world
    less, more = sorted([noise.rate, other])
    few, many = (observe(ids, labels, noise, n_classes, rate) for rate in (less, more))
    flipped = few != labels
    assert (many[flipped] == few[flipped]).all()


@given(noisy_worlds())
def test_an_item_is_flipped_exactly_when_its_draw_is_below_the_rate(world):
    ids, labels, noise, _ = world
    assume(noise.kind != "matrix")
    flipped = observe(*world) != labels
    assert (flipped == (draw_noise(ids, noise.seed).u < noise.rate)).all()


@given(noisy_worlds())
def test_rate_0_changes_nothing_and_rate_1_leaves_no_label(world):
    ids, labels, noise, n_classes = world
    assert (observe(ids, labels, noise, n_classes, rate=0.0) == labels).all()
    if noise.kind != "matrix":
        assert (observe(ids, labels, noise, n_classes, rate=1.0) != labels).all()


@given(noisy_worlds(), st.randoms(use_true_random=False))
def test_neither_the_order_of_items_nor_their_company_matters(world, random):
    ids, labels, noise, n_classes = world
    order = random.sample(range(len(ids)), k=random.randint(1, len(ids)))
    alone = observe(ids[order], labels[order], noise, n_classes)
    assert (alone == observe(*world)[order]).all()


@given(noisy_worlds(), st.sampled_from([np.int64, np.int32, np.uint8]))
def test_observed_labels_are_classes_of_the_same_type(world, dtype):
    ids, labels, noise, n_classes = world
    observed = observe(ids, labels.astype(dtype), noise, n_classes)
    assert observed.dtype == dtype
    assert observed.max() < n_classes
    assert (observed == observe(*world)).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rate", [0.05, 0.3, 0.6, 0.95])
def test_a_sample_keeps_the_rate_within_binomial_bounds(rate, seed):
    n = 10_000
    u = draw_noise([f"digits/train/{i}" for i in range(n)], seed).u
    assert abs((u < rate).mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / n)


def even_draws(n_u: int, n_v: int) -> NoiseDraws:
    """Every combination of evenly spaced draws: expectation instead of chance."""
    u, v = np.meshgrid((np.arange(n_u) + 0.5) / n_u, (np.arange(n_v) + 0.5) / n_v)
    return NoiseDraws(u.ravel(), v.ravel())


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.25, 0.7, 1.0])
@pytest.mark.parametrize("clean", range(4))
def test_symmetric_noise_is_exact_in_expectation(rate, clean):
    draws = even_draws(100, 30)
    observed = flip_labels(np.full(3000, clean), draws, LabelNoise("symmetric", rate), 4)
    expected = [3000 * (1 - rate) if c == clean else 3000 * rate / 3 for c in range(4)]
    assert np.bincount(observed, minlength=4) == pytest.approx(expected)


def test_matrix_noise_follows_its_row_and_ignores_the_diagonal():
    matrix = ((9.0, 1.0, 3.0), (2.0, 0.5, 0.0), (0.0, 0.0, 4.0))
    counts = [
        np.bincount(flip_labels(np.full(2000, c), even_draws(50, 40), LabelNoise("matrix", 0.6, 0, matrix), 3))
        for c in range(3)
    ]
    assert [row.tolist() for row in counts] == [[800, 300, 900], [1200, 800], [0, 0, 2000]]


def test_two_seeds_flip_different_items():
    ids = [f"digits/train/{i}" for i in range(200)]
    first, second = (draw_noise(ids, seed).u < 0.5 for seed in (0, 1))
    assert 60 < (first != second).sum() < 140


def test_draws_are_the_same_on_every_machine():
    draws = draw_noise(["digits/train/0", "iris/test/3"], seed=7)
    assert draws.u.tolist() == [0.7224593337324015, 0.18731055292000331]
    assert draws.v.tolist() == [0.4469848728342457, 0.5609810214266766]


@pytest.mark.parametrize(
    ("labels", "noise", "n_classes", "sentence"),
    [
        ([0, 1], LabelNoise(), 1, "n_classes must be at least 2"),
        ([0, 1, 1], LabelNoise(), 2, "must have one shape"),
        ([0, 2], LabelNoise(), 2, r"labels must be in 0\.\.1, however: 0\.\.2"),
        ([0, -1], LabelNoise(), 2, r"however: -1\.\.0"),
        ([0, 1], LabelNoise("matrix"), 2, "matrix must be 2 rows"),
        ([0, 1], LabelNoise("matrix", matrix=((0, 1), (-1, 0))), 2, "non-negative"),
        ([0, 1], LabelNoise("matrix", matrix=((0, 1, 0), (1, 0, 0))), 2, "matrix must be 2 rows of 2"),
    ],
)
def test_what_does_not_fit_is_refused(labels, noise, n_classes, sentence):
    with pytest.raises(ValueError, match=sentence):
        flip_labels(np.array(labels), even_draws(2, 1), noise, n_classes)
