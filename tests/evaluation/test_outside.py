"""Items from elsewhere: areas against scikit-learn, intervals against the bootstrap, and digits without their shape."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from attnknn.classifier import AttnKNN, load
from attnknn.evaluation.outside import RIVAL_K, strangeness, tell_apart
from attnknn.prediction import Prediction
from attnknn.votes import COMPARED, TITLES
from tests.strategies import lattice_classifier


@pytest.fixture(scope="module")
def digits() -> AttnKNN:
    return load("digits")


@pytest.fixture(scope="module")
def shuffled(digits: AttnKNN) -> Prediction:
    """Test digits, their pixels all in one other order: what was where says nothing any more."""
    images = digits.bundle.arrays["query_inputs"][:200]
    order = np.random.default_rng(0).permutation(64)
    return digits.predict(images.reshape(-1, 64)[:, order].reshape(-1, 8, 8))


def test_every_score_is_what_it_says():
    toy = lattice_classifier()
    prediction = toy.predict_items(k=7)
    found, ballot, distances = strangeness(prediction), prediction.ballot, prediction.queries.pool.distances
    assert tuple(found)[:2] == ("distance to neighbor 20", "distance to neighbor 7")  # a pool of 20
    np.testing.assert_array_equal(found["distance to neighbor 20"], distances[:, 19])
    np.testing.assert_array_equal(found["distance to neighbor 7"], distances[:, 6])
    np.testing.assert_allclose(found["sink of attention"], prediction.sink.mean(axis=1))
    np.testing.assert_array_equal(found["sink of attention + averages"], ballot.votes["attention_averages"].sink)
    for vote in COMPARED:
        np.testing.assert_array_equal(found[f"doubt of {TITLES[vote]}"], 1 - ballot.calibrated[vote].max(axis=1))
    logits = prediction.queries.logits.astype(float)
    largest = (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)).max(axis=1)
    np.testing.assert_allclose(found["softmax"], 1 - largest, atol=1e-12)


def test_areas_are_those_of_scikit_learn(digits: AttnKNN, shuffled: Prediction):
    inside = digits.predict_items()
    frame = tell_apart(inside, {"shuffled": shuffled})
    known, strange = strangeness(inside), strangeness(shuffled)
    assert frame["score"].tolist() == [*known]
    is_strange = np.repeat([0, 1], [len(inside), len(shuffled)])
    for row in frame.itertuples():
        both = np.concatenate([known[row.score], strange[row.score]])
        assert row.auroc == pytest.approx(roc_auc_score(is_strange, both), abs=1e-12)
        assert row.gap == pytest.approx(row.auroc - frame["auroc"][0], abs=1e-12)
        assert row.low <= row.gap <= row.high
    assert frame["score"][0] == f"distance to neighbor {RIVAL_K}"
    assert (frame.loc[0, ["gap", "low", "high"]] == 0).all()


def test_an_interval_is_as_wide_as_the_bootstrap_finds_it(digits: AttnKNN, shuffled: Prediction):
    inside, score = digits.predict_items(), "softmax"
    frame = tell_apart(inside, {"shuffled": shuffled}).set_index("score")
    known, strange = strangeness(inside), strangeness(shuffled)
    rival, rng, gaps = next(iter(known)), np.random.default_rng(0), []
    is_strange = np.repeat([0, 1], [len(inside), len(shuffled)])
    for _ in range(400):
        here, there = rng.integers(0, len(inside), len(inside)), rng.integers(0, len(shuffled), len(shuffled))
        ours, theirs = (
            roc_auc_score(is_strange, np.concatenate([known[one][here], strange[one][there]])) for one in (score, rival)
        )
        gaps.append(ours - theirs)
    width = frame.loc[score, "high"] - frame.loc[score, "low"]
    assert width == pytest.approx(2 * 1.96 * np.std(gaps), rel=0.2)


def test_who_belongs_cannot_be_told_from_itself(digits: AttnKNN):
    inside = digits.predict_items()
    frame = tell_apart(inside, {"the same": inside})
    np.testing.assert_allclose(frame["auroc"], 0.5, atol=1e-12)
    np.testing.assert_allclose(frame["gap"], 0, atol=1e-12)


def test_digits_without_their_shape_are_strange(digits: AttnKNN, shuffled: Prediction):
    area = tell_apart(digits.predict_items(), {"shuffled": shuffled}).set_index("score")["auroc"]
    for score in ("distance to neighbor 16", "sink of attention", "doubt of attention + averages", "softmax"):
        assert area[score] > 0.9
