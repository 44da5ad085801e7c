"""Confidence that means what it says: a sink and a temperature, fitted on held-out items.

The same calibrator, with the same floor, serves every vote that is compared, so that none looks
better only because it was calibrated better. It never changes which class wins.

    g = FLOOR + (1 - FLOOR) sigmoid(facts · sink)      the sink's mass: "none of these"
    m = (1 - g) p + g / C                              it votes for all classes equally
    q = m^(1/T) / sum m^(1/T),  log T = facts · heat   the temperature

One calibrator serves the whole noise slider because the facts say how noisy the bank is, as far as that shows
without knowing any true label. What an item's distance adds can only make a vote less sure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from array_api_compat import device
from numpy.typing import ArrayLike, NDArray

from attnknn.arrays import Array, likelihoods, namespace, softmax
from attnknn.models.attention import certainty_facts, sigmoid
from attnknn.models.terms import Surroundings

__all__ = [
    "FLOOR",
    "Calibrator",
    "calibrate",
    "calibrator_start",
    "certainty_facts",
    "coefficient_bounds",
    "fit_calibrator",
    "sink_mass",
    "soften",
    "temperature",
    "vote_facts",
]

Floats = NDArray[np.float64]

FLOOR = 1e-3
"""Least mass of the sink, for every vote: no class ever gets a probability of zero."""

PLAIN = 4  # facts of `certainty_facts`; `vote_facts` has as many again
DISTANCE = 1  # which of them is a distance
NO_SINK = (-50.0, 0.0, 0.0, 0.0)
SINK_START = -4.0
RIDGE = 0.5  # a standard normal prior on every coefficient
HIGHEST_SCORE = 15.0  # of the sink: beyond it, p would be lost in rounding, and with it who wins
COEFFICIENT_BOUND = 50.0
TEMPERATURE_BOUNDS = (0.05, 20.0)


@dataclass(frozen=True, eq=False)
class Calibrator:
    """What was fitted; by default no sink beyond the floor, and a temperature that does nothing.

    Attributes:
        sink: A coefficient for each of F facts: 4 from `certainty_facts`, or 8 from `vote_facts`; float64, read-only.
        heat: Likewise, for the logarithm of the temperature.

    Raises:
        ValueError: If they are not 4 or 8 finite numbers each.
    """

    sink: Floats = field(default_factory=lambda: np.array(NO_SINK))
    heat: Floats = field(default_factory=lambda: np.zeros(PLAIN))

    def __post_init__(self) -> None:
        for name in ("sink", "heat"):
            numbers = np.array(getattr(self, name), dtype=np.float64)
            if numbers.shape not in ((PLAIN,), (2 * PLAIN,)) or not np.isfinite(numbers).all():
                raise ValueError(f"{name} must be {PLAIN} or {2 * PLAIN} finite numbers, however: {name}={numbers}")
            numbers.setflags(write=False)
            object.__setattr__(self, name, numbers)
        if len(self.sink) != len(self.heat):
            raise ValueError(f"sink and heat must be of one length, however: {len(self.sink)} and {len(self.heat)}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Calibrator):
            return NotImplemented
        return np.array_equal(self.sink, other.sink) and np.array_equal(self.heat, other.heat)

    def __hash__(self) -> int:
        return hash((*self.sink.tolist(), *self.heat.tolist()))


def vote_facts(around: Surroundings, p: Array) -> Array:
    """State eight facts about a vote: four from `certainty_facts`, and the same times how noisy the bank looks.

    (ψ, z ψ),  z the dissent of the bank

    Args:
        around: What the vote looked at; needs `dissent`.
        p: Its probabilities, shape (B, C).

    Returns:
        Shape (B, 8).
    """
    if around.dissent is None:
        raise ValueError("facts about a vote need the dissent of the bank, however: dissent=None")
    plain = certainty_facts(around.distances, p)
    xp = namespace(plain)
    return xp.concat([plain, plain * xp.astype(around.dissent, plain.dtype)[:, None]], axis=1)


def sink_mass(facts: Array, calibrator: Calibrator) -> Array:
    """Return the share of a query's vote that goes to none of its neighbors.

    g = FLOOR + (1 - FLOOR) sigmoid(facts · sink)

    Args:
        facts: From `certainty_facts` or `vote_facts`, shape (B, F).
        calibrator: Its sink is used.

    Returns:
        Shape (B,), between `FLOOR` and one, never quite one.

    Example:
        >>> sink_mass(np.array([[1.0, 0.3, 0.2, 0.0]]), Calibrator()).tolist()
        [0.001]
    """
    return _mass(facts, _like(facts, calibrator.sink))


def temperature(facts: Array, calibrator: Calibrator) -> Array:
    """Return what divides a query's log-probabilities: above one it softens them, below it sharpens them.

    T = exp(facts · heat), kept between 0.05 and 20

    Args:
        facts: From `certainty_facts` or `vote_facts`, shape (B, F).
        calibrator: Its heat is used.

    Returns:
        Shape (B,).
    """
    return _temperature(facts, _like(facts, calibrator.heat))


def calibrate(p: Array, facts: Array, calibrator: Calibrator) -> Array:
    """Turn the probabilities of a vote into calibrated ones.

    q = m^(1/T) / sum m^(1/T), with m = (1 - g) p + g / C, g from `sink_mass` and T from `temperature`

    Args:
        p: Probabilities of the vote, shape (B, C).
        facts: As many as the calibrator was fitted with, shape (B, F), of the same library and type.
        calibrator: What was fitted.

    Returns:
        Shape (B, C), positive, rows sum to one. Classes keep their order in every row, so
        calibration never changes who wins.

    Raises:
        ValueError: If the shapes do not fit.

    Example:
        >>> p, facts = np.array([[0.8, 0.2]]), np.array([[1.0, 0.3, 0.2, 0.5]])
        >>> calibrate(p, facts, Calibrator(heat=np.log([2.0, 1.0, 1.0, 1.0]))).round(3).tolist()
        [[0.666, 0.334]]

    References:
        Temperature: Guo et al. (2017), https://arxiv.org/abs/1706.04599
    """
    n_facts = len(calibrator.sink)
    if p.ndim != 2 or tuple(facts.shape) != (p.shape[0], n_facts):
        shapes = f"{tuple(p.shape)} and {tuple(facts.shape)}"
        raise ValueError(f"p and facts must be of shapes (B, C) and (B, {n_facts}), however: {shapes}")
    return soften(p, facts, *(_like(facts, numbers) for numbers in (calibrator.sink, calibrator.heat)))


def soften(p: Array, facts: Array, sink: Array, heat: Array) -> Array:
    """Do what `calibrate` does with a calibrator's numbers, all of one library, so that they too can be fitted."""
    log_mixed = namespace(p, facts).log(_mix(p, _mass(facts, sink)))
    return softmax(log_mixed / _temperature(facts, heat)[:, None])


def coefficient_bounds(n_facts: int, is_only_softer: bool = False) -> list[tuple[float, float]]:
    """Say between what each number of sink and heat may lie: one that weighs a distance is not negative.

    Args:
        n_facts: F.
        is_only_softer: Whether T must be at least 1.
    """
    is_distance = [fact % PLAIN == DISTANCE for fact in range(n_facts)]
    sink = [(0.0 if far else -COEFFICIENT_BOUND, COEFFICIENT_BOUND) for far in is_distance]
    heat = [(0.0 if far or is_only_softer else -COEFFICIENT_BOUND, COEFFICIENT_BOUND) for far in is_distance]
    return sink + heat


def calibrator_start(n_facts: int) -> Floats:
    """Begin with hardly any sink and a temperature of one: sink, then heat."""
    return np.array([SINK_START] + [0.0] * (2 * n_facts - 1))


def fit_calibrator(
    p: ArrayLike, facts: ArrayLike, labels: ArrayLike, ridge: float = RIDGE, transition: Floats | None = None
) -> Calibrator:
    """Fit sink and temperature to held-out items.

    minimize mean_i -log (sum_c q[i, c] T[c, y_i]) + ridge / n (|sink|^2 + |heat|^2)

    L-BFGS-B with the exact gradient starts at sink = (-4, 0, …) and T = 1. The first coefficient of each is
    free of the ridge, and those of distances are not negative. The same inputs give the same calibrator.

    Args:
        p: Probabilities of the vote for items that neither embedder nor attention has seen, (n, C).
        facts: From `certainty_facts` or `vote_facts`, shape (n, F).
        labels: Their classes in 0..C-1, shape (n,); clean ones, or the fit learns the noise.
        ridge: Weight of the squared coefficients, in items, so that many items outweigh it; a large one makes sink and
            temperature the same for all. One half is a standard normal prior.
        transition: T, where labels are not all true: T[c, y] is the probability that an item of class c was given the
            label y, shape (C, C). Only the fit knows it; what `calibrate` then says is about true labels. With it, the
            temperature is at least 1: it bounds what an error costs, and a fit that may sharpen is soon sure of all.

    Returns:
        A calibrator whose loss on these items is at most that of the start.

    Raises:
        ValueError: If there are no items, shapes do not fit, or a number is not as above.
    """
    from scipy.optimize import minimize

    p, facts, labels = _checked(p, facts, labels)
    if not 0 <= ridge < math.inf:
        raise ValueError(f"ridge must not be negative, however: ridge={ridge}")
    start = calibrator_start(facts.shape[1])
    items = (p, facts, likelihoods(np.asarray(labels), p.shape[1], transition), ridge)
    options = {"maxiter": 500, "ftol": 1e-12, "gtol": 1e-8}
    bounds = coefficient_bounds(facts.shape[1], transition is not None)
    found = minimize(_objective, start, items, method="L-BFGS-B", jac=True, bounds=bounds, options=options)
    best = found.x if found.fun <= _objective(start, *items)[0] else start
    return Calibrator(*np.split(best, 2))


def _like(facts: Array, numbers: Floats) -> Array:
    return namespace(facts).asarray(numbers.tolist(), dtype=facts.dtype, device=device(facts))


def _mass(facts: Array, sink: Array) -> Array:
    xp = namespace(facts)
    return FLOOR + (1 - FLOOR) * sigmoid(xp.clip(xp.sum(facts * sink, axis=-1), max=HIGHEST_SCORE))


def _temperature(facts: Array, heat: Array) -> Array:
    coldest, hottest = np.log(TEMPERATURE_BOUNDS).tolist()
    xp = namespace(facts)
    return xp.exp(xp.clip(xp.sum(facts * heat, axis=-1), min=coldest, max=hottest))


def _mix(p: Array, mass: Array) -> Array:
    mass = mass[:, None]
    return (1 - mass) * p + mass / p.shape[1]


def _objective(theta: Floats, p: Floats, facts: Floats, likely: Floats, ridge: float) -> tuple[float, Floats]:
    """Return the loss and its gradient; theta is the sink, then the heat."""
    sink, heat = np.split(theta, 2)
    mass, heated = _mass(facts, sink), _temperature(facts, heat)
    mixed = _mix(p, mass)
    log_mixed = np.log(mixed)
    q = softmax(log_mixed / heated[:, None])
    penalized = theta * (np.arange(len(theta)) % len(sink) > 0)
    seen = (q * likely).sum(axis=1)
    loss = ridge / len(p) * penalized @ penalized - np.mean(np.log(seen))

    by_log_mixed = q * (1 - likely / seen[:, None]) / (heated * len(p))[:, None]
    by_mass = (by_log_mixed * (1 / p.shape[1] - p) / mixed).sum(axis=1)
    by_score = by_mass * (mass - FLOOR) * (1 - mass) / (1 - FLOOR)
    by_score[facts @ sink > HIGHEST_SCORE] = 0
    coldest, hottest = TEMPERATURE_BOUNDS
    by_log_temperature = -(by_log_mixed * log_mixed).sum(axis=1) * ((coldest < heated) & (heated < hottest))
    gradient = np.append(facts.T @ by_score, facts.T @ by_log_temperature)
    return float(loss), gradient + 2 * ridge / len(p) * penalized


def _checked(p: ArrayLike, facts: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats, Array]:
    p, facts, labels = np.asarray(p, np.float64), np.asarray(facts, np.float64), np.asarray(labels)
    n = len(labels)
    if p.ndim != 2 or p.size == 0 or len(p) != n or facts.shape not in ((n, PLAIN), (n, 2 * PLAIN)):
        shapes = f"{p.shape}, {facts.shape} and {labels.shape}"
        raise ValueError(
            f"p, facts and labels must be of shapes (n, C), (n, {PLAIN}) or (n, {2 * PLAIN}), and (n,), n > 0, "
            f"however: {shapes}"
        )
    if not (np.isfinite(facts).all() and (np.abs(p - 0.5) <= 0.501).all()):
        raise ValueError("p must hold numbers between 0 and 1 and facts finite ones, however: they do not")
    if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0 or labels.max() >= p.shape[1]:
        raise ValueError(f"labels must be integers between 0 and {p.shape[1] - 1}, however: labels={labels}")
    return p, facts, labels
