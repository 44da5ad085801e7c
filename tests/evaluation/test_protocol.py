"""The honest protocol: numbers that can be counted again from the predictions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from attnknn import metrics, reliability
from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.evaluation.protocol import (
    CHANCE_DRAWS,
    compare,
    evaluate,
    examine,
    hits,
    losses,
    measure,
    measure_chance,
    summarize,
)
from attnknn.evaluation.selective import augrc
from attnknn.votes import COMPARED
from tests.strategies import lattice_classifier

NOISES = [LabelNoise("symmetric", 0.4, 0), LabelNoise("pair", 0.3, 1)]


@pytest.fixture(scope="module")
def toy() -> AttnKNN:
    return lattice_classifier()


def test_one_row_per_draw_and_vote(toy: AttnKNN):
    frame = evaluate(toy, 5, NOISES)
    assert frame["vote"].tolist() == [*COMPARED] * 2
    assert (frame["k"] == 5).all()
    said = list(zip(frame["noise_kind"], frame["noise_rate"], frame["seed"], strict=True))
    assert said == [("symmetric", 0.4, 0)] * len(COMPARED) + [("pair", 0.3, 1)] * len(COMPARED)
    for row, (noise, vote) in enumerate((noise, vote) for noise in NOISES for vote in COMPARED):
        expected = measure(toy.predict_items(k=5, noise=noise), vote)
        for name, number in expected.items():
            assert frame[name][row] == pytest.approx(number, nan_ok=True)


@pytest.mark.parametrize("vote", COMPARED)
def test_a_measurement_can_be_counted_again(toy: AttnKNN, vote: str):
    prediction = toy.predict_items(k=6, noise=NOISES[0])
    found, truth = measure(prediction, vote), toy.queries.labels
    raw, calibrated = prediction.ballot.votes[vote].probabilities, prediction.ballot.calibrated[vote]
    winners = [list(row).index(max(row)) for row in raw]
    assert found["accuracy"] == np.mean([winner == label for winner, label in zip(winners, truth, strict=True)])
    assert found["nll"] == pytest.approx(-np.mean([math.log(p[y]) for p, y in zip(calibrated, truth, strict=True)]))
    assert found["macro_f1"] == pytest.approx(f1_score(truth, winners, average="macro", zero_division=0))
    brier = np.mean([sum((p[c] - (c == y)) ** 2 for c in range(3)) for p, y in zip(calibrated, truth, strict=True)])
    assert found["brier"] == pytest.approx(brier)
    assert found["ece"] == reliability.ece(calibrated, truth)
    assert found["ece_debiased"] == reliability.ece(calibrated, truth, debiased=True)
    assert found["smooth_ece"] == reliability.smooth_ece(calibrated, truth)
    assert found["augrc"] == augrc(calibrated, truth)
    assert found["ece_raw"] == reliability.ece(raw, truth)
    of_truth = [max(p[y], 1e-12) for p, y in zip(raw, truth, strict=True)]
    assert found["nll_raw"] == pytest.approx(-np.mean(np.log(of_truth)))
    labels = prediction.ballot.around.labels.tolist()
    assert found["unanimity"] == np.mean([len({*row}) == 1 for row in labels])
    effective = prediction.effective_neighbors(vote)
    if effective is None:
        assert math.isnan(found["effective_neighbors"])
    else:
        assert found["effective_neighbors"] == pytest.approx(np.mean(effective))


def test_hits_and_losses_are_one_per_query(toy: AttnKNN):
    prediction = toy.predict_items(k=6, noise=NOISES[1])
    for vote in COMPARED:
        found = measure(prediction, vote)
        assert hits(prediction, vote).mean() == found["accuracy"]
        assert losses(prediction, vote).mean() == pytest.approx(found["nll"])
        assert {*hits(prediction, vote).tolist()} <= {0.0, 1.0}


def test_what_is_compared_is_paired_by_draw_and_query(toy: AttnKNN):
    found = compare(toy, 6, NOISES, ("uniform", "attention"))
    assert tuple(found) == ("uniform", "attention")
    for vote, numbers in found.items():
        for row, noise in enumerate(NOISES):
            prediction = toy.predict_items(k=6, noise=noise)
            np.testing.assert_array_equal(numbers["hits"][row], hits(prediction, vote))
            np.testing.assert_array_equal(numbers["losses"][row], losses(prediction, vote))


def test_examining_is_evaluating_and_comparing_at_once(toy: AttnKNN):
    found = examine(toy, 6, NOISES)
    frame, chance = evaluate(toy, 6, NOISES), ["ece_debiased_raw", "chance_low", "chance_high"]
    assert pd.DataFrame(found.rows)[[*frame.columns]].equals(frame)
    assert {*chance} <= {*found.rows[0]}
    for vote, numbers in compare(toy, 6, NOISES).items():
        np.testing.assert_array_equal(found.hits[vote], numbers["hits"])
        np.testing.assert_array_equal(found.losses[vote], numbers["losses"])


@pytest.mark.parametrize("vote", COMPARED)
def test_chance_is_measured_before_and_after_calibration(toy: AttnKNN, vote: str):
    prediction = toy.predict_items(k=6, noise=NOISES[0])
    found, ballot = measure_chance(prediction, vote), prediction.ballot
    for p, names in (
        (ballot.calibrated[vote], ("chance_low", "chance_high")),
        (ballot.votes[vote].probabilities, ("chance_raw_low", "chance_raw_high")),
    ):
        band = reliability.chance_ece(p, resamples=CHANCE_DRAWS, debiased=True)
        assert [found[name] for name in names] == [band.low, band.high]
    raw = ballot.votes[vote].probabilities
    assert found["ece_debiased_raw"] == reliability.ece(raw, toy.queries.labels, debiased=True)


def test_where_neighbors_are_unanimous_no_vote_gains_or_loses(iris: AttnKNN):
    """Attention can change at most the share of queries that are not unanimous."""
    prediction = iris.predict_items()
    apart = 1 - metrics.unanimity(prediction.ballot.around.labels)
    assert 0 < apart < 1
    for vote in ("distance", "attention"):
        gap = abs(measure(prediction, vote)["accuracy"] - measure(prediction, "uniform")["accuracy"])
        assert gap <= apart + 1e-12


def test_a_summary_has_every_vote_at_three_levels_with_its_interval(toy: AttnKNN):
    rows = summarize(toy, seeds=(0, 1))
    assert len(rows) == 3 * len(COMPARED)
    assert [row["seeds"] for row in rows[:: len(COMPARED)]] == [[0], [0, 1], [0, 1]]
    for row in rows:
        noises = [LabelNoise(row["noise_kind"], row["noise_rate"], seed) for seed in row["seeds"]]
        found = compare(toy, None, noises)[row["vote"]]
        assert row["k"] == 7
        assert row["accuracy"] == pytest.approx(found["hits"].mean(), abs=1e-4)
        assert row["nll"] == pytest.approx(found["losses"].mean(), abs=1e-4)
        low, high = row["accuracy_interval"]
        assert 0 <= low <= row["accuracy"] <= high <= 1


def test_only_queries_with_labels_can_be_measured(toy: AttnKNN):
    prediction = toy.predict_items()
    nameless = replace(prediction, queries=replace(prediction.queries, labels=None))
    with pytest.raises(ValueError, match="only queries with labels"):
        measure(nameless, "uniform")
