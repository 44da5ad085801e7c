"""Finders: which queries they name, and in what order."""

from __future__ import annotations

import numpy as np
import pytest

from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.evaluation.finders import FINDERS, find_disagreements, find_mistakes, find_uncertain
from attnknn.prediction import Prediction
from tests.strategies import lattice_classifier


@pytest.fixture(scope="module", params=[0, 1, 2])
def prediction(request) -> Prediction:
    return lattice_classifier(request.param).predict_items(noise=LabelNoise("pair", 0.4))


def confidence(prediction: Prediction) -> list[float]:
    return [max(row) for row in prediction.ballot.calibrated["attention"].tolist()]


def test_mistakes_are_all_that_are_wrong_the_most_confident_first(prediction: Prediction):
    rows, sure = find_mistakes(prediction).tolist(), confidence(prediction)
    wrong = prediction.predicted("attention") != prediction.queries.labels
    assert {*rows} == {*np.flatnonzero(wrong).tolist()}
    assert [sure[row] for row in rows] == sorted((sure[row] for row in rows), reverse=True)


def test_the_uncertain_are_everyone_the_least_confident_first(prediction: Prediction):
    rows, sure = find_uncertain(prediction).tolist(), confidence(prediction)
    assert sorted(rows) == list(range(len(prediction)))
    assert [sure[row] for row in rows] == sorted(sure)


def test_disagreements_are_queries_with_more_than_one_answer(prediction: Prediction):
    rows, sure = find_disagreements(prediction).tolist(), confidence(prediction)
    answers = np.stack([prediction.predicted(vote) for vote in ("uniform", "distance", "attention")], axis=1)
    assert {*rows} == {row for row, said in enumerate(answers.tolist()) if len({*said}) > 1}
    assert [sure[row] for row in rows] == sorted(sure[row] for row in rows)


def test_finders_may_find_nothing(iris: AttnKNN):
    sure = iris.predict_items(k=1)
    assert find_disagreements(sure).dtype.kind == "i"
    assert all(finder(sure).ndim == 1 for finder in FINDERS.values())
    empty = iris.predict_items([])
    assert all(len(finder(empty)) == 0 for finder in FINDERS.values())
