"""Terms: each against its slow twin in every array library, and what it may and may not look at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnknn.models.terms import TERMS, Surroundings, reads_keys, relative_distance, stack_features
from tests import oracles
from tests.conftest import LIBRARIES
from tests.strategies import DIMENSION, convert, law, surroundings

METRIC = np.random.default_rng(5).normal(size=(2, DIMENSION))


@pytest.mark.parametrize("name", TERMS)
@law
@given(around=surroundings())
def test_a_term_equals_its_slow_twin_in_every_library(name: str, around: Surroundings):
    """Law 9, term by term."""
    expected = [oracles.term(name, around, b, METRIC) for b in range(len(around.distances))]
    for asarray in LIBRARIES.values():
        got = TERMS[name].feature(convert(around, asarray), asarray(METRIC))
        np.testing.assert_allclose(np.asarray(got), expected, atol=1e-9)


@law
@given(surroundings(), st.permutations(sorted(TERMS)))
def test_features_are_stacked_in_the_order_asked_for(around: Surroundings, names: list[str]):
    stacked = stack_features(around, names, METRIC)
    assert stacked.shape == (len(around.distances), len(names), around.distances.shape[1])
    for place, name in enumerate(names):
        np.testing.assert_array_equal(stacked[:, place], TERMS[name].feature(around, METRIC))


@pytest.mark.parametrize("name", sorted(TERMS))
@law
@given(around=surroundings(), seed=st.integers(0, 99))
def test_only_terms_that_say_so_read_labels(name: str, around: Surroundings, seed: int):
    """Coefficients of terms that read labels are kept non-negative, so the claim has to be true."""
    rng = np.random.default_rng(seed)
    other = replace(
        around,
        labels=rng.integers(0, around.n_classes, around.labels.shape),
        trust=rng.normal(size=around.trust.shape),
        contrast=rng.normal(size=around.contrast.shape),
    )
    before, after = (TERMS[name].feature(one, METRIC) for one in (around, other))
    if not TERMS[name].reads_labels:
        np.testing.assert_array_equal(before, after)
    elif name != "agreement":
        assert (before != after).any()


@pytest.mark.parametrize("name", sorted({*TERMS} - {"rank"}))
@law
@given(around=surroundings(), random=st.randoms(use_true_random=False))
def test_a_term_follows_its_neighbor_whatever_the_order_of_the_list(name: str, around: Surroundings, random):
    """Law 2: only `rank` looks at the order, and that is broken by id before it comes here."""
    k = around.distances.shape[1]
    order = np.array(random.sample(range(k), k))
    fields = ("distances", "labels", "trust", "contrast", "keys")
    other = replace(around, **{field: getattr(around, field)[:, order] for field in fields})
    before, after = (TERMS[name].feature(one, METRIC) for one in (around, other))
    np.testing.assert_allclose(before[:, order], after, atol=1e-12)


@law
@given(surroundings())
def test_closeness_has_mean_minus_one_unless_all_coincide(around: Surroundings):
    mean = relative_distance(around).mean(axis=1)
    np.testing.assert_allclose(mean, np.where(around.distances.sum(axis=1) > 0, -1, 0), atol=1e-12)


def test_coinciding_neighbors_are_all_equally_close():
    around = Surroundings(np.zeros((1, 4)), *[np.zeros((1, 4), int)] * 3, np.ones((1, 2)), np.ones((1, 2)) / 2)
    np.testing.assert_array_equal(relative_distance(around), np.zeros((1, 4)))


@law
@given(surroundings(k=1))
def test_a_single_neighbor_has_no_fellows_to_agree_with(around: Surroundings):
    for name in ("agreement", "fellows", "rank"):
        np.testing.assert_array_equal(TERMS[name].feature(around, METRIC), np.zeros_like(around.distances))


def test_agreement_counts_only_the_others():
    around = Surroundings(np.ones((1, 4)), np.array([[2, 2, 0, 2]]), *[np.zeros((1, 4))] * 4)
    np.testing.assert_allclose(TERMS["agreement"].feature(around, None), [[2 / 3, 2 / 3, 0, 2 / 3]])


@law
@given(surroundings())
def test_a_rotation_of_the_sphere_changes_no_term(around: Surroundings):
    """The metric turns with it; everything else is distances and angles."""
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(DIMENSION, DIMENSION)))[0]
    other = replace(around, queries=around.queries @ turn, keys=around.keys @ turn)
    for term in TERMS.values():
        np.testing.assert_allclose(term.feature(around, METRIC), term.feature(other, METRIC @ turn), atol=1e-9)


def test_terms_on_keys_say_that_they_need_them():
    around = Surroundings(np.ones((1, 2)), np.zeros((1, 2), int), *[np.zeros((1, 2))] * 4)
    for name in TERMS:
        if reads_keys([name]):
            with pytest.raises(ValueError, match=f"the {name} term needs"):
                TERMS[name].feature(around, METRIC)
        else:
            assert TERMS[name].feature(around, None).shape == (1, 2)
    assert reads_keys(["distance", "content"])
    assert not reads_keys([])


def test_every_term_can_be_shown():
    for term in TERMS.values():
        assert term.formula
        assert term.why.endswith(".")
