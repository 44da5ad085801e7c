"""Boards of a random but lawful bank, which was never trained: what a test draws, and what Python says of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

from attnknn.ballot import FittedVotes
from attnknn.bank import entry_neighborhoods, search_exact
from attnknn.bundle import POOL, Bundle
from attnknn.by_hand import ByHand, decide_by_hand
from attnknn.calibration import Calibrator
from attnknn.classifier import AttnKNN
from attnknn.config import TrainingConfig
from attnknn.models.attention import Attention
from attnknn.models.terms import TERMS
from attnknn.prediction import Prediction
from attnknn.ui import live
from attnknn.ui.board import BoardData, Picker
from attnknn.ui.present import Known, present
from attnknn.ui.state import Setting
from attnknn.votes import COMPARED
from tests.strategies import unit

DIMENSION = 8
N_FEATURES = 20


@dataclass(frozen=True)
class World:
    """A bank with one query, whose entries are called train/0, train/1, … by their distance to it."""

    trained: AttnKNN
    known: Known

    @property
    def query(self) -> str:
        return str(self.trained.queries.ids[0])

    def board(self, setting: Setting, query: str | None = None, heard: int = 0) -> BoardData:
        found, walk = self.trained.ask([query or self.query]), live.walk(self.trained, setting.noise.seed)
        picker: Picker = {"ids": [self.query], "finders": ["random", "mistakes"], "words": ""}
        return present(self.trained, found, walk, setting, self.known, picker, heard=heard)

    def decide(self, setting: Setting) -> Prediction:
        by_hand, found = ByHand(setting.flips, setting.dropped, setting.muted), self.trained.ask([self.query])
        return decide_by_hand(self.trained, found, by_hand, setting.k, setting.noise, setting.temperature)


def make_board(
    k=16, n_classes=10, n_heads=3, kind="image", seed=0, classes=None, query=None, heard=0, **setting
) -> BoardData:
    """A board of `make_world`, under the `attnknn.ui.state.Setting` that is left."""
    world = make_world(n_classes, n_heads, kind, seed, classes and tuple(classes))
    return world.board(Setting(k, **setting), query, heard)


@lru_cache
def make_world(n_classes=10, n_heads=3, kind="image", seed=0, classes=None, n=160) -> World:
    """A bank of at least n entries, two of each class; its pictures are dots, or for the kind "photo" photographs."""
    rng = np.random.default_rng(seed)
    classes = classes or tuple(str(c) for c in range(n_classes))
    n_classes, n = len(classes), max(n, 2 * len(classes))
    centers = rng.normal(size=(n_classes, DIMENSION))
    labels = rng.permutation(np.arange(n) % n_classes)
    keys = unit(centers[labels] + rng.normal(size=(n, DIMENSION)))
    query = unit(centers[:1] + 0.5 * rng.normal(size=(1, DIMENSION)))
    order = np.argsort(-(keys @ query[0]))
    labels, keys = labels[order].astype(np.int32), keys[order].astype(np.float32)
    ids = np.array([f"train/{j}" for j in range(n)])
    found = search_exact(keys, query, POOL, ids)
    inputs = INPUTS[kind](rng, n + 1)
    arrays = {
        "entry_ids": np.char.encode(ids),
        "entry_keys": keys,
        "entry_labels": labels,
        "entry_groups": np.arange(n, dtype=np.int32),
        "entry_neighborhoods": entry_neighborhoods(keys, ids),
        "entry_logits": rng.normal(size=(n, n_classes)).astype(np.float32),
        "entry_inputs": inputs[1:],
        "query_ids": np.array([f"test/{seed}".encode()]),
        "query_keys": query.astype(np.float32),
        "query_labels": np.zeros(1, np.int32),
        "query_neighbors": found.entries.astype(np.int32),
        "query_distances": found.distances.astype(np.float32),
        "query_logits": rng.normal(size=(1, n_classes)).astype(np.float32),
        "query_inputs": inputs[:1],
        "class_confusion": rng.dirichlet(np.ones(n_classes), n_classes).astype(np.float32),
    }
    fitted = some_votes(rng, tuple(f"head {h}" for h in range(n_heads)))
    card = {
        "name": "random",
        "config": TrainingConfig("random").to_dict(),
        "dataset": {
            "kind": "table" if kind == "table" else "image",
            "feature_names": [f"mean radius {i}" for i in range(N_FEATURES)],
        },
        "sizes": {"held_out": 40},
    }
    listening = {head: f"listens for {head}" for head in fitted.attention.heads}
    means, telling = inputs[:n_classes].astype(np.float64), range(N_FEATURES if kind == "table" else 0)
    known = Known("0" * 12, listening, means, 255, telling)
    return World(AttnKNN(Bundle(arrays, classes), fitted, card, {}), known)


def crop_photographs(rng: np.random.Generator, n: int) -> np.ndarray:
    """Cut 32 × 32 pixels out of the photographs that come with scikit-learn, at a third of their size."""
    photographs = [np.asarray(Image.fromarray(one).reduce(3)) for one in load_sample_images().images]
    height, width = photographs[0].shape[:2]
    corners = rng.integers(0, (len(photographs), height - 31, width - 31), (n, 3))
    return np.stack([photographs[which][top : top + 32, left : left + 32] for which, top, left in corners])


INPUTS = {
    "image": lambda rng, n: rng.integers(0, 17, (n, 8, 8)).astype(np.uint8),
    "photo": crop_photographs,
    "table": lambda rng, n: rng.normal(size=(n, N_FEATURES)),
}


def some_votes(rng: np.random.Generator, heads: tuple[str, ...]) -> FittedVotes:
    """Numbers as sharp as fitted ones, under which each head sees three terms."""
    terms, n_heads = tuple(TERMS), len(heads)
    is_seen = np.array([np.isin(terms, rng.choice(terms, 3, replace=False)) for _ in heads])

    def attention(**seats) -> Attention:
        theta, sink = rng.uniform(0, 3, is_seen.shape) * is_seen, rng.uniform(-1.2, 0, (n_heads, 4))
        return Attention(heads, terms, theta, sink, metric=rng.normal(size=(3, DIMENSION)), **seats)

    seats = {"seat": rng.normal(size=(n_heads, 2)), "pull": rng.uniform(0, 5, (n_heads, 2))}
    calibrators = {vote: Calibrator(rng.uniform(-2, 0.3, 8), rng.uniform(-0.2, 0.2, 8)) for vote in COMPARED}
    return FittedVotes(3.5, 9.0, attention(), attention(**seats), calibrators)
