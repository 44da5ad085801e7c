"""Protocol A and the cleaning loop: who sees wrong labels, what neighbors make of them, and that it can go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attnknn.bank.statistics import keeps_label
from attnknn.classifier import AttnKNN, load
from attnknn.config import AttentionConfig, Cleaning, EmbedderConfig, LabelNoise, TrainingConfig
from attnknn.data import draw_noise, load_dataset
from attnknn.errors import CheckpointError, SettingError
from attnknn.models.embedders import Embedder
from attnknn.training import embedder as training
from attnknn.training.attention import fit_votes, noise_transition
from attnknn.training.cleaning import FILE, BestKept, judge_labels, measure, train_cleaned
from attnknn.training.embedder import blind
from attnknn.training.parts import Parts, observe_labels, part
from attnknn.training.run import fit, held_out_queries, make_bundle, refit
from attnknn.ui.training import story
from tests.conftest import QUICK, QUICK_ATTENTION

NOISE = LabelNoise("symmetric", 0.4, seed=3)
SHORT = replace(QUICK, embedder=replace(QUICK.embedder, epochs=6))
PLAIN = replace(SHORT, attention=replace(QUICK_ATTENTION, heads=("nearest",), rates=(0.0,), pair_rates=()))
NOISY = replace(PLAIN, attention=replace(PLAIN.attention, rates=(0.0, 0.4)), label_noise=NOISE)
CLEANED = replace(NOISY, cleaning=Cleaning(1))


class Paused(Exception):
    """Somebody pressed pause."""


def same(one: Mapping[str, np.ndarray], two: Mapping[str, np.ndarray]) -> bool:
    """Whether arrays are equal by name, to the bit."""
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)


def same_embedding(one: AttnKNN, two: AttnKNN) -> bool:
    return same(one.bundle.arrays, two.bundle.arrays) and same(one.embedder.arrays(), two.embedder.arrays())


def same_everywhere(one: AttnKNN, two: AttnKNN) -> bool:
    """Whether embedder, bank and votes are equal."""
    return same_embedding(one, two) and same(one.fitted.to_arrays(), two.fitted.to_arrays())


# ---- Protocol A


@pytest.mark.parametrize("kind", ["symmetric", "pair"])
def test_every_training_label_is_observed_and_test_is_left_alone(kind: str):
    clean = load_dataset("digits")
    seen = observe_labels(clean, LabelNoise(kind, 0.4, seed=1))
    train, test = clean.where("train"), clean.where("test")
    np.testing.assert_array_equal(seen.labels[test], clean.labels[test])
    is_flipped = seen.labels[train] != clean.labels[train]
    spread = (0.4 * 0.6 / len(train)) ** 0.5
    assert abs(is_flipped.mean() - 0.4) < 4 * spread
    fewer = observe_labels(clean, LabelNoise(kind, 0.2, seed=1)).labels != clean.labels
    more = observe_labels(clean, LabelNoise(kind, 0.6, seed=1)).labels != clean.labels
    assert (fewer[train] <= is_flipped).all()
    assert (is_flipped <= more[train]).all()
    assert observe_labels(clean, None) is clean


def test_noise_that_a_visitor_adds_to_the_bank_meets_other_items():
    clean = load_dataset("digits")
    train = clean.where("train")
    is_flipped = (observe_labels(clean, LabelNoise(rate=0.4)).labels != clean.labels)[train]
    meets = draw_noise(clean.ids[train], 0).u < 0.4
    assert abs(meets[is_flipped].mean() - 0.4) < 4 * (0.4 * 0.6 / is_flipped.sum()) ** 0.5


@pytest.fixture(scope="module")
def noisy() -> AttnKNN:
    return fit("iris", NOISY)


def test_embedder_and_bank_see_what_is_observed_and_nothing_else(noisy: AttnKNN):
    """Who trains without noise on a dataset whose labels are wrong already gets the very same embedder and bank."""
    clean = load_dataset("iris")
    observed = observe_labels(clean, NOISE)
    assert (observed.labels != clean.labels).sum() > 20
    assert same_embedding(noisy, fit(observed, PLAIN))
    assert not same_embedding(noisy, fit(clean, PLAIN))


def test_each_part_carries_its_labels(noisy: AttnKNN):
    clean = load_dataset("iris")
    observed, held_out = observe_labels(clean, NOISE), held_out_queries(noisy)
    for who, labels in ((noisy.entries, observed), (held_out, observed), (noisy.queries, clean)):
        rows = [clean.index_of(item) for item in who.ids]
        np.testing.assert_array_equal(who.labels, labels.labels[rows])


def test_votes_fitted_on_wrong_labels_know_that_some_are(noisy: AttnKNN):
    held_out, attention = held_out_queries(noisy), NOISY.attention.for_bank_as_it_is()
    transition = noise_transition(held_out, noisy.entries)
    assert np.diag(transition).max() < 0.9
    knowing, naive = (fit_votes(held_out, noisy.entries, attention, NOISY.seed, known) for known in (transition, None))
    assert same(noisy.fitted.to_arrays(), knowing.to_arrays())
    assert not same(noisy.fitted.to_arrays(), naive.to_arrays())


def test_the_card_says_what_was_done_to_the_labels(noisy: AttnKNN, tmp_path: Path):
    noisy.save("noisy", tmp_path)
    card, config = load("noisy", tmp_path).card, load("noisy", tmp_path).config
    assert config == replace(NOISY, attention=NOISY.attention.for_bank_as_it_is())  # as its votes were fitted
    assert card["protocol"] == "A"
    assert card["config"]["label_noise"] == {"kind": "symmetric", "rate": 0.4, "seed": 3, "matrix": None}
    assert card["dataset"]["hash"] == load_dataset("iris").hash
    assert "cleaning" not in card


def test_without_these_options_nothing_is_said_and_cards_read_as_before(iris: AttnKNN):
    assert {*iris.card["config"]} == {"dataset", "seed", "held_out", "embedder", "attention"}
    assert {"protocol", "cleaning"}.isdisjoint(iris.card)
    assert TrainingConfig.from_dict(iris.card["config"]) == QUICK
    assert QUICK.n_epochs == QUICK.embedder.epochs


def test_options_survive_their_card():
    matrix = LabelNoise("matrix", 0.3, matrix=((0.0, 1.0), (1.0, 0.0)))
    for config in (CLEANED, replace(QUICK, cleaning=Cleaning(2, "drop", 15)), replace(QUICK, label_noise=matrix)):
        assert TrainingConfig.from_dict(config.to_dict()) == config
    assert replace(QUICK, cleaning=Cleaning(2)).n_epochs == 3 * QUICK.embedder.epochs


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"rounds": 3}, {"rule": "burn"}, {"agreeing": 10}, {"agreeing": 21}])
def test_cleaning_that_means_nothing_is_refused(wrong: dict):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be .*, however"):
        Cleaning(**wrong)


# ---- How labels are judged


def judged_slowly(neighborhoods, said, labels, n_classes: int, cleaning: Cleaning) -> list[int]:
    """Count with fingers."""
    left = []
    for j, own in enumerate(labels):
        voices = [said[i] for i in neighborhoods[j][:20] if i >= 0 and said[i] >= 0]
        counts = [voices.count(c) for c in range(n_classes)]
        if counts[own] == max(counts):
            left.append(own)
        elif cleaning.rule == "relabel" and max(counts) >= cleaning.agreeing:
            left.append(counts.index(max(counts)))
        else:
            left.append(-1)
    return left


@st.composite
def neighborhoods_of_labels(draw: st.DrawFn):
    n, n_classes = draw(st.integers(2, 12)), draw(st.integers(2, 4))
    near = draw(arrays.arrays(np.int32, (n, draw(st.integers(1, 24))), elements=st.integers(-1, n - 1)))
    labels = draw(arrays.arrays(np.int64, n, elements=st.integers(0, n_classes - 1)))
    said = draw(arrays.arrays(np.int64, n, elements=st.integers(-1, n_classes - 1)))
    return near, said, labels, n_classes


@given(world=neighborhoods_of_labels(), rule=st.sampled_from(["drop", "relabel"]), agreeing=st.integers(11, 20))
def test_labels_are_judged_as_by_counting_with_fingers(world, rule, agreeing):
    cleaning = Cleaning(1, rule, agreeing)
    assert judge_labels(*world, cleaning).tolist() == judged_slowly(*world, cleaning)


@given(world=neighborhoods_of_labels())
def test_the_first_round_drops_what_wilson_edits_out(world):
    near, _, labels, n_classes = world
    left = judge_labels(near, labels, labels, n_classes, Cleaning(1, "drop"))
    np.testing.assert_array_equal(left >= 0, keeps_label(near, labels, n_classes))


def test_a_cleaning_is_measured_by_what_was_wrong():
    data = load_dataset("iris")
    clean, train = data.labels, data.where("train")
    rows = train[:10]
    wrong = clean[rows].copy()
    wrong[:4] = (wrong[:4] + 1) % 3  # four of ten are wrong
    observed = Parts(data, {"fit": rows}).with_fit(rows, wrong)
    assert measure(observed, observed, clean) == {"purity_before": 0.6, "purity": 0.6, "recall": 0.0}
    repaired = wrong.copy()
    repaired[0] = clean[rows[0]]
    cleaned = observed.with_fit(rows[[0, 2, 3, 4, 5]], repaired[[0, 2, 3, 4, 5]])  # one repaired, one dropped
    assert measure(observed, cleaned, clean) == {"purity_before": 0.6, "purity": 0.6, "recall": 0.5}
    nothing_wrong = observed.with_fit(rows, clean[rows])
    assert measure(nothing_wrong, nothing_wrong, clean)["recall"] == 1.0


# ---- The loop


DIGITS = TrainingConfig(
    "digits",
    embedder=EmbedderConfig("cnn", dimension=32, width=16, epochs=8, batch_size=64, learning_rate=5e-3),
    attention=AttentionConfig(("nearest",), rates=(0.0,), pair_rates=()),
    label_noise=LabelNoise("symmetric", 0.4),
)


@pytest.mark.parametrize("rule", ["drop", "relabel"])
def test_cleaning_purifies_the_bank_of_digits(rule: str):
    data, cleaned = load_dataset("digits"), fit("digits", replace(DIGITS, cleaning=Cleaning(1, rule)))
    clean = data.labels[[data.index_of(item) for item in cleaned.entries.ids]]
    (said,) = cleaned.card["cleaning"]
    assert said["purity_before"] == pytest.approx(0.6, abs=0.05)
    assert np.mean(cleaned.entries.labels == clean) == pytest.approx(said["purity"], abs=1e-4)
    assert said["purity"] > 0.95
    assert said["recall"] > 0.95
    assert said["kept"] + said["relabeled"] == len(cleaned.entries) == cleaned.card["sizes"]["fit"]
    assert said["kept"] + said["relabeled"] + said["dropped"] == 1005
    assert (said["relabeled"] > 100) == (rule == "relabel")


@pytest.fixture(scope="module")
def told() -> list[tuple[str, float, dict]]:
    return []


@pytest.fixture(scope="module")
def cleaned(told) -> AttnKNN:
    return fit("iris", replace(CLEANED, cleaning=Cleaning(2)), lambda *facts: told.append(facts))


def test_epochs_are_numbered_over_all_rounds_so_that_curves_do_not_break(cleaned: AttnKNN, told):
    said = [(done, numbers) for stage, done, numbers in told if stage == "embedder"]
    shares = [done for done, _ in said]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    points = [numbers for _, numbers in said if "epoch" in numbers]
    assert [one["epoch"] for one in points] == list(range(1, cleaned.config.n_epochs + 1))
    assert [one["round"] for one in points] == [1] * 6 + [2] * 6 + [3] * 6
    assert {one["rounds"] for one in points} == {3}
    assert all({*story.COLUMNS} <= {*one} for one in points)
    cleanings = [numbers for _, numbers in said if "kept" in numbers]
    assert [{**one, "rounds": 3} for one in cleaned.card["cleaning"]] == cleanings
    assert all("epoch" not in one for one in cleanings)


def test_a_cleaned_checkpoint_is_saved_loaded_and_fitted_again_on_the_same_bank(cleaned: AttnKNN, tmp_path: Path):
    cleaned.save("cleaned", tmp_path)
    again = refit(load("cleaned", tmp_path), cleaned.config.attention)
    assert again.card["cleaning"] == cleaned.card["cleaning"]
    assert again.config == cleaned.config
    for name, array in cleaned.bundle.arrays.items():
        np.testing.assert_array_equal(again.bundle.arrays[name], array)
    with pytest.raises(CheckpointError, match="A cleaned bank has to travel with its checkpoint"):
        make_bundle(load_dataset("iris"), cleaned.config, cleaned.embedder)


def test_clean_labels_only_measure(tmp_path: Path):
    data = load_dataset("iris")
    parts, told = part(data, CLEANED), (training.silent, None, training.never)
    blindly = train_cleaned(parts, CLEANED, *told)
    measured = train_cleaned(parts, CLEANED, *told, clean_labels=data.labels)
    assert not {"purity", "recall"} & {*blindly.rounds[0]}
    assert {"purity", "recall"} <= {*measured.rounds[0]}
    for name, array in blindly.embedder.arrays().items():
        np.testing.assert_array_equal(measured.embedder.arrays()[name], array)
    np.testing.assert_array_equal(blindly.parts.rows["fit"], measured.parts.rows["fit"])


def test_labels_that_were_wrong_before_are_cleaned_but_cannot_be_measured():
    classifier = fit(observe_labels(load_dataset("iris"), NOISE), replace(PLAIN, cleaning=Cleaning(1)))
    (said,) = classifier.card["cleaning"]
    assert said["dropped"] + said["relabeled"] > 0
    assert not {"purity", "recall"} & {*said}
    assert "protocol" not in classifier.card


def test_a_bank_that_is_too_small_after_cleaning_is_a_sentence():
    greedy = replace(CLEANED, attention=replace(CLEANED.attention, k=78))
    with pytest.raises(SettingError, match=r"Cleaning must be more than k = 78\. It was \d+ items left\."):
        fit("iris", greedy)


# ---- Going on


STEPS = 3  # batches of an epoch: 78 items, 32 at a time


@pytest.fixture(scope="module")
def whole() -> AttnKNN:
    return fit("iris", CLEANED)


@pytest.mark.parametrize(
    "stops",
    [[2], [STEPS * 3 + 2], [STEPS * 6 + 1], [STEPS * 6 + 2], [STEPS * 9], [STEPS * 4, STEPS * 5 + 1]],
    ids=["first epoch", "round 1", "before cleaning", "start of round 2", "round 2", "round 1, then round 2"],
)
def test_an_interrupted_run_ends_with_the_same_weights_bit_for_bit(whole, stops, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "REMEMBER", 0.0)
    for stop_at in stops:
        count = 0

        def pause_point(stop_at: int = stop_at) -> None:
            nonlocal count
            count += 1
            if count == stop_at:
                raise Paused

        with pytest.raises(Paused):
            fit("iris", CLEANED, remember=tmp_path, pause_point=pause_point)
    again = fit("iris", CLEANED, remember=tmp_path)
    assert same_everywhere(again, whole)
    assert again.card == whole.card
    assert sorted(path.name for path in tmp_path.iterdir()) == ["round-1", "round-2"]


def test_a_finished_round_is_not_trained_again(tmp_path: Path):
    fit("iris", CLEANED, remember=tmp_path)
    told = []
    fit("iris", CLEANED, lambda *facts: told.append(facts), tmp_path)
    assert [numbers for stage, _, numbers in told if stage == "embedder" and "epoch" in numbers] == []


def test_the_best_epoch_is_kept_the_first_of_equal_ones_and_remembered(tmp_path: Path):
    scores = iter([0.2, 0.5, 0.5, 0.4])
    look = BestKept(lambda embedder: next(scores), blind, tmp_path)
    embedder = Embedder(QUICK.embedder, (4,), 3)
    weights = []
    for epoch in range(1, 5):
        embedder.classifier.bias.data.fill_(epoch)
        weights.append(embedder.classifier.bias.detach().clone())
        assert look(embedder, epoch) == {}
    for one in (look, BestKept(lambda embedder: 0.0, blind, tmp_path)):
        assert (one.epoch, one.score) == (2, 0.5)
        assert (one.restore(Embedder(QUICK.embedder, (4,), 3)).classifier.bias == weights[1]).all()
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
