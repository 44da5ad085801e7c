"""Tables of numbers, votes against what people use on tables: python -m benchmarks.tables wine_red adult.

Clean labels. The product trains as `fit` does by default, and has no other setting to choose from; its rivals are
those of `benchmarks.rivals`. Everybody is fitted on the same fit part and calibrated on the same held-out part;
nobody is fitted again on both, and nothing is chosen on test. *Clean fit*: the same votes, fitted on clean labels
alone instead of the whole noise slider.

`wine_red` is split anew for every seed, equal rows on one side, and judged twice: six grades, and 6 or better.
`adult` keeps its official test part; a seed moves the held-out part and the embedder's beginnings.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from attnknn.bundle import POOL, Queries
from attnknn.classifier import AttnKNN
from attnknn.config import AttentionConfig
from attnknn.data import Dataset, load_dataset, split_by_group
from attnknn.data.dataset import TEST_SHARE
from attnknn.intervals import band
from attnknn.training.attention import fit_votes
from attnknn.training.defaults import default_config
from attnknn.training.parts import Parts, part
from attnknn.training.run import fit, working_threads
from attnknn.votes import TITLES
from benchmarks.gaps import write_gap
from benchmarks.heads import cross_fitted_loss
from benchmarks.rivals import TUNED, Floats, K, ask_rivals

SEEDS = {"wine_red": 20, "adult": 5}
TASKS = {"wine_red": ("six grades", "6 or better"), "adult": ("above 50,000 dollars",)}
CLEAN = ", clean fit"
REFITTED = ("distance", "attention", "attention + averages")
SHIPPED, LARGER = ("trusted", "typical"), ("trusted", "typical", "familiar")
ENOUGH = 1500  # held-out items that heads are compared on; a learned metric takes minutes on some thousands
PAIRS = (
    ("attention", "uniform"),
    ("attention", "distance"),
    ("attention", "parametric baseline"),
    ("attention + averages", "parametric baseline"),
    ("attention" + CLEAN, "distance" + CLEAN),
    ("attention" + CLEAN, "parametric baseline"),
)
RESAMPLES = 2000

Table = dict[str, Floats]
"""By method, one number per seed and item, shape (S, n); NaN where an item was not tested."""


@dataclass(frozen=True)
class Outcome:
    """What everybody said about the test items of one seed, and what was chosen on held-out items."""

    test: NDArray[np.intp]
    said: dict[str, Floats]
    kept: dict[str, str]
    head_losses: tuple[float, ...]


def build(name: str, task: str, seed: int, grouped: bool = True) -> Dataset:
    """Load a dataset, set the task, and split wine anew; without `grouped`, nobody knows which rows are equal."""
    dataset = load_dataset(name)
    if task == "6 or better":
        is_good = np.array([int(grade) >= 6 for grade in dataset.class_names])
        labels = is_good[dataset.labels].astype(np.int64)
        dataset = replace(dataset, labels=labels, class_names=("5 or worse", "6 or better"))
    if not grouped:
        dataset = replace(dataset, groups=np.arange(len(dataset.groups)))
    if name == "wine_red":
        is_test = split_by_group(dataset.labels, dataset.groups, TEST_SHARE, seed)
        dataset = replace(dataset, splits=np.where(is_test, "test", "train"))
    return dataset


def run(name: str, task: str, grouped: bool, seed: int) -> Outcome:
    """Train and ask everybody once; the votes in other fits only where duplicates stay together."""
    dataset = build(name, task, seed, grouped)
    config = default_config(dataset, seed)
    parts = part(dataset, config)
    with working_threads(config), threadpool_limits(limits=1):
        classifier = fit(dataset, config)
        said = said_by(classifier)
        head_losses: tuple[float, ...] = ()
        if grouped:
            held_out, usual = ask_held_out(parts, classifier), config.attention
            clean = said_by(refitted(classifier, held_out, replace(usual, rates=(0.0,), pair_rates=())))
            said |= {vote + CLEAN: clean[vote] for vote in REFITTED}
            some = held_out.take(np.arange(min(len(held_out), ENOUGH)))
            head_losses = tuple(cross_fitted_loss(classifier, some, heads) for heads in (SHIPPED, LARGER))
        rivals = ask_rivals(parts, seed)
    kept = {rival: setting for rival, (setting, _) in rivals.items()}
    said |= {rival: p for rival, (_, p) in rivals.items()}
    return Outcome(parts.rows["test"], said, kept, head_losses)


def said_by(classifier: AttnKNN) -> dict[str, Floats]:
    """Calibrated probabilities of every compared vote on clean labels."""
    return {TITLES[vote]: p for vote, p in classifier.predict_items().ballot.calibrated.items()}


def ask_held_out(parts: Parts, classifier: AttnKNN) -> Queries:
    """Make queries of the held-out items, on which votes are fitted."""
    keys, logits = classifier.embedder.embed(parts.inputs("held_out"))
    pool = classifier.bank.search(keys, min(POOL, len(classifier.entries)))
    labels, nobody = parts.labels("held_out").astype(np.int32), np.full(len(keys), -1, np.int32)
    return Queries(parts.ids("held_out"), keys, pool, logits, labels, nobody)


def refitted(classifier: AttnKNN, held_out: Queries, attention: AttentionConfig) -> AttnKNN:
    """Keep embedder, bank and neighbors, and fit the votes in another way."""
    fitted = fit_votes(held_out, classifier.entries, attention, classifier.config.seed)
    return AttnKNN(classifier.bundle, fitted, classifier.card, {})


def tabulate(outcomes: Sequence[Outcome], labels: NDArray[np.int64], measure: Callable) -> Table:
    """Measure what each method said about each item."""
    table = {method: np.full((len(outcomes), len(labels)), np.nan) for method in outcomes[0].said}
    for seed, outcome in enumerate(outcomes):
        for method, p in outcome.said.items():
            table[method][seed, outcome.test] = measure(p, labels[outcome.test])
    return table


def hits(p: Floats, labels: NDArray[np.int64]) -> Floats:
    """100 where the winner is right and 0 elsewhere, so that means are percent."""
    return 100.0 * (p.argmax(axis=1) == labels)


def losses(p: Floats, labels: NDArray[np.int64]) -> Floats:
    """−log p of the truth, in nats."""
    return -np.log(p[np.arange(len(p)), labels])


def paired(a: Floats, b: Floats, groups: NDArray[np.int64]) -> tuple[float, tuple[float, float]]:
    """Mean of a − b with its 95 % interval, for other seeds and for other items, equal ones drawn together.

    mean = Σ_sg r_s c_g Σ_(i in g) (a − b)[s, i] / Σ_sg r_s c_g n[s, g],  r and c: how often each was drawn

    `attnknn.intervals.paired_interval` does the same where every seed tests all items and none are equal.
    """
    is_tested = ~np.isnan(a)
    columns = is_tested.any(axis=0)
    place = np.unique(groups[columns], return_inverse=True)[1]
    gaps, counts = (
        np.stack([np.bincount(place, row) for row in numbers[:, columns]])
        for numbers in (np.where(is_tested, a - b, 0.0), is_tested.astype(np.float64))
    )
    rng, (n_seeds, n_groups), means = np.random.default_rng(0), gaps.shape, np.empty(RESAMPLES)
    for draw in range(RESAMPLES):
        seeds, items = (np.bincount(rng.integers(0, n, n), minlength=n) for n in (n_seeds, n_groups))
        means[draw] = (seeds @ gaps @ items) / (seeds @ counts @ items)
    return float(gaps.sum() / counts.sum()), band(means, 0.95)


def write_mean(values: Sequence[float] | Floats, digits: int) -> str:
    """Write mean ± SD over seeds."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def by_seed(table: Table, method: str) -> Floats:
    """Mean over the test items of each seed."""
    return np.nanmean(table[method], axis=1)


def write_methods(outcomes: Sequence[Outcome], dataset: Dataset, right: Table, surprise: Table) -> list[str]:
    """Everybody against the best tuned rival, by accuracy and by NLL."""
    top = max(TUNED, key=lambda one: by_seed(right, one).mean())
    calm = min(TUNED, key=lambda one: by_seed(surprise, one).mean())
    titles = ["method", "accuracy, %", "NLL, nats", "AUC", f"accuracy − {top}", f"NLL − {calm}"]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for method in right:
        cells = [write_mean(by_seed(right, method), 2), write_mean(by_seed(surprise, method), 4), "–"]
        if dataset.n_classes == 2:
            areas = [roc_auc_score(dataset.labels[one.test], one.said[method][:, 1]) for one in outcomes]
            cells[-1] = write_mean(areas, 4)
        for table, rival, digits in ((right, top, 2), (surprise, calm, 4)):
            found = paired(table[method], table[rival], dataset.groups)
            cells.append("–" if method == rival else write_gap(*found, digits))
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def write_pairs(dataset: Dataset, right: Table, surprise: Table) -> list[str]:
    """Differences between votes on the same embedding and the same neighbors."""
    lines = ["| difference | accuracy, points | NLL, nats |", "|---|---|---|"]
    for a, b in PAIRS:
        points, nats = (paired(table[a], table[b], dataset.groups) for table in (right, surprise))
        lines.append(f"| {a} − {b} | {write_gap(*points)} | {write_gap(*nats, 4)} |")
    return lines


def write_choices(outcomes: Sequence[Outcome]) -> list[str]:
    """What the rivals kept, and whether a third head would be chosen."""
    kept = {rival: Counter(one.kept[rival] for one in outcomes).most_common() for rival in TUNED}
    smaller, larger = np.array([one.head_losses for one in outcomes]).T
    return [
        *(f"- {rival} kept {', '.join(f'{setting} {n}×' for setting, n in kept[rival])}" for rival in TUNED),
        f"- Cross-fitted NLL of {' · '.join(SHIPPED)} on held-out items, over the noise draws of the fit: "
        f"{write_mean(smaller, 4)}; with *familiar* {write_mean(larger, 4)}, lower for "
        f"{np.sum(larger < smaller)} of {len(outcomes)} seeds",
    ]


def write_twins(dataset: Dataset, right: Table) -> str:
    """What the official split's twins are worth: test items that equal a training item."""
    is_twin = np.isin(dataset.groups, dataset.groups[dataset.where("train")])
    named = ("uniform", "distance", "attention", *TUNED)
    pairs = [f"{one} {np.nanmean(right[one]):.2f} → {np.nanmean(right[one][:, ~is_twin]):.2f}" for one in named]
    return f"- {is_twin[dataset.where('test')].sum()} test items equal a training item; without them {'; '.join(pairs)}"


def write_duplicates(dataset: Dataset, together: Table, apart: Table) -> list[str]:
    """Accuracy where chance parts the rows, and where equal ones are on one side."""
    lines = ["| accuracy, % | rows split at random | equal rows on one side |", "|---|---|---|"]
    for method in apart:
        cells = [write_mean(by_seed(table, method), 2) for table in (apart, together)]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    raw = (f"kNN, 1/d, k = {K}", f"kNN, uniform, k = {K}")
    for a, b in (("distance", "uniform"), ("attention", "uniform"), raw):
        gaps = (write_gap(*paired(table[a], table[b], dataset.groups)) for table in (apart, together))
        lines.append(f"| {a} − {b} | {' | '.join(gaps)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", choices=SEEDS, default=["wine_red"])
    parser.add_argument("--seeds", type=int, help="fewer than usual, but two at least")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one core each")
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as pool:
        for name in asked.datasets:
            seeds = range(asked.seeds or SEEDS[name])
            for task in TASKS[name]:
                dataset = build(name, task, 0)
                outcomes = list(pool.map(partial(run, name, task, True), seeds))
                right, surprise = (tabulate(outcomes, dataset.labels, measure) for measure in (hits, losses))
                print(f"### {dataset.title}, {task}: {len(outcomes[0].test)} test items, {len(seeds)} seeds\n")
                print("\n".join([*write_methods(outcomes, dataset, right, surprise), ""]))
                print("\n".join([*write_pairs(dataset, right, surprise), "", *write_choices(outcomes)]))
                print(write_twins(dataset, right) if name == "adult" else "", flush=True)
            if name == "wine_red":
                apart = tabulate(list(pool.map(partial(run, name, task, False), seeds)), dataset.labels, hits)
                print("\n".join(write_duplicates(dataset, right, apart)), flush=True)


if __name__ == "__main__":
    main()
