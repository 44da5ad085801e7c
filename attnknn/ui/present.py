"""From a prediction to what the board draws. Pure: numbers in, plain data out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from attnknn.arrays import entropy
from attnknn.classifier import AttnKNN
from attnknn.data.telling import most_telling
from attnknn.evaluation.response import RACING, NoiseResponse
from attnknn.prediction import Prediction
from attnknn.ui.atlas import Atlas, pack_atlas
from attnknn.ui.board import BoardData, Curve, Feature, Head, Neighbor, Vote
from attnknn.ui.labels import write_labels
from attnknn.ui.palette import class_colors
from attnknn.votes import COMPARED, TITLES

FEATURES_ON_A_CARD = 4
SHOWN_FIRST = (*RACING, *(vote for vote in COMPARED if vote not in RACING))


def present(
    classifier: AttnKNN,
    prediction: Prediction,
    response: NoiseResponse,
    provenance: str,
    listening: Mapping[str, str],
    selected: str | None,
    shown: NDArray[Any] | None = None,
) -> BoardData:
    """Lay out one query for the board.

    Args:
        classifier: Gives the inputs that are shown.
        prediction: Of one query.
        response: The same query under growing noise.
        provenance: One line: search, n, noise and seed, checkpoint.
        listening: What each head was found to listen to, by name; see `attnknn.evaluation.listening`.
        selected: Id of the chosen neighbor; the nearest if None.
        shown: The raw image of a query that is no item of the bundle.
    """
    facts = prediction.to_dict()
    is_image = classifier.card["dataset"]["kind"] == "image"
    ids = [facts["query"], *(neighbor["id"] for neighbor in facts["neighbors"])]
    features = _Features(classifier, ids) if not is_image else None
    return BoardData(
        kind="image" if is_image else "table",
        classes=list(prediction.class_names),
        colors=class_colors(len(prediction.class_names)),
        query={
            "id": facts["query"],
            "label": facts["label"],
            "tile": 0 if is_image else None,
            "values": features.all_of(facts["query"]) if features else None,
        },
        heads=_heads(prediction, listening),
        terms=list(prediction.terms),
        neighbors=[_neighbor(facts, place, features) for place in range(prediction.k)],
        votes=[_vote(prediction, facts, name) for name in SHOWN_FIRST],
        curve=_curve(prediction, response),
        atlas=_atlas(classifier, ids, shown) if is_image else None,
        provenance=provenance,
        selected=selected if selected in ids[1:] else ids[1],
        temperature=prediction.temperature,
    )


def describe_source(classifier: AttnKNN, prediction: Prediction, digest: str) -> str:
    """Say in one line what a view was computed from."""
    held_out = classifier.card["sizes"]["held_out"]
    return (
        f"exact search over {len(classifier.entries):,} entries · {_labels(classifier, prediction)} · "
        f"attention: {len(prediction.heads)} heads, fitted on {held_out:,} held-out queries · "
        f"checkpoint {classifier.name} ({digest})"
    )


def _labels(classifier: AttnKNN, prediction: Prediction) -> str:
    """Say whose labels vote: those that training saw, and what noise was added to them since."""
    trained, noise = write_labels(classifier.config), prediction.noise
    added = f"{noise.kind} label noise {noise.rate:.0%}, seed {noise.seed}, nested draws" if noise.rate else ""
    if not trained:
        return added or "no label noise"
    return f"trained with labels: {trained} · {added or 'no label noise'} added"


class _Features:
    """Names and values of table rows, and which of them tell these rows apart."""

    def __init__(self, classifier: AttnKNN, ids: list[str]) -> None:
        self.names = classifier.card["dataset"]["feature_names"]
        self.rows = {item: np.asarray(classifier.bundle.input_of(item), np.float64) for item in ids}
        inputs = classifier.bundle.arrays["entry_inputs"].astype(np.float64)
        self.order = most_telling(inputs, classifier.entries.labels)

    def all_of(self, item: str) -> list[Feature]:
        """Every feature of a row, in the order of the dataset."""
        return [(name, f"{value:.4g}") for name, value in zip(self.names, self.rows[item], strict=True)]

    def few_of(self, item: str) -> list[Feature]:
        """The features that tell classes apart best, as many as fit on a card."""
        return [(self.names[f], f"{self.rows[item][f]:.4g}") for f in self.order[:FEATURES_ON_A_CARD]]


def _atlas(classifier: AttnKNN, ids: list[str], shown: NDArray[Any] | None) -> Atlas:
    """Pack the query and its neighbors, stretched so that the brightest pixel of the bank is 255."""
    brightest = max(int(classifier.bundle.arrays["entry_inputs"].max()), 1)
    first = classifier.bundle.input_of(ids[0]) if shown is None else shown
    images = np.stack([first, *(classifier.bundle.input_of(item) for item in ids[1:])]).astype(np.float64)
    return pack_atlas(np.clip(images * (255 / brightest), 0, 255).astype(np.uint8))


def _heads(prediction: Prediction, listening: Mapping[str, str]) -> list[Head]:
    weights, sink = prediction.weights[0], prediction.sink[0]
    effective = np.exp(entropy(weights / weights.sum(axis=1, keepdims=True)))
    return [
        {"name": name, "why": listening[name], "sink": float(sink[h]), "effective": float(effective[h])}
        for h, name in enumerate(prediction.heads)
    ]


def _neighbor(facts: dict[str, Any], place: int, features: _Features | None) -> Neighbor:
    neighbor = {key: value for key, value in facts["neighbors"][place].items() if key != "scores"}
    neighbor["tile"] = None if features else place + 1
    neighbor["values"] = features.few_of(neighbor["id"]) if features else None
    return Neighbor(**neighbor)  # type: ignore[typeddict-item]


def _vote(prediction: Prediction, facts: dict[str, Any], name: str) -> Vote:
    cast, said = prediction.ballot.votes[name], facts["votes"][name]
    is_race: Literal[True, False] = name in RACING
    return {
        "name": name,
        "title": TITLES[name],
        "probabilities": list(said["probabilities"].values()),
        "predicted": said["predicted"],
        "is_correct": None if facts["label"] is None else said["predicted"] == facts["label"],
        "weights": cast.weights[0].tolist() if is_race and cast.weights is not None else None,
        "sink": 0.0 if cast.sink is None else float(cast.sink[0]),
        "effective": said["effective_neighbors"],
    }


def _curve(prediction: Prediction, response: NoiseResponse) -> Curve:
    answer = f"“{prediction.class_names[response.followed]}”, attention's answer,"
    return {
        "subject": "the true label" if response.is_truth else answer,
        "rates": list(response.rates),
        "rate": prediction.noise.rate,
        "probability": {vote: list(line) for vote, line in response.probability.items()},
        "leaves": response.leaves,
    }
