"""Confidence that means what it says: a sink and a temperature, fitted on held-out items.

The same calibrator, with the same floor, serves every vote that is compared, so that none looks
better only because it was calibrated better. It never changes which class wins.

    g = FLOOR + (1 - FLOOR) sigmoid(facts · sink)      the sink's mass: "none of these"
    m = (1 - g) p + g / C                              it votes for all classes equally
    q = m^(1/T) / sum m^(1/T)                          the temperature
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from array_api_compat import device
from numpy.typing import ArrayLike, NDArray

from attnknn.arrays import Array, namespace, softmax
from attnknn.models.attention import query_facts, sigmoid

__all__ = ["FLOOR", "Calibrator", "calibrate", "fit_calibrator", "query_facts", "sink_mass"]

Floats = NDArray[np.float64]

FLOOR = 1e-3
"""Least mass of the sink, for every vote: no class ever gets a probability of zero."""

NO_SINK = (-50.0, 0.0, 0.0, 0.0)
START = (-4.0, 0.0, 0.0, 0.0)
HIGHEST_SCORE = 15.0  # of the sink: beyond it, p would be lost in rounding, and with it who wins
COEFFICIENT_BOUND = 50.0
TEMPERATURE_BOUNDS = (0.05, 20.0)


@dataclass(frozen=True, eq=False)
class Calibrator:
    """What was fitted; by default no sink beyond the floor, and a temperature that does nothing.

    Attributes:
        sink: Four coefficients, one for each of `query_facts`, float64, read-only.
        temperature: Divides log-probabilities; above one it softens them, below it sharpens them.

    Raises:
        ValueError: If the sink is not four finite numbers or the temperature not positive.
    """

    sink: Floats = field(default_factory=lambda: np.array(NO_SINK))
    temperature: float = 1.0

    def __post_init__(self) -> None:
        sink = np.array(self.sink, dtype=np.float64)
        if sink.shape != (len(NO_SINK),) or not np.isfinite(sink).all():
            raise ValueError(f"sink must be {len(NO_SINK)} finite numbers, however: sink={self.sink}")
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"temperature must be positive, however: temperature={self.temperature}")
        sink.setflags(write=False)
        object.__setattr__(self, "sink", sink)
        object.__setattr__(self, "temperature", float(self.temperature))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Calibrator):
            return NotImplemented
        return np.array_equal(self.sink, other.sink) and self.temperature == other.temperature

    def __hash__(self) -> int:
        return hash((*self.sink.tolist(), self.temperature))


def sink_mass(facts: Array, calibrator: Calibrator) -> Array:
    """Return the share of a query's vote that goes to none of its neighbors.

    g = FLOOR + (1 - FLOOR) sigmoid(facts · sink)

    Args:
        facts: From `query_facts`, shape (B, 4).
        calibrator: Its sink is used.

    Returns:
        Shape (B,), between `FLOOR` and one, never quite one.

    Example:
        >>> sink_mass(np.array([[1.0, 0.3, 0.2, 0.0]]), Calibrator()).tolist()
        [0.001]
    """
    xp = namespace(facts)
    sink = xp.asarray(calibrator.sink.tolist(), dtype=facts.dtype, device=device(facts))
    score = xp.clip(xp.sum(facts * sink, axis=-1), max=HIGHEST_SCORE)
    return FLOOR + (1 - FLOOR) * sigmoid(score)


def calibrate(p: Array, facts: Array, calibrator: Calibrator) -> Array:
    """Turn the probabilities of a vote into calibrated ones.

    q = m^(1/T) / sum m^(1/T), with m = (1 - g) p + g / C and g from `sink_mass`

    Args:
        p: Probabilities of the vote, shape (B, C).
        facts: From `query_facts`, shape (B, 4), of the same library and type.
        calibrator: What was fitted.

    Returns:
        Shape (B, C), positive, rows sum to one. Classes keep their order in every row, so
        calibration never changes who wins.

    Raises:
        ValueError: If the shapes do not fit.

    Example:
        >>> p, facts = np.array([[0.8, 0.2]]), np.array([[1.0, 0.3, 0.2, 0.5]])
        >>> calibrate(p, facts, Calibrator(temperature=2.0)).round(3).tolist()
        [[0.666, 0.334]]

    References:
        Temperature: Guo et al. (2017), https://arxiv.org/abs/1706.04599
    """
    if p.ndim != 2 or tuple(facts.shape) != (p.shape[0], len(NO_SINK)):
        shapes = f"{tuple(p.shape)} and {tuple(facts.shape)}"
        raise ValueError(f"p and facts must be of shapes (B, C) and (B, {len(NO_SINK)}), however: {shapes}")
    log_mixed = namespace(p, facts).log(_mix(p, sink_mass(facts, calibrator)))
    return softmax(log_mixed / calibrator.temperature)


def fit_calibrator(
    p: ArrayLike, facts: ArrayLike, labels: ArrayLike, ridge: float = 1e-3, epsilon: float = 0.0
) -> Calibrator:
    """Fit sink and temperature to held-out items.

    minimize mean_i -log ((1 - epsilon) q[i, y_i] + epsilon / C) + ridge (sink_1^2 + sink_2^2 + sink_3^2)

    L-BFGS-B with the exact gradient starts at sink = (-4, 0, 0, 0) and T = 1; T stays between 0.05
    and 20. The same inputs give the same calibrator.

    Args:
        p: Probabilities of the vote for items that neither embedder nor attention has seen, (n, C).
        facts: From `query_facts`, shape (n, 4).
        labels: Their classes in 0..C-1, shape (n,); clean ones, or the fit learns the noise.
        ridge: Weight of the squared coefficients; a large one leaves the sink the same for all.
        epsilon: The noise floor: share of these labels that any class may have taken. Only the fit knows it; what
            `calibrate` then says is about true labels. With a floor, T is at least 1: it bounds what an error costs,
            so that a fit that may sharpen is soon sure of everything.

    Returns:
        A calibrator whose NLL on these items is at most that of the start.

    Raises:
        ValueError: If there are no items, shapes do not fit, a number is not finite, the ridge
            is negative, or epsilon not in [0, 1).
    """
    from scipy.optimize import minimize

    p, facts, labels = _checked(p, facts, labels)
    if not 0 <= ridge < math.inf:
        raise ValueError(f"ridge must not be negative, however: ridge={ridge}")
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon must be at least 0 and below 1, however: epsilon={epsilon}")
    start = np.array([*START, 0.0])
    coldest, hottest = np.log(TEMPERATURE_BOUNDS)
    bounds = [(-COEFFICIENT_BOUND, COEFFICIENT_BOUND)] * len(START) + [(0.0 if epsilon else coldest, hottest)]
    items = (p, facts, labels, ridge, epsilon)
    options = {"maxiter": 500, "ftol": 1e-12, "gtol": 1e-8}
    found = minimize(_objective, start, items, method="L-BFGS-B", jac=True, bounds=bounds, options=options)
    best = found.x if found.fun <= _objective(start, *items)[0] else start
    return _calibrator(best)


def _mix(p: Array, mass: Array) -> Array:
    mass = mass[:, None]
    return (1 - mass) * p + mass / p.shape[1]


def _calibrator(theta: Floats) -> Calibrator:
    coldest, hottest = TEMPERATURE_BOUNDS
    return Calibrator(theta[:-1], min(max(math.exp(theta[-1]), coldest), hottest))


def _objective(
    theta: Floats, p: Floats, facts: Floats, labels: Array, ridge: float, epsilon: float
) -> tuple[float, Floats]:
    """Return the loss and its gradient; theta is the sink and the logarithm of the temperature."""
    calibrator = _calibrator(theta)
    mass = sink_mass(facts, calibrator)
    mixed = _mix(p, mass)
    q = softmax(np.log(mixed) / calibrator.temperature)
    truth, penalized = np.arange(len(p)), theta[:-1] * (0, 1, 1, 1)
    meant = (1 - epsilon) * q[truth, labels]
    seen = meant + epsilon / p.shape[1]
    loss = ridge * penalized @ penalized - np.mean(np.log(seen))

    by_log_mixed = q / calibrator.temperature
    by_log_mixed[truth, labels] -= 1 / calibrator.temperature
    by_log_mixed *= (meant / seen)[:, None]
    by_mass = (by_log_mixed * (1 / p.shape[1] - p) / mixed).sum(axis=1)
    by_score = by_mass * (mass - FLOOR) * (1 - mass) / (1 - FLOOR)
    by_log_temperature = -(by_log_mixed * np.log(mixed)).sum() / len(p)
    return float(loss), np.append(facts.T @ by_score / len(p) + 2 * ridge * penalized, by_log_temperature)


def _checked(p: ArrayLike, facts: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats, Array]:
    p, facts, labels = np.asarray(p, np.float64), np.asarray(facts, np.float64), np.asarray(labels)
    n = len(labels)
    if p.ndim != 2 or p.size == 0 or len(p) != n or facts.shape != (n, len(NO_SINK)):
        shapes = f"{p.shape}, {facts.shape} and {labels.shape}"
        raise ValueError(f"p, facts and labels must be of shapes (n, C), (n, 4) and (n,), n > 0, however: {shapes}")
    if not (np.isfinite(facts).all() and (np.abs(p - 0.5) <= 0.501).all()):
        raise ValueError("p must hold numbers between 0 and 1 and facts finite ones, however: they do not")
    if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0 or labels.max() >= p.shape[1]:
        raise ValueError(f"labels must be integers between 0 and {p.shape[1] - 1}, however: labels={labels}")
    return p, facts, labels
