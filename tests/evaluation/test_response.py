"""How one query answers to growing noise: the same numbers as asking at every rate."""

from __future__ import annotations

import pytest

from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.evaluation.response import RACING, RATES, respond_to_noise
from tests.strategies import lattice_classifier

KIND = LabelNoise("pair", 0.0, seed=4)


@pytest.fixture(scope="module")
def toy() -> AttnKNN:
    return lattice_classifier()


@pytest.mark.parametrize("item", ["toy/test/0", "toy/test/7", "toy/train/3"])
def test_the_curve_is_what_asking_at_every_rate_gives(toy: AttnKNN, item: str):
    response = respond_to_noise(toy, toy.ask([item], 6), 6, KIND, 0.8)
    assert response.rates == RATES
    assert tuple(response.probability) == RACING
    for vote in RACING:
        left = None
        for place, rate in enumerate(RATES):
            prediction = toy.predict_items([item], 6, LabelNoise("pair", rate, 4), 0.8)
            truth = prediction.queries.labels[0]
            assert response.probability[vote][place] == pytest.approx(
                prediction.ballot.votes[vote].probabilities[0, truth], abs=1e-12
            )
            if left is None and prediction.predicted(vote)[0] != truth:
                left = rate
        assert response.leaves[vote] == left


def test_the_noise_of_the_view_gives_kind_and_seed_but_not_the_rate(toy: AttnKNN):
    item = toy.ask(["toy/test/1"], 5)
    one = respond_to_noise(toy, item, 5, LabelNoise("symmetric", 0.7, 2), rates=(0.0, 0.5))
    two = respond_to_noise(toy, item, 5, LabelNoise("symmetric", 0.1, 2), rates=(0.0, 0.5))
    assert one == two
    assert one.rates == (0.0, 0.5)


def test_without_noise_unanimous_neighbors_are_certain(iris: AttnKNN):
    """At rate 0 every neighbor carries its clean label; a plain vote of one class has probability one."""
    prediction = iris.predict_items(k=5)
    labels = prediction.ballot.around.labels
    sure = (labels == prediction.queries.labels[:, None]).all(axis=1)
    item = str(prediction.queries.ids[sure.argmax()])
    response = respond_to_noise(iris, iris.ask([item], 5), 5, LabelNoise(), votes=("uniform",))
    assert response.probability["uniform"][0] == pytest.approx(1)
    assert response.leaves["uniform"] != 0.0


def test_votes_that_look_beyond_the_neighbors_have_no_curve(toy: AttnKNN):
    with pytest.raises(ValueError, match="edited"):
        respond_to_noise(toy, toy.ask(["toy/test/1"], 5), 5, KIND, votes=("edited",))


def test_where_nobody_knows_the_label_attentions_first_answer_is_followed(toy: AttnKNN):
    key, logits = toy.queries.keys[:1], toy.queries.logits[:1]
    guest = toy.ask_embedded(key, logits, 6)
    known = respond_to_noise(toy, toy.ask([str(toy.queries.ids[0])], 6), 6, KIND)
    assert known.is_truth
    unknown = respond_to_noise(toy, guest, 6, KIND)
    answer = toy.predict_items([str(toy.queries.ids[0])], 6).predicted("attention")[0]
    assert (unknown.followed, unknown.is_truth) == (answer, False)
    assert unknown.leaves["attention"] != 0.0
    for place, rate in enumerate(RATES):
        prediction = toy.decide(guest, 6, LabelNoise("pair", rate, 4))
        said = prediction.ballot.votes["uniform"].probabilities[0, answer]
        assert unknown.probability["uniform"][place] == pytest.approx(said, abs=1e-12)
