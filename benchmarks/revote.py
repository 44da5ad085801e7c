"""All test queries voting anew under changed noise, against plain torch: python -m benchmarks.revote.

Another noise rate: labels are flipped, trust and prototypes computed from them, three votes (uniform, distance,
attention) cast by 50 neighbors of each of 10,000 queries, calibrated and measured. *Another rate* is a move of the
slider, which nobody has asked for before; *another seed* draws everybody's luck anew as well. Budget: 400 ms, in a
process like the page's, that has imported neither torch nor FAISS. The rival, `benchmarks.original`, is a plain
torch implementation of the original's evaluation, which is handed the observed labels and only votes and measures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.evaluation.protocol import measure
from benchmarks.clock import milliseconds
from benchmarks.jobs import p95
from benchmarks.large import open_large

if TYPE_CHECKING:
    from benchmarks.original import Evaluation

K, VOTES, BUDGET = 50, ("uniform", "distance", "attention"), 400
WORKERS_OWN = ("torch", "faiss")
SAME = LabelNoise("symmetric", 0.4, 1)  # where ours and the rival's uniform vote have to agree

Measured = dict[str, dict[str, float]]


def revote(classifier: AttnKNN, noise: LabelNoise) -> Measured:
    """Vote and measure under this noise, all test queries."""
    prediction = classifier.decide(classifier.ask(k=K), K, noise, votes=VOTES)
    return {vote: measure(prediction, vote) for vote in VOTES}


def moves(number: int) -> list[LabelNoise]:
    """Rates of both kinds of one draw, each another one."""
    return [LabelNoise(("symmetric", "pair")[step % 2], 0.8 * (step + 1) / number) for step in range(number)]


def draws(number: int) -> list[LabelNoise]:
    """As many seeds."""
    return [LabelNoise("symmetric", 0.4, 100 + step) for step in range(number)]


def each(work: Callable[[LabelNoise], object], noises: Sequence[LabelNoise]) -> list[float]:
    """Milliseconds of each noise but the first, which warms up."""
    coming = iter(noises)
    return milliseconds(lambda: work(next(coming)), len(noises) - 1)


def write_row(name: str, times: Sequence[float], said: Measured, budget: int | None = None) -> str:
    cells = [name, f"{statistics.median(times):.0f}", f"{p95(list(times)):.0f}", f"{budget}" if budget else "–"]
    cells += [f"{100 * said[vote]['accuracy']:.2f}" for vote in VOTES]
    return f"| {' | '.join(cells)} |"


def prepare_rival(classifier: AttnKNN) -> Evaluation:
    """Hand over keys, queries, and the neighbors that were found, as tensors."""
    import torch

    from benchmarks.original import Evaluation

    queries, near = classifier.queries, classifier.queries.pool.first(K)
    keys, asked = (torch.from_numpy(np.array(keys)) for keys in (classifier.entries.keys, queries.keys))
    neighbors = torch.from_numpy(near.entries.astype(np.int64))
    squared = torch.from_numpy((near.distances**2).astype(np.float32))
    truth = np.array(classifier.bundle.arrays["query_labels"])
    return Evaluation(keys, asked, neighbors, squared, truth, len(classifier.class_names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--rival", type=int, default=5, help="repeats of the rival")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        classifier = open_large(Path(folder))
        cores = os.environ.get("OMP_NUM_THREADS") or os.cpu_count()
        n_entries, n_queries = len(classifier.entries), len(classifier.queries)
        print(f"`{classifier.name}`: {n_queries:,} queries, {n_entries:,} entries, k = {K}, {cores} cores\n")
        titles = ["ms", "median", "p95", "budget", *(f"{vote}, %" for vote in VOTES)]
        print(f"| {' | '.join(titles)} |", "|---" * len(titles) + "|", sep="\n")
        ours = revote(classifier, SAME)
        for name, noises in (("another rate", moves), ("another seed", draws)):
            times = each(lambda noise: revote(classifier, noise), noises(asked.repeats + 1))
            print(write_row(f"ours, {name}", times, ours, BUDGET), flush=True)
        assert not {*WORKERS_OWN} & {*sys.modules}, "the page's process imports neither torch nor FAISS"
        rival, labels = prepare_rival(classifier), classifier.observe(SAME).labels
        for name, batched in (("the original's way", False), ("without its loops", True)):
            times, said = milliseconds(partial(rival.run, labels, batched), asked.rival), rival.run(labels, batched)
            assert said["uniform"]["accuracy"] == ours["uniform"]["accuracy"], "on the same labels, uniform is uniform"
            print(write_row(f"plain torch, {name}", times, said), flush=True)


if __name__ == "__main__":
    main()
