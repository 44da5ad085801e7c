"""One training run: who sees what, what the card says, and that it can be done again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attnknn.bank import entry_neighborhoods, search_exact
from attnknn.classifier import AttnKNN
from attnknn.config import AttentionConfig, TrainingConfig
from attnknn.data import DatasetDescription, load_dataset, make_dataset
from attnknn.errors import UnknownDataset
from attnknn.training.run import default_config, fit, held_out_queries, refit
from attnknn.votes import COMPARED
from tests.conftest import QUICK, QUICK_ATTENTION

TINY = replace(
    QUICK,
    embedder=replace(QUICK.embedder, epochs=2),
    attention=replace(QUICK_ATTENTION, heads=("nearest",), rates=(0.0,), pair_rates=()),
)


@pytest.fixture(scope="module")
def tiny() -> tuple[AttnKNN, list[tuple[str, float, dict]]]:
    """The smallest training, and what it reported."""
    told: list[tuple[str, float, dict]] = []
    return fit("iris", TINY, lambda *facts: told.append(facts)), told


def test_fit_held_out_and_test_are_apart_and_duplicates_stay_together(iris: AttnKNN):
    dataset, held_out = load_dataset("iris"), held_out_queries(iris)
    parts = [{*ids.tolist()} for ids in (iris.entries.ids, held_out.ids, iris.queries.ids)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(dataset.ids)
    assert iris.card["sizes"] == dict(zip(("fit", "held_out", "test"), map(len, parts), strict=True))
    assert parts[2] == {*dataset.ids[dataset.where("test")].tolist()}
    groups = [{int(dataset.groups[dataset.index_of(item)]) for item in part} for part in parts]
    for one in range(3):
        for two in range(one):
            assert groups[one].isdisjoint(groups[two])


def test_the_held_out_part_never_holds_a_duplicate_of_the_fit_part():
    """A table in which every row is there three times: whoever splits rows would let the embedder see all of it."""
    rng = np.random.default_rng(0)
    about = DatasetDescription("triples", "Triples", "table", 180, 2, (2,), "none", "made here")
    triples = make_dataset(about, np.repeat(rng.normal(size=(60, 3)), 3, axis=0), np.repeat([0, 1], 90), ["a", "b"])
    config = replace(TINY, dataset="triples", attention=replace(TINY.attention, k=4))
    bank = fit(triples, config).entries
    train = triples.where("train")
    held_out = train[~np.isin(triples.ids[train], bank.ids)]
    assert len(held_out) > 20
    assert not np.isin(triples.groups[held_out], bank.groups).any()


def test_the_bank_holds_the_fit_part_as_the_dataset_has_it(iris: AttnKNN):
    dataset, entries = load_dataset("iris"), iris.entries
    rows = np.array([dataset.index_of(item) for item in entries.ids])
    np.testing.assert_array_equal(entries.labels, dataset.labels[rows])
    np.testing.assert_array_equal(entries.groups, dataset.groups[rows])
    np.testing.assert_array_equal(iris.bundle.arrays["entry_inputs"], dataset.inputs[rows].astype(np.float32))
    np.testing.assert_allclose(iris.embedder.embed(dataset.inputs[rows])[0], entries.keys, atol=1e-6)
    found = entry_neighborhoods(entries.keys, entries.ids, entries.groups, 24)
    np.testing.assert_array_equal(entries.neighborhoods, found)


def test_queries_hold_their_nearest_entries(iris: AttnKNN):
    dataset, entries, queries = load_dataset("iris"), iris.entries, iris.queries
    rows = np.array([dataset.index_of(item) for item in queries.ids])
    np.testing.assert_array_equal(queries.labels, dataset.labels[rows])
    found = search_exact(entries.keys, queries.keys, queries.pool.k, entries.ids)
    np.testing.assert_array_equal(queries.pool.entries, found.entries)
    np.testing.assert_allclose(queries.pool.distances, found.distances, atol=1e-6)


def test_the_same_seed_trains_the_same_classifier(tiny):
    one, two = tiny[0], fit(load_dataset("iris"), TINY)
    for name, array in one.bundle.arrays.items():
        np.testing.assert_array_equal(array, two.bundle.arrays[name])
    for name, array in one.fitted.to_arrays().items():
        np.testing.assert_array_equal(array, two.fitted.to_arrays()[name])
    assert one.card == two.card


def test_another_seed_splits_the_training_items_differently_and_never_the_test_items(tiny):
    first, other = tiny[0], fit("iris", replace(TINY, seed=1))
    assert {*other.entries.ids.tolist()} != {*first.entries.ids.tolist()}
    np.testing.assert_array_equal(other.queries.ids, first.queries.ids)


def test_fitting_the_votes_again_changes_nothing_but_the_votes(tiny):
    first = tiny[0]
    same = refit(first, TINY.attention)
    other = refit(first, replace(TINY.attention, heads=("typical",), k=5))
    for name, array in first.fitted.to_arrays().items():
        np.testing.assert_allclose(same.fitted.to_arrays()[name], array, atol=1e-9)
    assert other.fitted.attention.heads == ("typical",)
    assert other.config.attention.k == other.predict_items().k == 5
    for name, array in first.bundle.arrays.items():
        np.testing.assert_array_equal(array, other.bundle.arrays[name])


def test_an_unregistered_dataset_cannot_be_trained_on(iris: AttnKNN):
    with pytest.raises(UnknownDataset, match='There is no dataset "irsi"'):
        fit("irsi")
    stranger = AttnKNN(
        iris.bundle,
        iris.fitted,
        iris.card | {"config": replace(QUICK, dataset="mine").to_dict()},
        {},
    )
    with pytest.raises(UnknownDataset):
        refit(stranger, QUICK_ATTENTION)


def test_a_configuration_for_another_dataset_is_refused():
    for dataset in ("wine", load_dataset("wine")):
        with pytest.raises(ValueError, match=r"config\.dataset must be 'wine', however: .*'iris'"):
            fit(dataset, TINY)


def test_the_card_says_what_it_is_and_how_it_was_made(iris: AttnKNN):
    card, dataset = iris.card, load_dataset("iris")
    assert TrainingConfig.from_dict(card["config"]) == QUICK
    assert card["dataset"]["hash"] == dataset.hash
    assert card["dataset"]["class_names"] == list(dataset.class_names)
    assert card["dataset"]["input_shape"] == [4]
    assert card["attention"]["heads"] == list(QUICK_ATTENTION.heads)
    assert {"python", "numpy", "torch", "faiss-cpu"} <= {*card["versions"]}
    assert {row["vote"] for row in card["metrics"]} == {*COMPARED}
    for row in card["metrics"]:
        low, high = row["accuracy_interval"]
        assert low <= row["accuracy"] <= high


def test_progress_names_its_stages_in_order(tiny):
    told = tiny[1]
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == ["embedder", "bank", "votes", "evaluation", "done"]
    assert told[-1][:2] == ("done", 1.0)
    assert all(0 <= done <= 1 for _, done, _ in told)


def test_the_last_epoch_shows_what_the_trained_embedder_does(tiny):
    classifier, told = tiny
    last = [numbers for stage, _, numbers in told if stage == "embedder"][-1]
    held_out = held_out_queries(classifier)
    assert last["held_out_accuracy"] == np.mean(held_out.logits.argmax(axis=1) == held_out.labels)
    assert last["query"] == classifier.queries.ids[0]
    nearest = classifier.entries.ids[classifier.queries.pool.entries[0, : len(last["neighbors"])]]
    assert last["neighbors"] == nearest.tolist()


@pytest.mark.parametrize(("name", "kind"), [("digits", "cnn"), ("iris", "mlp"), ("moons", "mlp")])
def test_defaults_suit_the_kind_of_data(name: str, kind: str):
    config = default_config(load_dataset(name), seed=3)
    assert (config.dataset, config.seed, config.embedder.kind) == (name, 3, kind)


def test_a_configuration_survives_its_card():
    config = TrainingConfig("wine", 4, 0.3, QUICK.embedder, AttentionConfig(("typical",), rates=(0.1,), pair_rates=()))
    assert TrainingConfig.from_dict(config.to_dict()) == config
