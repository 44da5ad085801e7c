"""The leak laboratory in `docs/results.md`: python -m benchmarks.leaks digits --train 5.

Each of the original's faults alone, against the same fit without it: same embedding, split, neighbors and start.
Protocol B: the bank's labels are corrupted after clean training; test items keep theirs. Differences are paired
over test items, with 95 % bootstrap intervals over noise seeds and items. `--train` trains the embedder again,
with so many seeds, to see what it brings to choose the epoch on test.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from attnknn.arrays import softmax, tally
from attnknn.bank.entries import surround
from attnknn.bank.memory import MemoryBank
from attnknn.calibration import fit_calibrator, temperature, vote_facts
from attnknn.classifier import AttnKNN, load
from attnknn.config import LabelNoise
from attnknn.data import load_dataset
from attnknn.evaluation.float_error import float_error
from attnknn.evaluation.leaks import (
    FittedAttention,
    Laboratory,
    Measured,
    Switches,
    measure,
    paired_ece_interval,
    pull,
)
from attnknn.intervals import paired_interval
from attnknn.metrics import unanimity
from attnknn.models.attention import Attention, attend, terms_of
from attnknn.models.embedders import Embedder
from attnknn.models.terms import Surroundings, reads_keys
from attnknn.training.attention import fit_attention, noise_draws
from attnknn.training.embedder import train_embedder
from attnknn.training.run import held_out_queries, working_threads
from attnknn.votes import distance_weights, uniform_weights
from benchmarks.gaps import write_gap

SEEDS = (0, 1, 2, 3, 4)
RATES = (0.0, 0.4, 0.6)
HONEST, NOISY, CLEAN = Switches(), Switches(noisy_targets=True), Switches(clean_only=True)
LAST = "the last epoch"
SAME, OTHER = "the best on one half of test, told on the same half", "the best on one half of test, told on the other"
UNBOUNDED = replace(NOISY, unbounded=True)


@dataclass(frozen=True)
class Case:
    """One line of the table: what is switched on, and the fit that differs in nothing else."""

    title: str
    on: Switches
    against: Switches = HONEST


CASES = (
    Case("honest: left out of neighbors and of trust", HONEST),
    Case("self in the bank", replace(HONEST, self_in_bank=True)),
    Case("trust with the query inside", replace(HONEST, trust_with_query=True)),
    Case("memorized items", replace(HONEST, memorized=True)),
    Case("constant label bias", replace(HONEST, constant_bias=True)),
    Case("squared distances", replace(HONEST, squared=True)),
    Case("noisy labels to fit, no noise floor", NOISY),
    Case("noisy labels to fit + self in the bank", replace(NOISY, self_in_bank=True), NOISY),
    Case("the same, effective neighbors unbounded", replace(UNBOUNDED, self_in_bank=True), UNBOUNDED),
    Case("noisy labels to fit + trust with the query inside", replace(NOISY, trust_with_query=True), NOISY),
    Case("fitted clean, used noisy", CLEAN),
    Case("fitted clean + self in the bank", replace(CLEAN, self_in_bank=True), CLEAN),
    Case("fitted clean + trust with the query inside", replace(CLEAN, trust_with_query=True), CLEAN),
    Case("fitted clean + memorized items", replace(CLEAN, memorized=True), CLEAN),
)


@dataclass(frozen=True)
class Fit:
    """What came of a fit, its mean temperature, and what it saw: unanimity, and the pull at the tuned distance vote."""

    vote: FittedAttention
    heat: float
    unanimous: float
    pulled: float


class Bench:
    """A checkpoint, its laboratory, and what its test items meet at every level of noise."""

    def __init__(self, classifier: AttnKNN) -> None:
        self.classifier, config = classifier, classifier.config
        self.attention = config.attention
        self.dataset, held_out = load_dataset(config.dataset), held_out_queries(classifier)
        row = {str(item): number for number, item in enumerate(self.dataset.ids)}
        ids = {"fit": classifier.entries.ids, "held out": held_out.ids, "test": classifier.queries.ids}
        self.rows = {part: np.array([row[str(item)] for item in some]) for part, some in ids.items()}
        groups = self.dataset.groups[self.rows["held out"]]
        self.labels = self.dataset.labels[self.rows["test"]]
        with working_threads(config):
            self.laboratory = Laboratory.open(classifier.entries, held_out, groups, config.seed)
        self.noises = noise_draws(self.attention, self.dataset.n_classes, config.seed)
        self.tests = {rate: [self._meet(rate, seed) for seed in (SEEDS if rate else SEEDS[:1])] for rate in RATES}

    def _meet(self, rate: float, seed: int) -> Surroundings:
        queries, seen = self.classifier.queries, self.classifier.observe(LabelNoise("symmetric", rate, seed))
        neighbors, with_keys = queries.pool.first(self.attention.k), reads_keys(terms_of(self.attention.heads))
        return surround(queries.keys, neighbors, seen, with_keys=with_keys)

    def fit(self, on: Switches) -> Fit:
        """Fit attention and its calibrator on what the switches let them see."""
        around, targets = self.laboratory.collect(on, self.noises, self.attention)
        config = replace(self.attention, minimum_effective=0.0) if on.unbounded else self.attention
        with working_threads(self.classifier.config):
            attention = fit_attention(around, targets, config, self.classifier.fitted.distance)
        p = attend(around, attention).probabilities.mean(axis=1)
        facts = vote_facts(around, p)
        calibrator = fit_calibrator(p, facts, targets)
        heat = float(temperature(facts, calibrator).mean())
        return Fit(FittedAttention(attention, calibrator), heat, *self.saw(around, targets))

    def saw(self, around: Surroundings, targets: NDArray[np.integer]) -> tuple[float, float]:
        """Share of unanimous neighborhoods, and the mean pull."""
        weights = distance_weights(around, self.classifier.fitted.distance)
        return unanimity(around.labels), float(pull(weights, around.labels, targets).mean())

    def measure(self, fitted: FittedAttention, on: Switches) -> dict[float, Measured]:
        """Measure one fit at every level of noise."""
        return {rate: measure(arounds, self.labels, fitted, on) for rate, arounds in self.tests.items()}


def difference(value: float, interval: tuple[float, float], decimals: int) -> str:
    """Write one paired difference; "below" where it is one, and its whole interval too small to be seen."""
    low, high = interval
    if not low <= 0 <= high and max(-low, high) < (smallest := 10.0**-decimals):
        return f"below {smallest}"
    return write_gap(value, interval, decimals)


def points(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> str:
    """Render a paired difference of accuracies, in points."""
    low, high = (100 * end for end in paired_interval(ours, theirs))
    return difference(100 * (ours.mean() - theirs.mean()), (low, high), 2)


def line(title: str, rate: float, ours: Measured, theirs: Measured | None) -> str:
    """One line of the table; the first fit of all has nothing to differ from."""
    error, debiased = ours.calibration_error(), ours.calibration_error(debiased=True)
    cells = [f"{100 * ours.hits.mean():.2f}", f"{ours.losses.mean():.3f}", f"{error:.3f} ({debiased:.3f})"]
    gaps = ["–"] * 3
    if theirs is not None:
        gaps = [
            points(ours.hits, theirs.hits),
            difference(ours.losses.mean() - theirs.losses.mean(), paired_interval(ours.losses, theirs.losses), 3),
            difference(error - theirs.calibration_error(), paired_ece_interval(ours, theirs), 3),
        ]
    pairs = " | ".join(f"{cell} | {gap}" for cell, gap in zip(cells, gaps, strict=True))
    return f"| {title} | {rate:.0%} | {pairs} | {ours.effective_neighbors:.1f} |"


def faults_table(bench: Bench, fits: dict[Switches, Fit]) -> list[str]:
    """What each fault does to each number."""
    shipped = bench.classifier.fitted
    as_shipped = FittedAttention(shipped.attention, shipped.calibrators["attention"])
    found = {on: bench.measure(fit.vote, on) for on, fit in fits.items()}
    shown = [(case.title, found[case.on], None if case.on == HONEST else found[case.against]) for case in CASES]
    shown.insert(1, ("as shipped: outside the bank", bench.measure(as_shipped, HONEST), found[HONEST]))
    heads = ("fault", "noise", "accuracy", "difference", "NLL", "difference", "ECE (debiased)", "difference")
    lines = [f"| {' | '.join(heads)} | effective neighbors |", "|---" * 9 + "|"]
    for title, ours, theirs in shown:
        lines += [line(title, rate, ours[rate], theirs[rate] if theirs else None) for rate in RATES]
    biased = found[Switches(constant_bias=True)]
    moved = max(float(np.abs(biased[r].probabilities - found[HONEST][r].probabilities).max()) for r in RATES)
    return [*lines, "", f"Constant label bias: no probability moves by more than {moved:.0e}."]


def fits_table(bench: Bench, fits: dict[Switches, Fit]) -> list[str]:
    """What each fit saw on clean labels and over all its draws, and what came of it."""
    lines = ["| fault | unanimous, labels clean | pull | unanimous, all draws | pull | θ | mean T |", "|---" * 7 + "|"]
    for case in CASES:
        fit = fits[case.on]
        clean = bench.saw(*bench.laboratory.collect(case.on, [LabelNoise()], bench.attention))
        both = (clean, (fit.unanimous, fit.pulled))
        seen = " | ".join(f"{100 * share:.1f} % | {pulled:.3f}" for share, pulled in both)
        lines.append(f"| {case.title} | {seen} | {tell(fit.vote.attention)} | {fit.heat:.2f} |")
    return lines


def tell(attention: Attention) -> str:
    """List the coefficients that are not zero, head by head."""
    heads = []
    for head, row in zip(attention.heads, attention.coefficients, strict=True):
        kept = [f"{term} {size:.2f}" for term, size in zip(attention.terms, row, strict=True) if abs(size) >= 0.005]
        heads.append(f"{head}: {', '.join(kept)}")
    return "; ".join(heads)


def floats_table(bench: Bench) -> list[str]:
    """What adding up in float32 does to the calibration error of a vote on a clean bank."""
    classifier = bench.classifier
    queries = classifier.queries
    lines = [
        "| vote, labels clean | k | ECE as published | the same bins, no item lost | equal mass | items lost |",
        "|---" * 6 + "|",
    ]
    for title, vote in (("uniform", uniform_weights), ("exp(−d²), normalized", squared_weights)):
        for k in (5, 10, 16, 20, 50):
            found = queries.pool.first(k)
            weights, labels = vote(found.distances.astype(np.float32)), classifier.entries.labels[found.entries]
            told = float_error(weights, labels, bench.labels, bench.dataset.n_classes)
            numbers = f"{told.published:.4f} | {told.repaired:.4f} | {told.equal_mass:.4f} | {told.lost:.1%}"
            lines.append(f"| {title} | {k} | {numbers} |")
    return lines


def squared_weights(distances: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weigh neighbors as the original's distance vote did: squared distances, temperature 1."""
    return softmax(-(distances**2))


def epochs(bench: Bench, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Train an embedder, and let its neighbors vote after every epoch: held-out accuracy, and hits on test."""
    inputs, labels, config = bench.dataset.inputs, bench.dataset.labels, bench.classifier.config
    held_out, test = [], []

    def look(embedder: Embedder, epoch: int) -> dict[str, float]:
        keys = {part: embedder.embed(inputs[rows])[0] for part, rows in bench.rows.items()}
        bank = MemoryBank.build(keys["fit"], labels[bench.rows["fit"]], bench.dataset.ids[bench.rows["fit"]])
        hits = {}
        for part in ("held out", "test"):
            weights = uniform_weights((found := bank.search(keys[part], bench.attention.k)).distances)
            p = tally(weights, bank.labels[found.entries], bench.dataset.n_classes)
            hits[part] = p.argmax(axis=1) == labels[bench.rows[part]]
        held_out.append(hits["held out"].mean())
        test.append(hits["test"])
        return {}

    fit = bench.rows["fit"]
    train_embedder(inputs[fit], labels[fit], bench.dataset.n_classes, config.embedder, seed, look=look)
    return np.array(held_out), np.array(test, np.float64)


def epochs_table(bench: Bench, seeds: int) -> list[str]:
    """What it brings to choose the epoch on test: chosen and told on one half, or told on the other."""
    is_half = np.random.default_rng(0).random(len(bench.rows["test"])) < 0.5
    told: dict[str, list[NDArray[np.float64]]] = {}
    for seed in range(seeds):
        held_out, test = epochs(bench, seed)
        one, another = (int(test[:, half].mean(axis=1).argmax()) for half in (is_half, ~is_half))
        for title, hits in {
            LAST: test[-1],
            "the best on held-out items": test[held_out.argmax()],
            "the best on test": test[test.mean(axis=1).argmax()],
            SAME: np.where(is_half, test[one], test[another]),
            OTHER: np.where(is_half, test[another], test[one]),
        }.items():
            told.setdefault(title, []).append(hits)
    last, same, other = (np.stack(told[title]) for title in (LAST, SAME, OTHER))
    lines = ["| epoch | accuracy, mean of seeds | difference to the last epoch |", "|---" * 3 + "|"]
    for title, rows in told.items():
        hits = np.stack(rows)
        gap = "–" if title == LAST else points(hits, last)
        lines.append(f"| {title} | {100 * hits.mean():.2f} | {gap} |")
    return [*lines, "", f"Told on the same half instead of the other: {points(same, other)} points."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", nargs="?", default="digits")
    parser.add_argument("--train", type=int, default=0, metavar="SEEDS", help="train the embedder again so many times")
    asked = parser.parse_args()
    bench = Bench(load(asked.checkpoint))
    sizes = {part: len(rows) for part, rows in bench.rows.items()}
    print(
        f"{asked.checkpoint}: {sizes}, k = {bench.attention.k}, {len(bench.noises)} noise draws in the fit, {SEEDS=}\n"
    )
    fits = {on: bench.fit(on) for on in dict.fromkeys(on for case in CASES for on in (case.against, case.on))}
    for table in (faults_table(bench, fits), fits_table(bench, fits), floats_table(bench)):
        print("\n".join(table), end="\n\n", flush=True)
    if asked.train:
        print("\n".join(epochs_table(bench, asked.train)))


if __name__ == "__main__":
    main()
