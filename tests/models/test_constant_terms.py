"""Law 6: a term constant over neighbors changes nothing; the original's label bias was one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnknn.models.attention import Attention, attend
from attnknn.models.terms import Surroundings, stack_features
from tests.strategies import NO_SINK, attentions, law, surroundings, temperatures


@law
@given(surroundings(), attentions(has_averages=False), st.floats(-50, 50), temperatures)
def test_a_term_constant_over_neighbors_changes_nothing(around: Surroundings, attention: Attention, theta, temperature):
    """Law 6: whatever it says about the query, the softmax over neighbors does not hear it."""
    features = stack_features(around, attention.terms, attention.metric)
    about_the_query = np.broadcast_to(around.distances.max(axis=1)[:, None, None], (*features[:, :1].shape,))
    more = replace(
        attention,
        terms=(*attention.terms, "constant"),
        coefficients=np.concatenate([attention.coefficients, np.full((len(attention.heads), 1), theta)], axis=1),
    )
    before = attend(around, attention, temperature)
    after = attend(around, more, temperature, np.concatenate([features, about_the_query], axis=1))
    for name in ("weights", "sink", "probabilities"):
        np.testing.assert_allclose(getattr(before, name), getattr(after, name), atol=1e-9)


@law
@given(surroundings(), st.integers(0, 2**32))
def test_the_original_label_bias_was_such_a_term(around: Surroundings, seed: int):
    """Law 6, the proof: a network read the labels of the neighbors and gave each *head* of a query one number.

    Of shape (B, H, 1, 1), added to scores of shape (B, H, 1, K) before a softmax over K: it moves no weight, and
    its own parameters get a gradient of zero (up to rounding). They were never trained.
    """
    n_heads, rng = 2, np.random.default_rng(seed)
    scores = torch.tensor(rng.normal(size=(len(around.distances), n_heads, 1, around.distances.shape[1])))
    labels = torch.nn.functional.one_hot(torch.asarray(around.labels), around.n_classes).double().mean(dim=1)
    torch.manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(around.n_classes, 4), torch.nn.ReLU(), torch.nn.Linear(4, n_heads))
    bias = network.double()(labels)[:, :, None, None]
    weights = torch.softmax(scores + bias, dim=-1)
    np.testing.assert_allclose(weights.detach(), torch.softmax(scores, dim=-1), atol=1e-12)
    loss = -torch.log(weights[..., 0]).sum()
    gradients = torch.autograd.grad(loss, list(network.parameters()))
    assert max(float(gradient.abs().max()) for gradient in gradients) < 1e-12


def test_agreement_says_what_the_label_bias_meant_to_say_and_is_heard():
    """The same counts of labels, but of each neighbor's own label: it varies over neighbors and moves weights."""
    labels = np.array([[0, 0, 0, 1]])
    around = Surroundings(np.ones((1, 4)), labels, *[np.zeros((1, 4))] * 2, np.ones((1, 2)), np.ones((1, 2)) / 2)
    terms = ("distance", "trust", "agreement")
    fitted = Attention(("trusted",), terms, np.array([[0, 0, 3.0]]), np.array([NO_SINK]))
    weights = attend(around, fitted).weights[0, 0]
    assert (weights[:3] > 0.3).all()
    assert weights[3] < 0.05
