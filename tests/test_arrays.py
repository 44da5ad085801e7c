"""One formula for NumPy, torch and any library of the array API."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special, stats

from attnknn.arrays import entropy, gather, namespace, one_hot, softmax

LIBRARIES = {"numpy": np.asarray, "torch": torch.asarray, "array_api_strict": array_api_strict.asarray}
SCORES = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=3, max_side=5), elements=st.floats(-900, 900))


@pytest.fixture(params=LIBRARIES)
def asarray(request):
    return LIBRARIES[request.param]


@st.composite
def rows_and_index(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    rows = draw(hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=4), elements=st.floats(-9, 9)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    kind = draw(st.sampled_from([np.int32, np.int64]))
    return rows, draw(hnp.arrays(kind, shape, elements=st.integers(0, len(rows) - 1)))


@given(rows_and_index())
def test_gather_is_fancy_indexing_in_every_library(case):
    rows, index = case
    for asarray in LIBRARIES.values():
        got = np.asarray(gather(asarray(rows), asarray(index)))
        assert got.shape == index.shape + rows.shape[1:]
        np.testing.assert_array_equal(got, rows[index])


def test_gather_refuses_a_row_that_is_not_there(asarray):
    with pytest.raises(IndexError):
        gather(asarray(np.zeros((3, 2))), asarray(np.array([0, 3])))


@given(hnp.arrays(np.int64, hnp.array_shapes(max_dims=3, max_side=4), elements=st.integers(0, 4)))
def test_one_hot_is_a_row_of_the_identity_in_every_library(labels):
    for asarray in LIBRARIES.values():
        got = one_hot(asarray(labels), 5, asarray(np.zeros(1, np.float32)).dtype)
        assert np.asarray(got).dtype == np.float32
        np.testing.assert_array_equal(np.asarray(got), np.eye(5)[labels])


def test_one_hot_of_no_class_is_zeros(asarray):
    labels = asarray(np.array([-1, 3]))
    assert not np.asarray(one_hot(labels, 3, asarray(np.zeros(1)).dtype)).any()


@given(SCORES, st.sampled_from([-1, 0, 1]))
def test_softmax_equals_scipy_and_sums_to_one_in_every_library(scores, axis):
    expected = special.softmax(scores, axis=axis)
    for asarray in LIBRARIES.values():
        weights = np.asarray(softmax(asarray(scores), axis=axis))
        np.testing.assert_allclose(weights, expected, atol=1e-12)
        np.testing.assert_allclose(weights.sum(axis=axis), 1, atol=1e-12)


@given(SCORES, st.floats(-50, 50))
def test_softmax_does_not_see_a_constant(scores, constant):
    np.testing.assert_allclose(softmax(scores + constant), softmax(scores), atol=1e-9)


def test_softmax_gives_nothing_to_minus_infinity(asarray):
    weights = softmax(asarray(np.array([[0.0, -np.inf, 0.0], [-np.inf, 5000.0, -np.inf]])))
    np.testing.assert_array_equal(np.asarray(weights), [[0.5, 0, 0.5], [0, 1, 0]])


@given(SCORES)
def test_entropy_equals_scipy_in_every_library(scores):
    weights = special.softmax(scores, axis=-1)
    for asarray in LIBRARIES.values():
        np.testing.assert_allclose(np.asarray(entropy(asarray(weights))), stats.entropy(weights, axis=-1), atol=1e-12)


def test_entropy_is_log_n_when_even_and_plain_zero_when_not(asarray):
    weights = asarray(np.array([[0.25] * 4, [0.0, 1.0, 0.0, 0.0]]))
    even, sure = np.asarray(entropy(weights))
    assert even == pytest.approx(np.log(4))
    assert str(float(sure)) == "0.0"
    assert np.asarray(entropy(weights, axis=0)).shape == (4,)


def test_gradients_pass_through_and_stay_finite_at_zero():
    scores = torch.tensor([[0.3, -torch.inf, 1.0]], dtype=torch.float64, requires_grad=True)
    entropy(softmax(scores)).sum().backward()
    weights = torch.softmax(scores.detach(), dim=-1)
    by_hand = -weights * (torch.log(weights.clamp(min=1e-300)) + entropy(weights)[:, None])
    torch.testing.assert_close(scores.grad, by_hand)

    keys = torch.ones(3, 2, requires_grad=True)
    gather(keys, torch.tensor([[0, 0], [2, 0]])).sum().backward()
    assert keys.grad is not None
    assert keys.grad.tolist() == [[3, 3], [0, 0], [1, 1]]


def test_types_are_kept(asarray):
    scores = asarray(np.zeros((2, 3), np.float32))
    assert softmax(scores).dtype == entropy(softmax(scores)).dtype == scores.dtype


def test_libraries_do_not_mix():
    with pytest.raises(TypeError):
        namespace(np.zeros(2), torch.zeros(2))
