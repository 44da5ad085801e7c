"""Which entries should a class average be of? python -m benchmarks.averages digits iris cifar10 --seeds 10.

Accuracy of the nearest class average on all test items, labels of the bank corrupted after clean training: averages of
all entries of a class, of those that survive editing (as the product has it), and of all, each counting as much as its
own neighbors confirm it. Nothing is fitted. Differences are paired, with 95 % intervals over draws and items.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from attnknn.bank.entries import Observation
from attnknn.bank.statistics import NEIGHBORHOOD, agreement_counts, prototypes
from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.intervals import paired_interval
from benchmarks.gaps import write_gap
from benchmarks.protocol import LEVELS, open_classifier

Floats = NDArray[np.float64]
TITLES = ("all", "edited", "by agreement")


def averages(seen: Observation) -> tuple[Floats, ...]:
    """Average each class in every way: unit vectors, shape (C, D) each."""
    entries = seen.entries
    agreeing, everyone = agreement_counts(entries.neighborhoods, seen.labels, NEIGHBORHOOD)
    share = agreeing / np.maximum(everyone, 1)
    counted = (None, seen.keeps_label, share)
    return tuple(prototypes(entries.table.keys, seen.labels, entries.n_classes, one) for one in counted)


def hits(classifier: AttnKNN, noise: LabelNoise) -> Floats:
    """100 where the nearest average is that of the true class, shape (ways, Q)."""
    queries = classifier.queries
    keys, seen = queries.keys.astype(np.float64), classifier.observe(noise)
    return np.stack([100.0 * ((keys @ centers.T).argmax(axis=1) == queries.labels) for centers in averages(seen)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoints", nargs="*", default=["digits"], help="names, or paths of folders")
    parser.add_argument("--seeds", type=int, default=10, help="draws of label noise")
    asked = parser.parse_args()
    for name in asked.checkpoints:
        classifier = open_classifier(name)
        print(f"| {classifier.name} | {' | '.join(TITLES)} | edited − all | by agreement − all |")
        print("|---" * (len(TITLES) + 3) + "|")
        for level in LEVELS:
            draws = [LabelNoise(level.kind, level.rate, seed) for seed in range(asked.seeds if level.rate else 1)]  # type: ignore[arg-type]
            found = np.stack([hits(classifier, noise) for noise in draws], axis=1)
            shares = " | ".join(f"{mean:.2f}" for mean in found.mean(axis=(1, 2)))
            gaps = " | ".join(
                write_gap(float((one - found[0]).mean()), paired_interval(one, found[0])) for one in found[1:]
            )
            print(f"| {level.kind} {level.rate:.0%} | {shares} | {gaps} |", flush=True)
        print()


if __name__ == "__main__":
    main()
