"""The bundle: arrays whose shapes fit together, and queries that can be cut and joined."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from attnknn.bank import search_exact
from attnknn.bundle import POOL, SHAPES, Queries, open_bundle
from attnknn.checkpoints import Checkpoint, open_checkpoint, save_checkpoint
from attnknn.classifier import AttnKNN
from attnknn.errors import DamagedCheckpoint
from tests.strategies import lattice_classifier


def saved(toy: AttnKNN, tmp_path: Path, **changes: np.ndarray | None) -> Checkpoint:
    arrays = {**toy.bundle.arrays, **changes}
    kept = {name: array for name, array in arrays.items() if array is not None}
    return save_checkpoint("toy", toy.card, {"w": np.ones(1)}, kept, tmp_path)


@pytest.fixture(scope="module")
def toy() -> AttnKNN:
    return lattice_classifier()


def test_a_bundle_that_fits_opens(toy: AttnKNN, tmp_path: Path):
    bundle = open_bundle(saved(toy, tmp_path))
    assert bundle.class_names == toy.class_names
    assert {*bundle.arrays} == {*SHAPES}
    np.testing.assert_array_equal(bundle.entries.ids, toy.entries.ids)
    np.testing.assert_array_equal(bundle.queries.pool.entries, toy.queries.pool.entries)


def test_more_arrays_than_are_known_do_no_harm(toy: AttnKNN, tmp_path: Path):
    assert "later_idea" in open_bundle(saved(toy, tmp_path, later_idea=np.ones(3))).arrays


@pytest.mark.parametrize("name", SHAPES)
def test_a_missing_array_is_named(name: str, toy: AttnKNN, tmp_path: Path):
    axes = re.escape(SHAPES[name][1].replace(" ", ", "))
    with pytest.raises(DamagedCheckpoint, match=rf"must hold {name} of shape \({axes}\). It is missing. Restore"):
        open_bundle(saved(toy, tmp_path, **{name: None}))


@pytest.mark.parametrize("name", sorted({*SHAPES} - {"entry_ids", "query_ids"}))
def test_an_array_of_another_length_is_named(name: str, toy: AttnKNN, tmp_path: Path):
    array = toy.bundle.arrays[name]
    with pytest.raises(DamagedCheckpoint, match=r"The bundle must hold \w+ of shape .* It is \S+ of shape \("):
        open_bundle(saved(toy, tmp_path, **{name: array[:-1]}))
    for wrong in (array[..., None] if SHAPES[name][1][-1] != "*" else array.ravel(), np.array(array.flat[0])):
        with pytest.raises(DamagedCheckpoint, match=f"The bundle must hold {name} "):
            open_bundle(saved(toy, tmp_path, **{name: wrong}))


@pytest.mark.parametrize("name", SHAPES)
def test_an_array_of_another_kind_is_named(name: str, toy: AttnKNN, tmp_path: Path):
    wrong = toy.bundle.arrays[name]
    wrong = np.zeros(wrong.shape, np.complex64) if SHAPES[name][0] != "S" else np.zeros(wrong.shape)
    with pytest.raises(DamagedCheckpoint, match=f"The bundle must hold {name} .* It is {wrong.dtype}"):
        open_bundle(saved(toy, tmp_path, **{name: wrong}))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("entry_labels", 3),
        ("entry_labels", -1),
        ("query_labels", 3),
        ("query_neighbors", 40),
        ("query_neighbors", -1),
        ("entry_neighborhoods", 40),
        ("entry_neighborhoods", -2),
    ],
)
def test_numbers_that_point_outside_are_refused(name: str, number: int, toy: AttnKNN, tmp_path: Path):
    array = toy.bundle.arrays[name].copy()
    array.flat[1] = number
    with pytest.raises(DamagedCheckpoint, match=f"{name} must lie between .* They reach from"):
        open_bundle(saved(toy, tmp_path, **{name: array}))


def test_the_trained_bundle_is_laid_out_as_described(iris: AttnKNN, shelf: Path):
    bundle = open_bundle(open_checkpoint("iris", shelf))
    entries, queries = bundle.entries, bundle.queries
    assert queries.pool.k == min(POOL, len(entries))
    assert (queries.groups == -1).all()
    np.testing.assert_allclose(np.linalg.norm(entries.keys, axis=1), 1, atol=1e-6)
    assert (np.diff(queries.pool.distances, axis=1) >= 0).all()
    confusion = bundle.arrays["class_confusion"]
    np.testing.assert_allclose(confusion.sum(axis=1), 1, atol=1e-6)
    assert (np.diag(confusion) == 0).all()
    for item in (str(entries.ids[3]), str(queries.ids[5])):
        kind, row = bundle.rows[item]
        np.testing.assert_array_equal(bundle.input_of(item), iris.bundle.arrays[f"{kind}_inputs"][row])
    assert len(bundle.rows) == len(entries) + len(queries)


def test_queries_are_cut_and_joined_without_loss(toy: AttnKNN):
    queries, rows = toy.queries, np.array([4, 0, 4])
    some = queries.take(rows)
    again = Queries.join([queries.take(np.array([row])) for row in rows])
    for one in (some, again):
        assert one.ids.tolist() == queries.ids[rows].tolist()
        for name in ("keys", "logits", "labels", "groups"):
            np.testing.assert_array_equal(getattr(one, name), getattr(queries, name)[rows])
        np.testing.assert_array_equal(one.pool.entries, queries.pool.entries[rows])
        np.testing.assert_array_equal(one.pool.distances, queries.pool.distances[rows])


def test_joined_queries_keep_their_own_pools(toy: AttnKNN):
    queries = toy.queries
    short = Queries(queries.ids, queries.keys, queries.pool.first(5), queries.logits, queries.labels, queries.groups)
    joined = Queries.join([queries, short])
    assert (len(joined), joined.pool.k) == (24, queries.pool.k)
    np.testing.assert_array_equal(joined.pool.entries[:12], queries.pool.entries)
    np.testing.assert_array_equal(joined.pool.entries[12:, :5], queries.pool.entries[:, :5])
    assert (joined.pool.entries[12:, 5:] == -1).all()
    assert np.isinf(joined.pool.distances[12:, 5:]).all()


def test_stored_distances_are_the_six_digits_that_were_found(iris: AttnKNN, shelf: Path):
    bundle = open_bundle(open_checkpoint("iris", shelf))
    entries, queries = bundle.entries, bundle.queries
    found = search_exact(entries.keys, queries.keys, queries.pool.k, entries.ids)
    np.testing.assert_array_equal(queries.pool.distances, found.distances)
    assert all(len(repr(distance)) <= len("1.234567") for distance in queries.pool.distances.ravel().tolist())
