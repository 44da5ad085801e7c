"""What people use on tables of numbers, from scikit-learn, on one dataset that is parted as `fit` parts it.

Every rival sees standardized features and has eight settings. Each is fitted on the fit part and calibrated on
the held-out part as the votes are; the one with the lowest NLL there answers for the test part.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from attnknn.arrays import tally
from attnknn.calibration import calibrate, certainty_facts, fit_calibrator
from attnknn.metrics import negative_log_likelihood
from attnknn.training.parts import Parts

Floats = NDArray[np.float64]
Ask = Callable[[str], tuple[Floats, Floats]]
"""From the name of a part to probabilities (B, C), and distances to neighbors (B, K): zeros where none are asked."""

TUNED = ("kNN, uniform", "kNN, 1/d", "MLP", "HistGradientBoosting")
K = 16  # of the neighbors that nobody tunes
NEIGHBORS = (1, 5, 10, 20, 40, 60, 100, 200)
NETWORKS = tuple(product(((64, 64), (128, 128)), (1e-3, 1.0), (400, 1600)))
"""Hidden layers, weight decay, and steps of Adam, which make epochs according to the number of items."""
FORESTS = tuple(product((0.03, 0.1), (8, 31), (60, 200)))
"""Learning rate, leaves per tree, and trees per class."""


def ask_rivals(parts: Parts, seed: int) -> dict[str, tuple[str, Floats]]:
    """Ask each rival: by its name, the setting it kept, and its calibrated probabilities on test."""
    scaler = StandardScaler().fit(parts.inputs("fit").astype(np.float64))
    scaled = cache(lambda part: scaler.transform(parts.inputs(part).astype(np.float64)))
    trials = (
        near(parts, scaled, uniform, NEIGHBORS),
        near(parts, scaled, by_distance, NEIGHBORS),
        models(parts, scaled, NETWORKS, partial(network, len(parts.rows["fit"]), seed)),
        models(parts, scaled, FORESTS, partial(forest, seed)),
        near(parts, scaled, uniform, (K,)),
        near(parts, scaled, by_distance, (K,)),
    )
    names = (*TUNED, f"kNN, uniform, k = {K}", f"kNN, 1/d, k = {K}")
    return {name: best(parts, settings) for name, settings in zip(names, trials, strict=True)}


def best(parts: Parts, trials: Iterator[tuple[str, Ask]]) -> tuple[str, Floats]:
    """Calibrate each setting on held-out items, and ask the one with the lowest NLL there about test."""
    labels, tried = parts.labels("held_out"), []
    for setting, ask in trials:
        p, distances = ask("held_out")
        facts = certainty_facts(distances, p)
        calibrator = fit_calibrator(p, facts, labels)
        tried.append((negative_log_likelihood(calibrate(p, facts, calibrator), labels), setting, ask, calibrator))
    _, setting, ask, calibrator = min(tried, key=lambda one: one[0])
    p, distances = ask("test")
    return setting, calibrate(p, certainty_facts(distances, p), calibrator)


def near(
    parts: Parts, scaled: Callable[[str], Floats], weights: Callable[[Floats], Floats], ks: Sequence[int]
) -> Iterator[tuple[str, Ask]]:
    """Vote among the k nearest fit items, for several k; one search serves them all."""
    search = NearestNeighbors(n_neighbors=max(ks), algorithm="brute").fit(scaled("fit"))
    find = cache(lambda part: search.kneighbors(scaled(part)))

    def vote(part: str, k: int) -> tuple[Floats, Floats]:
        distances, found = (array[:, :k] for array in find(part))
        return tally(weights(distances), parts.labels("fit")[found], parts.dataset.n_classes), distances

    return ((f"k = {k}", partial(vote, k=k)) for k in ks)


def uniform(distances: Floats) -> Floats:
    """Give each 1/k."""
    return np.full(distances.shape, 1 / distances.shape[1])


def by_distance(distances: Floats) -> Floats:
    """Give each 1/d, scaled to sum to one; an item at no distance decides, as in scikit-learn."""
    closeness = 1 / np.maximum(distances, 1e-9)
    return closeness / closeness.sum(axis=1, keepdims=True)


def models(
    parts: Parts, scaled: Callable[[str], Floats], settings: Sequence[tuple], build: Callable
) -> Iterator[tuple[str, Ask]]:
    """Fit a model of scikit-learn's with each setting."""
    for setting in settings:
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # its steps are counted on purpose
            model = build(*setting).fit(scaled("fit"), parts.labels("fit"))
        yield str(setting), partial(foretell, parts, scaled, model)


def foretell(parts: Parts, scaled: Callable[[str], Floats], model: MLPClassifier, part: str) -> tuple[Floats, Floats]:
    """Ask a fitted model, which knows no distances."""
    return model.predict_proba(scaled(part)), np.zeros((len(parts.rows[part]), 1))


def network(size: int, seed: int, hidden: tuple[int, ...], decay: float, steps: int) -> MLPClassifier:
    """Describe a multilayer perceptron that takes so many steps on that many items."""
    batch = 32 if size < 2000 else 256
    epochs = max(1, round(steps * batch / size))
    return MLPClassifier(hidden, alpha=decay, batch_size=batch, max_iter=epochs, random_state=seed)


def forest(seed: int, rate: float, leaves: int, trees: int) -> HistGradientBoostingClassifier:
    """Describe gradient boosting that plants so many trees."""
    return HistGradientBoostingClassifier(
        learning_rate=rate, max_leaf_nodes=leaves, max_iter=trees, early_stopping=False, random_state=seed
    )
