"""Clouds of points in the plane, where everything can be seen at once.

Coordinates are rounded to four decimals, so that the last bit of a platform's sine does not change
the hash of a dataset.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnknn.data.dataset import Dataset, DatasetDescription, make_dataset
from attnknn.data.registry import register_dataset, sklearn_datasets

N_POINTS = 600
SEED = 0
GENERATED_LICENCE = "MIT, as this project (generated)"


@register_dataset(
    "moons",
    title="Two moons",
    kind="points",
    n_items=N_POINTS,
    n_classes=2,
    shape=(2,),
    licence=GENERATED_LICENCE,
    source="Generated with scikit-learn's make_moons, noise 0.2",
)
def build_moons(description: DatasetDescription) -> Dataset:
    """Build two half circles that reach into each other."""
    points, labels = sklearn_datasets().make_moons(N_POINTS, noise=0.2, random_state=SEED)
    return _points(description, points, labels, ("upper moon", "lower moon"))


@register_dataset(
    "spirals",
    title="Three spirals",
    kind="points",
    n_items=N_POINTS,
    n_classes=3,
    shape=(2,),
    licence=GENERATED_LICENCE,
    source="Generated: three arms turning by 1.1 π, with normal noise of 0.04",
)
def build_spirals(description: DatasetDescription) -> Dataset:
    """Build three arms that wind around one center.

    point = r (cos a, sin a) + noise, with a = 2π arm / 3 + 1.1 π r and r from 0.1 to 1
    """
    random = np.random.RandomState(SEED)  # whose numbers NumPy promises never to change
    arms = np.arange(N_POINTS) % 3
    radii = random.uniform(0.1, 1.0, N_POINTS)
    angles = 2 * np.pi * arms / 3 + 1.1 * np.pi * radii
    points = radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = points + 0.04 * random.standard_normal((N_POINTS, 2))
    return _points(description, points, arms, ("first arm", "second arm", "third arm"))


@register_dataset(
    "circles",
    title="Two circles",
    kind="points",
    n_items=N_POINTS,
    n_classes=2,
    shape=(2,),
    licence=GENERATED_LICENCE,
    source="Generated with scikit-learn's make_circles, noise 0.1, inner circle half the size",
)
def build_circles(description: DatasetDescription) -> Dataset:
    """Build one circle around another."""
    points, labels = sklearn_datasets().make_circles(N_POINTS, noise=0.1, factor=0.5, random_state=SEED)
    return _points(description, points, labels, ("outer circle", "inner circle"))


@register_dataset(
    "blobs",
    title="Four blobs",
    kind="points",
    n_items=N_POINTS,
    n_classes=4,
    shape=(2,),
    licence=GENERATED_LICENCE,
    source="Generated with scikit-learn's make_blobs, centers at (±1, ±1), deviation 0.55",
)
def build_blobs(description: DatasetDescription) -> Dataset:
    """Build four round clouds whose edges overlap."""
    centers = [(-1, -1), (1, -1), (-1, 1), (1, 1)]
    points, labels = sklearn_datasets().make_blobs(N_POINTS, centers=centers, cluster_std=0.55, random_state=SEED)
    return _points(description, points, labels, ("lower left", "lower right", "upper left", "upper right"))


def _points(
    description: DatasetDescription, points: np.ndarray, labels: np.ndarray, class_names: Sequence[str]
) -> Dataset:
    return make_dataset(description, np.round(points, 4).astype(np.float32), labels, class_names, ("x", "y"))
