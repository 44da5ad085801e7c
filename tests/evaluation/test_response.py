"""How one query answers to growing noise: the same numbers as asking at every rate."""

from __future__ import annotations

import pytest

from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.errors import UnknownItem
from attnknn.evaluation.response import RACING, RATES, follow, respond_to_noise
from tests.strategies import lattice_classifier

KIND = LabelNoise("pair", 0.0, seed=4)


@pytest.fixture(scope="module")
def toy() -> AttnKNN:
    return lattice_classifier()


@pytest.mark.parametrize("item", ["toy/test/0", "toy/test/7", "toy/train/3"])
def test_the_curve_is_what_asking_at_every_rate_gives(toy: AttnKNN, item: str):
    response = respond_to_noise(toy, item, 6, KIND, 0.8)
    assert response.rates == RATES
    assert tuple(response.probability) == RACING
    for vote in RACING:
        left = None
        for place, rate in enumerate(RATES):
            prediction = toy.predict_items([item], 6, LabelNoise("pair", rate, 4), 0.8)
            truth = prediction.queries.labels[0]
            assert response.probability[vote][place] == prediction.ballot.votes[vote].probabilities[0, truth]
            if left is None and prediction.predicted(vote)[0] != truth:
                left = rate
        assert response.leaves[vote] == left


def test_the_noise_of_the_view_gives_kind_and_seed_but_not_the_rate(toy: AttnKNN):
    one = respond_to_noise(toy, "toy/test/1", 5, LabelNoise("symmetric", 0.7, 2), rates=(0.0, 0.5))
    two = respond_to_noise(toy, "toy/test/1", 5, LabelNoise("symmetric", 0.1, 2), rates=(0.0, 0.5))
    assert one == two
    assert one.rates == (0.0, 0.5)


def test_without_noise_unanimous_neighbors_are_certain(iris: AttnKNN):
    """At rate 0 every neighbor carries its clean label; a plain vote of one class has probability one."""
    prediction = iris.predict_items(k=5)
    labels = prediction.ballot.around.labels
    sure = (labels == prediction.queries.labels[:, None]).all(axis=1)
    item = str(prediction.queries.ids[sure.argmax()])
    response = respond_to_noise(iris, item, 5, LabelNoise(), votes=("uniform",))
    assert response.probability["uniform"][0] == pytest.approx(1)
    assert response.leaves["uniform"] != 0.0


def test_an_unknown_item_is_a_visitors_situation(toy: AttnKNN):
    with pytest.raises(UnknownItem):
        respond_to_noise(toy, "toy/test/99", 5, KIND)


def test_where_nobody_knows_the_label_attentions_first_answer_is_followed(toy: AttnKNN):
    key, logits = toy.queries.keys[:1], toy.queries.logits[:1]
    known = respond_to_noise(toy, str(toy.queries.ids[0]), 6, KIND)
    assert known.is_truth
    unknown = follow(lambda noise: toy.predict_embedded(key, logits, 6, noise), KIND)
    answer = toy.predict_items([str(toy.queries.ids[0])], 6).predicted("attention")[0]
    assert (unknown.followed, unknown.is_truth) == (answer, False)
    assert unknown.leaves["attention"] != 0.0
    for place, rate in enumerate(RATES):
        prediction = toy.predict_embedded(key, logits, 6, LabelNoise("pair", rate, 4))
        assert unknown.probability["uniform"][place] == prediction.ballot.votes["uniform"].probabilities[0, answer]
