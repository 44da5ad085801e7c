"""The whole pipeline: from an id or an input to votes, and the laws of who may vote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnknn.bank import search_exact
from attnknn.bank.entries import observe, surround
from attnknn.bundle import POOL, Bundle
from attnknn.classifier import AttnKNN, load
from attnknn.config import LabelNoise
from attnknn.data import draw_noise, flip_labels
from attnknn.errors import DamagedCheckpoint, InputError, SettingError, UnknownItem
from attnknn.models.attention import attend
from attnknn.prediction import Prediction
from attnknn.votes import COMPARED
from tests import oracles
from tests.strategies import convert, lattice_classifier, law, noises

NOISE = LabelNoise("symmetric", 0.4, seed=2)


@pytest.fixture(scope="module")
def toy() -> AttnKNN:
    return lattice_classifier()


def same_votes(one: Prediction, two: Prediction, tolerance: float) -> None:
    for vote in COMPARED:
        np.testing.assert_allclose(one.ballot.calibrated[vote], two.ballot.calibrated[vote], atol=tolerance, rtol=0)


# ---- Law 2: order


@law
@given(order=st.permutations(range(40)), noise=noises, k=st.integers(1, 20))
def test_the_order_of_the_bank_changes_no_vote(toy: AttnKNN, order: list[int], noise: LabelNoise, k: int):
    """Law 2, from search to calibrated votes, on a bank full of ties and with every kind of noise."""
    other = lattice_classifier(order=np.array(order))
    one, two = toy.predict_items(k=k, noise=noise), other.predict_items(k=k, noise=noise)
    np.testing.assert_array_equal(toy.entries.ids[one.neighbors], other.entries.ids[two.neighbors])
    same_votes(one, two, 1e-9)


@settings(max_examples=10, deadline=None)
@given(order=st.permutations(range(40)), noise=noises)
def test_the_order_of_the_bank_changes_no_vote_on_an_entry(toy: AttnKNN, order: list[int], noise: LabelNoise):
    other, ids = lattice_classifier(order=np.array(order)), toy.entries.ids[:10].tolist()
    same_votes(toy.predict_items(ids, 5, noise), other.predict_items(ids, 5, noise), 1e-9)


# ---- Law 3: nobody votes for itself


def test_an_entry_never_retrieves_itself_nor_its_duplicates(toy: AttnKNN):
    entries = toy.entries
    prediction = toy.predict_items(entries.ids.tolist(), k=12)
    assert (entries.groups[prediction.neighbors] != entries.groups[:, None]).all()
    assert np.bincount(entries.groups).max() > 1
    for row in range(len(entries)):
        rows, _ = oracles.nearest(
            entries.keys, entries.ids, entries.keys[row], 12, entries.groups, entries.ids[row], entries.groups[row]
        )
        assert prediction.neighbors[row].tolist() == rows


def test_an_entry_is_left_out_of_the_trust_of_its_neighbors(toy: AttnKNN):
    entries = toy.entries
    prediction = toy.predict_items(entries.ids.tolist(), k=8, noise=NOISE)
    own, labels = entries.groups, prediction.seen.labels
    for b, j in np.ndindex(len(entries), 8):
        row = prediction.neighbors[b, j]
        twin = oracles.trust(entries.neighborhoods, labels, row, 20, own, own[b])
        assert prediction.ballot.around.trust[b, j] == pytest.approx(twin)
    assert (prediction.ballot.around.trust != prediction.seen.trust[prediction.neighbors]).any()


def test_the_label_of_an_entry_reaches_neither_its_neighbors_nor_their_trust(toy: AttnKNN):
    """Relabel one entry and ask about it: the same neighbors, with the same labels and the same trust."""
    arrays = dict(toy.bundle.arrays)
    item, labels = str(toy.entries.ids[3]), arrays["entry_labels"].copy()
    labels[3] = (labels[3] + 1) % 3
    other = AttnKNN(Bundle(arrays | {"entry_labels": labels}, toy.class_names), toy.fitted, toy.card, {})
    before, after = (one.predict_items([item], 8).ballot.around for one in (toy, other))
    for name in ("distances", "labels", "trust"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


def test_a_test_item_sees_the_whole_bank(toy: AttnKNN):
    prediction = toy.predict_items(k=40)
    assert (np.sort(prediction.neighbors, axis=1) == np.arange(40)).all()
    np.testing.assert_array_equal(prediction.ballot.around.trust, prediction.seen.trust[prediction.neighbors])


def test_entries_and_test_items_may_be_asked_about_together(iris: AttnKNN):
    mixed = [str(iris.queries.ids[0]), str(iris.entries.ids[0]), str(iris.queries.ids[5]), str(iris.entries.ids[9])]
    together = iris.predict_items(mixed, noise=NOISE)
    assert together.queries.ids.tolist() == mixed
    for row, item in enumerate(mixed):
        alone = iris.predict_items([item], noise=NOISE)
        for vote in COMPARED:
            np.testing.assert_allclose(alone.ballot.calibrated[vote][0], together.ballot.calibrated[vote][row])


@law
@given(rows=st.lists(st.integers(0, 51), min_size=1, max_size=6), noise=noises, k=st.integers(1, 34))
def test_no_vote_depends_on_what_else_is_asked(toy: AttnKNN, rows: list[int], noise: LabelNoise, k: int):
    """Test items, whose pools hold 20, and entries, whose pools hold all that are no duplicates: each as if alone."""
    everyone = [*toy.queries.ids.tolist(), *toy.entries.ids.tolist()]
    asked = [everyone[row] for row in rows]
    together = toy.predict_items(asked, k, noise)
    assert together.queries.ids.tolist() == asked
    for row, item in enumerate(asked):
        alone = toy.predict_items([item], k, noise)
        np.testing.assert_array_equal(alone.neighbors[0], together.neighbors[row])
        for vote in COMPARED:
            one, other = (found.ballot.calibrated[vote] for found in (alone, together))
            np.testing.assert_allclose(one[0], other[row], atol=1e-12, err_msg=vote)


# ---- More neighbors than are stored


@pytest.mark.parametrize("k", [20, 21, 33, 40])
def test_a_k_beyond_the_stored_pool_searches_again(toy: AttnKNN, k: int):
    prediction = toy.predict_items(k=k)
    entries, queries = toy.entries, toy.queries
    for b in range(len(queries)):
        rows, distances = oracles.nearest(entries.keys, entries.ids, queries.keys[b], k)
        assert prediction.neighbors[b].tolist() == rows
        np.testing.assert_allclose(prediction.ballot.around.distances[b], distances, atol=1e-6)


def test_a_k_beyond_the_pool_still_leaves_an_entry_out(iris: AttnKNN):
    k, entries = POOL + 10, iris.entries
    prediction = iris.predict_items(entries.ids.tolist(), k)
    assert (entries.groups[prediction.neighbors] != entries.groups[:, None]).all()
    found = search_exact(entries.keys, entries.keys, k, entries.ids, entries.groups, None, entries.groups)
    np.testing.assert_array_equal(prediction.neighbors, found.entries)


# ---- New inputs


@pytest.mark.parametrize("k", [None, 1, POOL + 6])
def test_an_input_is_classified_like_the_item_it_is(iris: AttnKNN, k: int | None):
    by_id = iris.predict_items(k=k, noise=NOISE)
    by_input = iris.predict(iris.bundle.arrays["query_inputs"], k=k, noise=NOISE)
    np.testing.assert_array_equal(by_id.neighbors, by_input.neighbors)
    np.testing.assert_allclose(by_id.weights, by_input.weights, atol=1e-5)
    same_votes(by_id, by_input, 1e-5)
    assert by_input.queries.ids[:2].tolist() == ["input/0", "input/1"]


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        (np.zeros((2, 5)), r"The embedder takes items of shape \(4,\). The inputs have shape \(2, 5\)"),
        (np.zeros(4), r"The inputs have shape \(4,\)"),
        (np.zeros((2, 4, 1)), r"The inputs have shape \(2, 4, 1\)"),
        (np.zeros((0, 3)), r"The inputs have shape \(0, 3\)"),
        (np.float64(3), r"The inputs have shape \(1,\)"),
        (np.array([[1.0, 2, 3, np.nan]]), "Inputs must be finite numbers. Some are NaN or infinite. Fill or drop"),
        (np.array([[1.0, 2, 3, np.inf]]), "Inputs must be finite numbers."),
        (np.array([["1", "2", "3", "four"]]), "Inputs must be finite numbers. Their type is <U4"),
    ],
)
def test_inputs_that_do_not_fit_are_told_what_would(iris: AttnKNN, inputs: np.ndarray, sentence: str):
    with pytest.raises(InputError, match=sentence):
        iris.predict(inputs)


def test_no_inputs_give_no_answers(iris: AttnKNN):
    for prediction in (iris.predict(np.zeros((0, 4))), iris.predict_items([])):
        assert len(prediction) == 0
        assert prediction.ballot.calibrated["attention"].shape == (0, 3)


# ---- Settings that cannot be had


@pytest.mark.parametrize("k", [0, -1, 1000, 2.0, True, "3"])
def test_a_k_out_of_range_is_told_the_range(iris: AttnKNN, k):
    for ask in (iris.predict_items, lambda k: iris.predict(np.zeros((1, 4)), k=k)):
        with pytest.raises(SettingError, match=f"between 1 and {len(iris.entries)}, the number of entries. It was {k}"):
            ask(k=k)


def test_a_k_that_leaves_no_room_for_leaving_out_is_told_how_many_are_left(iris: AttnKNN):
    entries, n = iris.entries, len(iris.entries)
    twins = np.flatnonzero(np.bincount(entries.groups)[entries.groups] == 2)
    with pytest.raises(SettingError, match=f"at most {n - 2}, the entries that every query may retrieve"):
        iris.predict_items([str(entries.ids[twins[0]])], k=n)


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan"), float("inf")])
def test_a_temperature_that_is_not_positive_is_refused(iris: AttnKNN, temperature: float):
    for ask in (iris.predict_items, lambda temperature: iris.predict(np.zeros((1, 4)), temperature=temperature)):
        with pytest.raises(SettingError, match="temperature must be a positive number"):
            ask(temperature=temperature)


@pytest.mark.parametrize("item", ["iris/test/45", "iris/train/x", "", "digits/test/0"])
def test_an_unknown_id_is_told_what_ids_look_like(iris: AttnKNN, item: str):
    with pytest.raises(UnknownItem, match="Ids look like iris/test/0") as caught:
        iris.predict_items([item])
    assert caught.value.item_id == item


# ---- Noise


def test_noise_flips_the_bank_and_nothing_else(iris: AttnKNN):
    clean, noisy = iris.predict_items(), iris.predict_items(noise=NOISE)
    entries = iris.entries
    expected = flip_labels(entries.labels, draw_noise(entries.ids, NOISE.seed), NOISE, 3)
    np.testing.assert_array_equal(noisy.seen.labels, expected)
    np.testing.assert_array_equal(noisy.ballot.around.labels, expected[noisy.neighbors])
    np.testing.assert_array_equal(clean.neighbors, noisy.neighbors)
    baselines = [prediction.ballot.votes["baseline"].probabilities for prediction in (clean, noisy)]
    np.testing.assert_array_equal(*baselines)
    assert not clean.seen.is_flipped.any()


def test_a_draw_is_observed_once(iris: AttnKNN):
    assert iris.observe(NOISE) is iris.observe(LabelNoise("symmetric", 0.4, seed=2))


def test_matrix_noise_confuses_look_alike_classes_unless_a_matrix_is_given(toy: AttnKNN):
    """Cedars are only ever taken for ashes in the toy's confusion."""
    seen = toy.observe(LabelNoise("matrix", 0.9, seed=1))
    cedars = toy.entries.labels == 2
    assert {*seen.labels[cedars].tolist()} == {0, 2}
    other = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
    assert {*toy.observe(LabelNoise("matrix", 0.9, 1, other)).labels[cedars].tolist()} == {1, 2}


def test_surroundings_are_what_the_bank_says(toy: AttnKNN):
    entries, queries, seen = toy.entries, toy.queries, observe(toy.entries, NOISE)
    around = surround(queries.keys, queries.pool.first(5), seen, with_keys=True)
    kept = [oracles.keeps_label(entries.neighborhoods, seen.labels, row, 20) for row in range(len(entries))]
    assert 0 < sum(kept) < len(kept)
    for b in range(len(queries)):
        for c in range(3):
            center = oracles.prototype(entries.keys, seen.labels, c, kept)
            cosine = oracles.dot(queries.keys[b], center)
            assert around.average_distances[b, c] == pytest.approx(max(2 - 2 * cosine, 0) ** 0.5, abs=1e-6)
            assert around.prior[b, c] == list(seen.labels).count(c) / 40
        for j, row in enumerate(queries.pool.entries[b, :5]):
            contrast = oracles.contrast(entries.keys, seen.labels, 3, row, kept)
            assert around.contrast[b, j] == pytest.approx(contrast, abs=1e-6)
            assert around.labels[b, j] == seen.labels[row]
            np.testing.assert_array_equal(around.keys[b, j], entries.keys[row])


# ---- Saved and loaded


def test_a_loaded_classifier_says_what_the_trained_one_said(iris: AttnKNN, shelf: Path):
    again = load("iris", shelf)
    assert again.name == "iris"
    assert again.config == iris.config
    inputs = iris.bundle.arrays["query_inputs"]
    for noise in (LabelNoise(), NOISE):
        same_votes(iris.predict_items(noise=noise), again.predict_items(noise=noise), 1e-9)
        same_votes(iris.predict(inputs, noise=noise), again.predict(inputs, noise=noise), 1e-9)
    ids = iris.entries.ids[:20].tolist()
    same_votes(iris.predict_items(ids), again.predict_items(ids), 1e-9)


def test_weights_of_another_embedder_are_refused_when_it_is_needed(iris: AttnKNN):
    wrong = {name: tensor for name, tensor in iris._weights.items() if name != "classifier.bias"}
    other = AttnKNN(iris.bundle, iris.fitted, iris.card, wrong)
    assert len(other.predict_items()) == 45
    with pytest.raises(DamagedCheckpoint, match="must fit the embedder that the card describes"):
        other.predict(np.zeros((1, 4)))


def test_the_votes_of_numpy_are_the_votes_of_torch(iris: AttnKNN):
    """Law 9, on a trained classifier: the page's arrays and the fit's tensors."""
    prediction = iris.predict_items(noise=NOISE)
    around = convert(prediction.ballot.around, lambda array: torch.asarray(np.array(array)))
    heads = attend(around, convert(iris.fitted.attention, torch.asarray))
    np.testing.assert_allclose(heads.weights, prediction.weights, atol=1e-6)
    np.testing.assert_allclose(
        heads.probabilities.mean(dim=1), prediction.ballot.votes["attention"].probabilities, atol=1e-6
    )
