"""Boards made of random numbers that keep the laws: what a test needs to draw."""

from __future__ import annotations

import numpy as np

from attnknn.ui.atlas import pack_atlas
from attnknn.ui.board import BoardData
from attnknn.ui.palette import class_colors

TERMS = ["distance", "rank", "trust", "agreement", "prototype"]


def make_board(k=16, n_classes=10, n_heads=3, kind="image", seed=0, classes=None) -> BoardData:
    rng = np.random.default_rng(seed)
    classes = classes or [str(c) for c in range(n_classes)]
    labels, clean = rng.integers(0, len(classes), (2, k))
    scores = rng.normal(size=(len(TERMS), n_heads, k))
    sink = rng.uniform(0.01, 0.2, n_heads)
    weights = (1 - sink[:, None]) * softmax(scores.sum(axis=0))
    return {
        "kind": kind,
        "classes": classes,
        "colors": class_colors(len(classes)),
        "query": {
            "id": f"test/{seed}",
            "label": classes[0],
            "tile": 0 if kind == "image" else None,
            "values": rows(kind, 20),
        },
        "heads": [
            {
                "name": f"head {h}",
                "why": f"Listens for {h}.",
                "sink": float(sink[h]),
                "effective": effective(weights[h]),
            }
            for h in range(n_heads)
        ],
        "terms": TERMS,
        "neighbors": [
            {
                "id": f"train/{j}",
                "rank": j + 1,
                "distance": 0.2 + j / 100,
                "clean_label": classes[clean[j]],
                "observed_label": classes[labels[j]],
                "is_flipped": bool(labels[j] != clean[j]),
                "weights": weights[:, j].tolist(),
                "share": float(weights[:, j].mean()),
                "terms": {term: scores[t, :, j].tolist() for t, term in enumerate(TERMS)},
                "tile": j + 1 if kind == "image" else None,
                "values": rows(kind, 4),
            }
            for j in range(k)
        ],
        "votes": [
            over_neighbors("uniform", np.full(k, 1 / k), 0.0, labels, classes),
            over_neighbors("distance", softmax(rng.normal(size=k)), 0.0, labels, classes),
            over_neighbors("attention", weights.mean(axis=0), float(sink.mean()), labels, classes),
            {**over_neighbors("prototype", softmax(rng.normal(size=k)), 0.0, labels, classes), "weights": None},
        ],
        "curve": {
            "rates": [0.0, 0.3, 0.6, 0.9],
            "rate": 0.45,
            "probability": {name: rng.uniform(size=4).tolist() for name in ("uniform", "distance", "attention")},
            "leaves": {"uniform": 0.3, "distance": 0.6, "attention": None},
        },
        "atlas": pack_atlas(rng.integers(0, 256, (k + 1, 8, 8), dtype=np.uint8)) if kind == "image" else None,
        "provenance": "exact search over 1,005 entries",
        "selected": None,
    }


def over_neighbors(name, weights, sink, labels, classes):
    probabilities = np.bincount(labels, weights, len(classes)) + sink / len(classes)
    winner = int(probabilities.argmax())
    return {
        "name": name,
        "title": name,
        "probabilities": probabilities.tolist(),
        "predicted": classes[winner],
        "is_correct": winner == 0,
        "weights": weights.tolist(),
        "sink": sink,
        "effective": effective(weights),
    }


def rows(kind, n):
    return [(f"mean radius {i}", f"{i}.5 mm") for i in range(n)] if kind == "table" else None


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def effective(weights):
    part = weights[weights > 0] / weights.sum()
    return float(np.exp(-(part * np.log(part)).sum()))
