"""Answering only where it is sure enough: what is answered, and what of it is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from attnknn.metrics import Floats, check_answers
from attnknn.reliability import DECIMALS


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """What happens when items below a confidence are turned away, threshold by threshold, from strict to none.

    Attributes:
        threshold: The T different confidences, to six decimals, falling: items of at least so much are answered.
        coverage: Share of the items that are answered, shape (T,), rising to 1.
        selective_risk: Share of the answered items that are wrong, shape (T,).
        generalized_risk: Share of all items that are answered and wrong, shape (T,): coverage times the other.
    """

    threshold: Floats
    coverage: Floats
    selective_risk: Floats
    generalized_risk: Floats


def risk_coverage(p: ArrayLike, labels: ArrayLike) -> RiskCoverage:
    """Trace risk over coverage; items of equal confidence are answered together, or not at all.

    Args:
        p: Probabilities, shape (n, C). The confidence of an item is its largest one.
        labels: True classes, shape (n,).

    Returns:
        One point per different confidence. The order of the items does not matter.

    Raises:
        ValueError: If shapes or numbers do not fit.

    References:
        El-Yaniv and Wiener (2010), On the foundations of noise-free selective classification.
    """
    p, labels = check_answers(p, labels)
    confidence, wrong = p.max(axis=1).round(DECIMALS), p.argmax(axis=1) != labels
    threshold, place, count = np.unique(-confidence, return_inverse=True, return_counts=True)
    answered, failed = np.cumsum(count), np.cumsum(np.bincount(place, wrong))
    curve = RiskCoverage(-threshold, answered / len(p), failed / answered, failed / len(p))
    for array in (curve.threshold, curve.coverage, curve.selective_risk, curve.generalized_risk):
        array.setflags(write=False)
    return curve


def augrc(p: ArrayLike, labels: ArrayLike) -> float:
    """Return the area under the generalized risk-coverage curve: how many errors slip through, on average.

    AUGRC = ∫_0^1 generalized risk d coverage = e² / 2 + e (1 − e) (1 − AUROC)

    with e the share of errors and AUROC how well confidence tells right answers from wrong ones. The curve
    begins at (0, 0) and is straight where confidences are equal: what turning items away at random would give.

    Args:
        p: Probabilities, shape (n, C).
        labels: True classes, shape (n,).

    Returns:
        e² / 2 where all errors are turned away first, e / 2 where confidence says nothing, e − e² / 2 where all
        errors come last. The paper shows it times 1000.

    Raises:
        ValueError: If shapes or numbers do not fit.

    Example:
        >>> augrc([[0.9, 0.1], [0.6, 0.4]], [0, 1])  # its one error is what it is least sure of
        0.125

    References:
        Traub et al. (2024), https://arxiv.org/abs/2407.01032
    """
    curve = risk_coverage(p, labels)
    return float(np.trapezoid(np.append(0.0, curve.generalized_risk), np.append(0.0, curve.coverage)))
