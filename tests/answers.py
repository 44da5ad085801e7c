"""Answers to measure: probabilities with labels, calibrated or full of ties."""

import numpy as np


def draw_answers(n=300, n_classes=4, seed=0, spread=0.5):
    """Draw probabilities and labels that agree with them: a perfectly calibrated model."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, spread), n)
    labels = (rng.random((n, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return p, labels


def draw_votes(n=200, k=5, n_classes=3, seed=0):
    """Draw uniform votes: multiples of 1/k, full of ties and of numbers on the edge of a bin."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(k, [1 / n_classes] * n_classes, n) / k, rng.integers(0, n_classes, n)
