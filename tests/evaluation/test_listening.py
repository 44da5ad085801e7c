"""What heads listen to: measured twice, and a sentence that follows the numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.evaluation.listening import ENOUGH, KINDS, Listening, listen, listen_on_test
from attnknn.models.attention import HEADS
from attnknn.models.terms import TERMS
from attnknn.prediction import Prediction
from tests.strategies import lattice_classifier, some_votes

NOISE = LabelNoise("symmetric", 0.4, seed=1)


def hearing(**coefficients: float) -> AttnKNN:
    """A classifier with one head of each name, all of which have these coefficients and no others."""
    fitted = some_votes(0, tuple(HEADS))
    row = [coefficients.get(term, 0.0) for term in fitted.attention.terms]
    attention = replace(fitted.attention, coefficients=np.tile(row, (len(HEADS), 1)))
    return lattice_classifier(0, fitted=replace(fitted, attention=attention))


def measured(**coefficients: float) -> Listening:
    return listen_on_test(hearing(**coefficients), NOISE)[0]


# ---- Every number again, neighbor by neighbor


@pytest.fixture(scope="module", params=[0, 1, 2])
def prediction(request) -> Prediction:
    return lattice_classifier(request.param).predict_items(noise=NOISE)


def test_every_number_equals_its_slow_twin(prediction: Prediction):
    queries, places = range(len(prediction)), range(prediction.k)
    for h, found in enumerate(listen(prediction)):
        spread = dict.fromkeys(prediction.terms, 0.0)
        effective, heard, wrong, right = [], [], [], []
        for b in queries:
            for name, parts in prediction.terms.items():
                spread[name] += float(np.var([parts[b, h, j] for j in places]))
            w = prediction.weights[b, h] / sum(prediction.weights[b, h])
            is_wrong = [
                prediction.seen.labels[entry] != prediction.entries.labels[entry] for entry in prediction.neighbors[b]
            ]
            heard.append(sum(w[j] for j in places if is_wrong[j]))
            wrong.append(sum(is_wrong) / prediction.k)
            effective.append(np.exp(-sum(w[j] * np.log(w[j]) for j in places if w[j] > 0)))
            right.append(np.argmax(prediction.ballot.heads.probabilities[b, h]) == prediction.queries.labels[b])
        for name, share in found.shares.items():
            assert abs(share) == pytest.approx(spread[name] / sum(spread.values()))
            assert np.sign(share) in (
                0,
                np.sign(prediction.attention.coefficients[h, prediction.attention.terms.index(name)]),
            )
        assert sum(abs(share) for share in found.shares.values()) == pytest.approx(1)
        assert (found.effective, found.heard) == pytest.approx((np.mean(effective), np.mean(heard)))
        assert (found.wrong, found.accuracy) == pytest.approx((np.mean(wrong), np.mean(right)))
        assert (found.head, found.k, found.noise) == (prediction.heads[h], prediction.k, NOISE)


# ---- The sentence


@pytest.mark.parametrize("term", TERMS)
def test_the_sentence_names_the_term_that_has_a_coefficient(term: str):
    found = measured(**{term: 5.0})
    assert found.shares[term] == pytest.approx(1)
    assert found.sentence.startswith(f"listens to {KINDS[term]}, ")


def test_the_sentence_changes_when_the_coefficients_do():
    """The head is called the same all the time: its name decides nothing."""
    shares = [measured(distance=4.0, trust=trust).shares["trust"] for trust in (0.0, 0.2, 0.5, 2.0)]
    assert shares[0] == 0
    assert (np.diff(shares) > 0).all()
    near, trusting = measured(distance=4.0, trust=0.05), measured(distance=0.2, trust=4.0)
    assert KINDS["distance"] in near.sentence
    assert KINDS["trust"] in trusting.sentence
    assert f", {near.effective:.1f} of 7" in near.sentence
    assert f"wrong and get {100 * trusting.heard:.0f} % of its weight" in trusting.sentence
    assert trusting.heard != pytest.approx(near.heard, abs=0.01)


def test_a_negative_coefficient_turns_the_sentence_round():
    found = measured(rank=-3.0)
    assert found.shares["rank"] == pytest.approx(-1)
    assert found.sentence.startswith("turns away from the first on the list, ")


def test_a_head_without_coefficients_listens_to_all_alike():
    found = measured()
    assert set(found.shares.values()) == {0.0}
    assert found.effective == pytest.approx(7)
    assert found.heard == pytest.approx(found.wrong)
    assert found.sentence.startswith("listens to all 7 neighbors nearly alike;")
    assert measured(distance=1e-3).sentence.startswith("listens to all 7 neighbors nearly alike;")


def test_what_nobody_knows_is_not_said():
    classifier = hearing(distance=4.0)
    clean = listen(classifier.predict_items(noise=LabelNoise()))[0]
    assert (clean.wrong, clean.heard) == (0, 0)
    assert "wrong" not in clean.sentence
    strangers = classifier.decide(replace(classifier.queries, labels=None), noise=NOISE)
    unknown = listen(strangers)[0]
    assert unknown.accuracy is None
    assert "right" not in unknown.sentence
    assert "alone right on" in clean.sentence


def test_every_term_has_its_words():
    assert KINDS.keys() == TERMS.keys()


# ---- Which queries


def test_few_test_items_are_all_asked_and_many_are_thinned_out(iris: AttnKNN):
    assert listen_on_test(iris, NOISE) == listen(iris.predict_items(noise=NOISE))
    wide = iris.queries.take(np.tile(np.arange(len(iris.queries)), 2 * ENOUGH // len(iris.queries) + 1))
    asked = []

    class Wide(AttnKNN):
        queries = wide

        def decide(self, queries, *arguments, **named):
            asked.append(len(queries))
            return super().decide(queries, *arguments, **named)

    listen_on_test(Wide(iris.bundle, iris.fitted, iris.card, {}), NOISE)
    assert asked == [ENOUGH]


def test_heads_are_measured_on_queries(iris: AttnKNN):
    with pytest.raises(ValueError, match="heads are measured on queries"):
        listen(iris.predict_items([]))
