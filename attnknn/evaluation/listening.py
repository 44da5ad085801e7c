"""What each head listens to, found by measurement and said in one sentence.

    share[h, t] = Σ_b Var_j(θ[h, t] φ_t[b, j]) / Σ_s Σ_b Var_j(θ[h, s] φ_s[b, j])

A term that is the same for all neighbors of a query, or has no coefficient, decides nothing, whatever the head is
called. Everything is measured under one draw of label noise, because on clean labels most neighborhoods are
unanimous, and then it does not show whom a head mistrusts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.metrics import effective_neighbors
from attnknn.prediction import Prediction

NOISE = LabelNoise("symmetric", 0.4)
ENOUGH = 400  # queries, spread over all of them: the sentence then takes some milliseconds
NEARLY_ALL = 0.9  # of a head's choice: the rest need not be told
EVEN = 0.98  # effective neighbors, as a share of k, from which on nobody is listened to more than others

KINDS = {
    "distance": "the closest",
    "rank": "the first on the list",
    "content": "the closest in a metric learned for the vote",
    "trust": "those whose own neighbors confirm their label",
    "agreement": "those whose label the other neighbors share",
    "prototype": "those that look like the average of their class",
    "fellows": "those whose look-alikes are close to the query",
}
"""Whom a term speaks for, where its coefficient is positive."""


@dataclass(frozen=True)
class Listening:
    """What was measured of one head.

    Attributes:
        head: Its name.
        shares: Each term's share of the variation of the scores over the neighbors of a query; they sum to one, or
            are all zero where no score varies. Negative where the coefficient is: it speaks against these neighbors.
        k: How many neighbors it may listen to.
        effective: To how many it listens, exp(entropy of its weights, sink left out), mean over queries.
        wrong: Share of the neighbors whose label the noise replaced: what a uniform vote gives them.
        heard: Share of its weight that they get, sink left out.
        accuracy: Share of the queries that it would answer rightly alone; None where nobody knows.
        noise: The label noise under which all this was measured.
    """

    head: str
    shares: dict[str, float]
    k: int
    effective: float
    wrong: float
    heard: float
    accuracy: float | None
    noise: LabelNoise

    @property
    def sentence(self) -> str:
        """One plain sentence, to be read after the head's name."""
        parts = [self._choice()]
        if self.noise.rate:
            wrong, heard = f"{100 * self.wrong:.0f} %", f"{100 * self.heard:.0f} %"
            parts.append(f"{wrong} of their labels are wrong and get {heard} of its weight")
        if self.accuracy is not None:
            parts.append(f"alone right on {100 * self.accuracy:.1f} %")
        return "; ".join(parts)

    def _choice(self) -> str:
        term = max(self.shares, key=lambda name: abs(self.shares[name]))
        if self.effective > EVEN * self.k or not self.shares[term]:
            return f"listens to all {self.k} neighbors nearly alike"
        verb = "listens to" if self.shares[term] > 0 else "turns away from"
        share = abs(self.shares[term])
        decided = "" if share > NEARLY_ALL else f" ({100 * share:.0f} % of its choice)"
        return f"{verb} {KINDS[term]}{decided}, {self.effective:.1f} of {self.k}"


def listen(prediction: Prediction) -> list[Listening]:
    """Measure every head of the attention vote on queries that it has decided.

    Args:
        prediction: Of a few hundred queries, best under label noise.

    Returns:
        One per head, in their order.

    Raises:
        ValueError: If there are no queries.
    """
    if not len(prediction):
        raise ValueError("heads are measured on queries, however: len(prediction)=0")
    heads, attention, labels = prediction.ballot.heads, prediction.attention, prediction.queries.labels
    weights = heads.weights / heads.weights.sum(axis=-1, keepdims=True)
    flipped = prediction.seen.is_flipped[prediction.neighbors]
    effective = effective_neighbors(weights).mean(axis=0)
    heard = (weights * flipped[:, None, :]).sum(axis=-1).mean(axis=0)
    spread = np.stack([part.var(axis=-1).sum(axis=0) for part in prediction.terms.values()], axis=1)
    shares = spread / np.maximum(spread.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    shares *= np.sign(attention.coefficients)
    right = None if labels is None else (heads.probabilities.argmax(axis=-1) == labels[:, None]).mean(axis=0)
    return [
        Listening(
            head=name,
            shares=dict(zip(attention.terms, shares[h].tolist(), strict=True)),
            k=prediction.k,
            effective=float(effective[h]),
            wrong=float(flipped.mean()),
            heard=float(heard[h]),
            accuracy=None if right is None else float(right[h]),
            noise=prediction.noise,
        )
        for h, name in enumerate(attention.heads)
    ]


def listen_on_test(classifier: AttnKNN, noise: LabelNoise = NOISE) -> list[Listening]:
    """Measure every head on test items, at most some hundred, at the k of the fit."""
    some = np.unique(np.linspace(0, len(classifier.queries) - 1, ENOUGH).round().astype(np.intp))
    return listen(classifier.decide(classifier.queries.take(some), noise=noise, votes=()))
