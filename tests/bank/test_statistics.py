"""What a bank knows of its entries: each number against its slow twin, in every array library."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnknn.bank import (
    agreement_counts,
    contrast,
    dissent,
    entry_neighborhoods,
    hubness,
    keeps_label,
    prototypes,
    trust,
    trust_of_neighbors,
)
from tests import oracles
from tests.bank.worlds import World, cloud, law, worlds

LIBRARIES = {"numpy": np.asarray, "torch": torch.asarray, "array_api_strict": array_api_strict.asarray}
SIZES = st.integers(1, 6)


@pytest.fixture(params=LIBRARIES, scope="module")
def asarray(request):
    return LIBRARIES[request.param]


def around(world: World, size: int = 8) -> np.ndarray:
    return entry_neighborhoods(world.keys, world.ids, world.groups, size)


@law
@given(world=worlds(), size=SIZES)
def test_trust_equals_its_slow_twin(asarray, world: World, size: int):
    neighborhoods = around(world)
    got = np.asarray(trust(asarray(neighborhoods), asarray(world.labels), size))
    expected = [oracles.trust(neighborhoods, world.labels, row, size) for row in range(world.n)]
    np.testing.assert_allclose(got, expected, atol=1e-12)
    assert got.dtype == np.float64


@law
@given(world=worlds(), size=SIZES)
def test_agreement_counts_are_bounded_and_counted_right(asarray, world: World, size: int):
    neighborhoods = around(world)
    a, n = (np.asarray(x) for x in agreement_counts(asarray(neighborhoods), asarray(world.labels), size))
    for row in range(world.n):
        members = oracles.neighborhood(neighborhoods, row, size)
        assert n[row] == len(members)
        assert a[row] == sum(world.labels[i] == world.labels[row] for i in members)


@law
@given(world=worlds(), size=SIZES)
def test_dissent_is_the_share_of_near_pairs_with_different_labels(asarray, world: World, size: int):
    neighborhoods = around(world)
    pairs = [(j, i) for j in range(world.n) for i in oracles.neighborhood(neighborhoods, j, size)]
    expected = np.mean([world.labels[j] != world.labels[i] for j, i in pairs]) if pairs else 0
    assert dissent(asarray(neighborhoods), asarray(world.labels), size) == pytest.approx(expected, abs=1e-12)


def test_dissent_tells_a_noisy_bank_from_a_quiet_one():
    world, rng = cloud(600, 1), np.random.default_rng(1)
    found = []
    for rate in (0, 0.2, 0.4, 0.8):
        labels = np.where(rng.random(600) < rate, (world.labels + rng.integers(1, 10, 600)) % 10, world.labels)
        found.append(dissent(around(world, 24), labels))
    assert (np.diff(found) > 0.1).all()


@law
@given(world=worlds(min_entries=5), size=SIZES, data=st.data())
def test_a_query_does_not_vouch_for_its_neighbors(asarray, world: World, size: int, data: st.DataObject):
    """Leave two out: entries as queries, each with its duplicate group taken out of the neighborhoods."""
    neighborhoods = around(world)
    own = np.array(data.draw(st.lists(st.integers(-1, int(world.groups.max())), min_size=3, max_size=3)))
    entries = np.array(data.draw(st.lists(st.integers(0, world.n - 1), min_size=6, max_size=6))).reshape(3, 2)
    arrays = [asarray(x) for x in (entries, neighborhoods, world.labels, world.groups, own)]
    got = np.asarray(trust_of_neighbors(*arrays, size))
    for b, k in np.ndindex(3, 2):
        twin = oracles.trust(neighborhoods, world.labels, entries[b, k], size, world.groups, own[b])
        assert got[b, k] == pytest.approx(twin, abs=1e-12)


@law
@given(world=worlds(), size=SIZES)
def test_for_a_query_outside_the_bank_trust_is_the_entrys_own(asarray, world: World, size: int):
    entries = np.arange(world.n).reshape(1, -1)
    arrays = [asarray(x) for x in (entries, around(world), world.labels, world.groups, np.array([-1]))]
    got = np.asarray(trust_of_neighbors(*arrays, size))
    assert (got[0] == np.asarray(trust(arrays[1], arrays[2], size))).all()


def test_the_label_of_a_query_does_not_reach_the_trust_of_its_neighbors():
    """The leak that leave-two-out closes, shown: a query relabels itself, and nobody's trust moves."""
    world = cloud(200, 1)
    neighborhoods = around(world, 24)
    entries = neighborhoods[:50, :16]
    own = world.groups[:50]
    before = trust_of_neighbors(entries, neighborhoods, world.labels, world.groups, own)
    for query in range(50):
        labels = world.labels.copy()
        labels[query] = (labels[query] + 1) % 10
        after = trust_of_neighbors(entries, neighborhoods, labels, world.groups, own)[query]
        assert (after == before[query]).all()
    assert (trust(neighborhoods, labels)[entries] != trust(neighborhoods, world.labels)[entries]).any()


def test_trust_finds_flipped_labels():
    world = cloud(600, 1)
    rng = np.random.default_rng(1)
    flipped = rng.random(600) < 0.3
    labels = np.where(flipped, (world.labels + rng.integers(1, 10, 600)) % 10, world.labels)
    scores = trust(around(world, 24), labels)
    assert np.mean(scores[flipped][:, None] < scores[~flipped][None, :]) > 0.95
    assert scores.max() <= np.log(20.5 / 0.5)


@law
@given(world=worlds(), size=SIZES)
def test_editing_equals_its_slow_twin(asarray, world: World, size: int):
    neighborhoods = around(world)
    got = np.asarray(keeps_label(asarray(neighborhoods), asarray(world.labels), 3, size))
    assert got.tolist() == [oracles.keeps_label(neighborhoods, world.labels, row, size) for row in range(world.n)]


def test_editing_keeps_a_label_that_ties_and_one_without_neighbors():
    neighborhoods = np.array([[1, 2], [2, 3], [3, 1], [-1, -1]])
    labels = np.array([0, 0, 1, 1])
    assert keeps_label(neighborhoods, labels, 2).tolist() == [True, False, True, True]


@law
@given(world=worlds(), seed=st.integers(0, 99))
def test_only_those_who_count_are_averaged(asarray, world: World, seed: int):
    counted = np.random.default_rng(seed).random(world.n) < 0.5
    got = np.asarray(prototypes(asarray(world.keys), asarray(world.labels), 4, asarray(counted)))
    for c in range(4):
        np.testing.assert_allclose(got[c], oracles.prototype(world.keys, world.labels, c, counted), atol=1e-6)


@law
@given(world=worlds())
def test_prototypes_are_unit_means_or_zero(asarray, world: World):
    got = np.asarray(prototypes(asarray(world.keys), asarray(world.labels), 4))
    for c in range(4):
        np.testing.assert_allclose(got[c], oracles.prototype(world.keys, world.labels, c), atol=1e-6)
    assert (got[3] == 0).all()
    lengths = np.linalg.norm(got, axis=1)
    assert ((abs(lengths - 1) < 1e-9) | (lengths == 0)).all()


@law
@given(world=worlds())
def test_contrast_equals_its_slow_twin(asarray, world: World):
    keys, labels = asarray(world.keys), asarray(world.labels)
    got = np.asarray(contrast(keys, labels, prototypes(keys, labels, 3)))
    expected = [oracles.contrast(world.keys, world.labels, 3, row) for row in range(world.n)]
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_contrast_needs_a_rival():
    with pytest.raises(ValueError, match="at least two classes"):
        contrast(np.eye(2), np.array([0, 0]), np.ones((1, 2)))


@law
@given(world=worlds(), k=SIZES)
def test_hubness_counts_who_is_named(world: World, k: int):
    neighborhoods = around(world)
    got = hubness(neighborhoods, k)
    assert got.tolist() == [oracles.hubness(neighborhoods, row, k) for row in range(world.n)]
    assert got.sum() == (neighborhoods[:, :k] >= 0).sum()


@law
@given(worlds(), st.randoms(use_true_random=False))
def test_statistics_do_not_depend_on_the_order_of_the_bank(world: World, random):
    order = np.array(random.sample(range(world.n), world.n))
    other = world.shuffled(order)
    one, two = around(world), around(other)
    assert (trust(one, world.labels, 4)[order] == trust(two, other.labels, 4)).all()
    assert dissent(one, world.labels, 4) == dissent(two, other.labels, 4)
    assert (keeps_label(one, world.labels, 3, 4)[order] == keeps_label(two, other.labels, 3, 4)).all()
    assert (hubness(one, 4)[order] == hubness(two, 4)).all()
