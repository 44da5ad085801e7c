"""A prediction keeps its evidence: every number it hands out is one that the votes were made of."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.models.attention import HEADS
from attnknn.prediction import Prediction
from attnknn.votes import COMPARED
from tests import oracles
from tests.strategies import lattice_classifier

NOISE = LabelNoise("pair", 0.4, seed=3)
NAMES = ("ash", "birch", "cedar")


@pytest.fixture(scope="module")
def toy() -> AttnKNN:
    return lattice_classifier()


@pytest.fixture(scope="module")
def prediction(toy: AttnKNN) -> Prediction:
    return toy.predict_items(k=6, noise=NOISE, temperature=0.7)


def test_a_prediction_knows_its_shape(prediction: Prediction):
    assert len(prediction) == 12
    assert prediction.heads == tuple(HEADS)
    assert prediction.neighbors.shape == (12, 6)
    assert prediction.weights.shape == (12, 4, 6)
    assert prediction.sink.shape == (12, 4)


def test_terms_add_up_to_the_score(prediction: Prediction):
    """Law 1."""
    assert tuple(prediction.terms) == prediction.attention.terms
    np.testing.assert_allclose(sum(prediction.terms.values()), prediction.ballot.heads.scores, atol=1e-6)
    for name, part in prediction.terms.items():
        for h, head in enumerate(prediction.heads):
            assert name in HEADS[head].terms or not part[:, h].any()


def test_the_winner_is_the_most_probable_class_and_the_first_of_equals(prediction: Prediction):
    for vote in COMPARED:
        p = prediction.ballot.votes[vote].probabilities
        assert prediction.predicted(vote).tolist() == [list(row).index(max(row)) for row in p]
    np.testing.assert_array_equal(prediction.predicted(), prediction.predicted("attention"))


def test_effective_neighbors_leave_the_sink_out(prediction: Prediction):
    for vote in ("prototype", "baseline"):
        assert prediction.effective_neighbors(vote) is None
    np.testing.assert_allclose(prediction.effective_neighbors("uniform"), 6, atol=1e-9)
    for vote in ("distance", "edited", "attention", "attention_averages"):
        cast = prediction.ballot.votes[vote]
        for b, found in enumerate(prediction.effective_neighbors(vote)):
            shares = [*cast.weights[b], *([] if cast.averages is None else cast.averages[b])]
            assert found == pytest.approx(np.exp(oracles.entropy([share / sum(shares) for share in shares])))


def test_the_frame_of_neighbors_has_a_row_per_query_head_and_neighbor(toy: AttnKNN, prediction: Prediction):
    frame = prediction.neighbors_frame()
    assert len(frame) == 12 * 4 * 6
    sums = frame.groupby(["query", "head"], sort=False)["weight"].sum().to_numpy().reshape(12, 4)
    np.testing.assert_allclose(sums + prediction.sink, 1, atol=1e-9)
    terms = frame[[f"term_{name}" for name in prediction.attention.terms]].sum(axis=1)
    np.testing.assert_allclose(terms, frame["score"], atol=1e-6)
    row_of = {item: row for row, item in enumerate(toy.entries.ids.tolist())}
    for line in frame.sample(40, random_state=0).itertuples():
        b, h, j = prediction.queries.ids.tolist().index(line.query), prediction.heads.index(line.head), line.rank - 1
        entry = row_of[line.neighbor]
        assert entry == prediction.neighbors[b, j]
        assert line.weight == prediction.weights[b, h, j]
        assert line.distance == prediction.ballot.around.distances[b, j]
        assert line.clean_label == NAMES[toy.entries.labels[entry]]
        assert line.observed_label == NAMES[toy.observe(NOISE).labels[entry]]
        assert line.is_flipped == (line.clean_label != line.observed_label)
    assert frame["is_flipped"].any()


def test_the_frame_of_votes_has_a_row_per_query_vote_and_class(prediction: Prediction):
    frame = prediction.votes_frame()
    assert len(frame) == 12 * len(COMPARED) * 3
    for (query, vote), part in frame.groupby(["query", "vote"], sort=False):
        b = prediction.queries.ids.tolist().index(query)
        assert part["class"].tolist() == list(NAMES)
        assert part["probability"].tolist() == prediction.ballot.votes[vote].probabilities[b].tolist()
        assert part["calibrated"].tolist() == prediction.ballot.calibrated[vote][b].tolist()
        assert {*part["predicted"]} == {NAMES[prediction.predicted(vote)[b]]}


@pytest.mark.parametrize("row", [0, 11])
def test_one_query_as_a_document_says_what_the_arrays_say(prediction: Prediction, row: int):
    document = json.loads(json.dumps(prediction.to_dict(row), allow_nan=False))
    assert document["query"] == f"toy/test/{row}"
    assert document["label"] == NAMES[prediction.queries.labels[row]]
    facts = {name: document[name] for name in ("k", "noise_rate", "noise_kind", "seed", "temperature", "heads")}
    assert facts == {
        "k": 6,
        "noise_rate": 0.4,
        "noise_kind": "pair",
        "seed": 3,
        "temperature": 0.7,
        "heads": list(HEADS),
    }
    assert [neighbor["rank"] for neighbor in document["neighbors"]] == [1, 2, 3, 4, 5, 6]
    for j, neighbor in enumerate(document["neighbors"]):
        assert neighbor["weights"] == prediction.weights[row, :, j].tolist()
        assert neighbor["share"] == pytest.approx(prediction.ballot.votes["attention"].weights[row, j])
        assert np.allclose(np.sum(list(neighbor["terms"].values()), axis=0), neighbor["scores"], atol=1e-6)
        assert neighbor["is_flipped"] == (neighbor["clean_label"] != neighbor["observed_label"])
    assert tuple(document["votes"]) == COMPARED
    for name, vote in document["votes"].items():
        assert sum(vote["probabilities"].values()) == pytest.approx(1)
        assert sum(vote["calibrated"].values()) == pytest.approx(1)
        assert vote["predicted"] == max(vote["probabilities"], key=vote["probabilities"].get)
        assert (vote["effective_neighbors"] is None) == (name in ("prototype", "baseline"))


def test_the_document_alone_is_enough_to_cast_the_attention_vote_again(prediction: Prediction):
    """Law 1, from the outside: weights by observed label plus the sink's prior are the probabilities."""
    document = prediction.to_dict(4)
    added = dict.fromkeys(NAMES, 0.0)
    for neighbor in document["neighbors"]:
        added[neighbor["observed_label"]] += neighbor["share"]
    for name, share in zip(NAMES, prediction.seen.prior, strict=True):
        added[name] += float(np.mean(document["sink"])) * share
    assert added == pytest.approx(document["votes"]["attention"]["probabilities"], abs=1e-6)


def test_a_new_input_has_no_true_label(iris: AttnKNN):
    document = iris.predict(iris.bundle.arrays["query_inputs"][:2]).to_dict(1)
    assert document["label"] is None
    assert document["query"] == "input/1"
    json.dumps(document, allow_nan=False)
