"""From one query to what the board draws. Pure: numbers in, plain data out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.bank.walk import NoiseWalk
from attnknn.bundle import POOL, Queries
from attnknn.classifier import AttnKNN
from attnknn.config import NOISE_KINDS
from attnknn.data.telling import most_telling
from attnknn.evaluation.listening import listen_on_test
from attnknn.evaluation.response import RACING
from attnknn.ui import live, state
from attnknn.ui.atlas import Atlas, pack_atlas
from attnknn.ui.board import BoardData, Feature, Picker, Source
from attnknn.ui.labels import write_labels
from attnknn.ui.palette import class_colors
from attnknn.votes import COMPARED, TITLES

FEATURES_ON_A_CARD = 4
SHOWN_FIRST = (*RACING, *(vote for vote in COMPARED if vote not in RACING))


@dataclass(frozen=True)
class Known:
    """What is known of a checkpoint, whatever is asked of it.

    Attributes:
        digest: Names its numbers.
        listening: What each head was found to listen to, by name; see `attnknn.evaluation.listening`.
        means: Mean input of each class, by labels before noise, shape (C, ...); zeros for a class without entries.
        brightest: The largest input, which is drawn as 255, for images.
        telling: Columns of a table, those first that tell classes apart best; empty for images.
    """

    digest: str
    listening: Mapping[str, str]
    means: NDArray[np.float64]
    brightest: float
    telling: Sequence[int]


def know(classifier: AttnKNN, digest: str) -> Known:
    """Find out what is worth keeping of a checkpoint."""
    inputs, labels = classifier.bundle.arrays["entry_inputs"], classifier.entries.labels
    means = np.zeros((len(classifier.class_names), *inputs.shape[1:]))
    for c in np.unique(labels):
        means[c] = inputs[labels == c].mean(axis=0)
    listening = {one.head: one.sentence for one in listen_on_test(classifier)}
    telling = most_telling(inputs.astype(np.float64), labels) if inputs.ndim == 2 else []
    return Known(digest, listening, means, max(float(inputs.max()), 1.0), telling)


def present(
    classifier: AttnKNN,
    query: Queries,
    walk: NoiseWalk,
    setting: state.Setting,
    known: Known,
    picker: Picker,
    shown: NDArray[Any] | None = None,
    heard: int = 0,
) -> BoardData:
    """Lay out one query for the board.

    Args:
        classifier: Gives the fitted numbers, and the inputs that are shown.
        query: One item and its pool.
        walk: The bank under the seed of the noise, at every stop.
        setting: How the votes are cast to begin with.
        known: `know(classifier, …)`.
        picker: What can be looked at instead.
        shown: The raw image of a query that is no item of the bundle.
        heard: The last thing that the board said and that this answers.
    """
    payload = live.lay_out(walk, query, classifier.fitted, setting.noise, setting.flips)
    is_image = classifier.card["dataset"]["kind"] == "image"
    item, nearest, classes = str(query.ids[0]), payload["ids"], classifier.class_names
    features = None if is_image else _Features(classifier, [item, *nearest], known.telling)
    return BoardData(
        kind="image" if is_image else "table",
        classes=list(classes),
        colors=class_colors(len(classes)),
        query={
            "id": item,
            "label": None if query.labels is None else classes[query.labels[0]],
            "values": features.all_of(item) if features else None,
        },
        picker=picker,
        heads=[{"name": name, "why": known.listening[name]} for name in classifier.fitted.attention.heads],
        votes=[{"name": name, "title": TITLES[name]} for name in SHOWN_FIRST],
        values=[features.few_of(one) for one in nearest] if features else None,
        atlas=_atlas(classifier, classifier.bundle.input_of(item) if shown is None else shown, nearest, known)
        if is_image
        else None,
        source=describe_source(classifier, known.digest),
        controls={
            "largest_k": min(POOL, classifier.queries.pool.k),
            "temperatures": list(state.TEMPERATURES),
            "highest_rate": state.HIGHEST_RATE,
            "kinds": list(NOISE_KINDS),
            "largest_seed": state.LARGEST_SEED,
            "most_flips": state.MOST_FLIPS,
            "most_dropped": len(nearest) - 1,
        },
        setting={
            "k": setting.k,
            "temperature": setting.temperature,
            "rate": setting.noise.rate,
            "kind": setting.noise.kind,
            "seed": setting.noise.seed,
            "flips": dict(setting.flips),
            "dropped": list(setting.dropped),
            "muted": list(setting.muted),
            "averages": setting.averages,
            "neighbor": setting.neighbor,
        },
        heard=heard,
        live=payload,
    )


def describe_source(classifier: AttnKNN, digest: str) -> Source:
    """Say what a view is computed from: whatever no control changes."""
    held_out, trained = classifier.card["sizes"]["held_out"], write_labels(classifier.config)
    return {
        "search": f"exact search over {len(classifier.entries):,} entries",
        "labels": f"trained with labels: {trained}" if trained else "",
        "fit": (
            f"attention: {len(classifier.fitted.attention.heads)} heads, fitted on {held_out:,} held-out queries · "
            f"checkpoint {classifier.name} ({digest})"
        ),
    }


class _Features:
    """Names and values of table rows, and the order in which columns tell classes apart."""

    def __init__(self, classifier: AttnKNN, ids: Sequence[str], order: Sequence[int]) -> None:
        self.names = classifier.card["dataset"]["feature_names"]
        self.rows = {item: np.asarray(classifier.bundle.input_of(item), np.float64) for item in ids}
        self.order = order

    def all_of(self, item: str) -> list[Feature]:
        """Every feature of a row, in the order of the dataset."""
        return [(name, f"{value:.4g}") for name, value in zip(self.names, self.rows[item], strict=True)]

    def few_of(self, item: str) -> list[Feature]:
        """The features that tell classes apart best, as many as fit on a card."""
        return [(self.names[f], f"{self.rows[item][f]:.4g}") for f in self.order[:FEATURES_ON_A_CARD]]


def _atlas(classifier: AttnKNN, first: NDArray[Any], ids: Sequence[str], known: Known) -> Atlas:
    """Pack query, neighbors and class means, stretched so that the brightest pixel of the bank is 255."""
    images = np.concatenate([first[None], [classifier.bundle.input_of(item) for item in ids], known.means])
    return pack_atlas(np.clip(images * (255 / known.brightest), 0, 255).astype(np.uint8))
