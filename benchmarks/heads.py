"""Which heads earn their place: python -m benchmarks.heads digits iris breast_cancer.

Cross-fitted on the held-out part, so that nothing is chosen on test: each set of heads is fitted on one
half of the held-out queries and measured on the other, over all noise draws of the fit. A head that
does not lower the NLL is not shipped; at least two are.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import combinations

import numpy as np

from attnknn.bank.entries import observe, surround
from attnknn.bundle import Queries
from attnknn.calibration import FLOOR
from attnknn.classifier import AttnKNN, load
from attnknn.models.attention import HEADS, attend
from attnknn.training.attention import fit_attention, noise_draws, stack
from attnknn.training.run import held_out_queries

HALVES = 2


def cross_fitted_loss(classifier: AttnKNN, held_out: Queries, heads: tuple[str, ...]) -> float:
    """Mean NLL (nats) on halves that the numbers were not fitted on."""
    config = replace(classifier.config.attention, heads=heads)
    entries = classifier.entries
    draws = [observe(entries, noise) for noise in noise_draws(config, entries.n_classes, classifier.config.seed)]
    half = np.random.default_rng(0).permutation(len(held_out)) % HALVES
    losses = []
    for which in range(HALVES):
        seen, unseen = (held_out.take(np.flatnonzero(rows)) for rows in (half != which, half == which))
        fit_on, measure_on = (
            stack([surround(part.keys, part.pool.first(config.k), draw, with_keys=True) for draw in draws])
            for part in (seen, unseen)
        )
        fitted = fit_attention(fit_on, np.tile(seen.labels, len(draws)), config, classifier.fitted.distance)
        said = attend(measure_on, fitted).probabilities.mean(axis=1)
        of_truth = said[np.arange(len(said)), np.tile(unseen.labels, len(draws))]
        losses.append(-np.log((1 - FLOOR) * of_truth + FLOOR / entries.n_classes))
    return float(np.concatenate(losses).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoints", nargs="*", default=["digits"])
    names = tuple(HEADS)
    sets = [heads for size in (1, 2, 3, 4) for heads in combinations(names, size)]
    checkpoints = parser.parse_args().checkpoints
    print(f"| heads | {' | '.join(checkpoints)} |", "|---" * (len(checkpoints) + 1) + "|", sep="\n")
    worlds = [(classifier, held_out_queries(classifier)) for classifier in map(load, checkpoints)]
    for heads in sets:
        losses = [cross_fitted_loss(*world, heads) for world in worlds]
        print(f"| {' · '.join(heads)} | {' | '.join(f'{loss:.4f}' for loss in losses)} |", flush=True)


if __name__ == "__main__":
    main()
