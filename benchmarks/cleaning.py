"""Wrong labels from the start: python -m benchmarks.cleaning digits --seeds 0 1 2.

Protocol A: the labels that the embedder, the bank and the fit of the votes see are wrong at the same rate; test
alone is clean, and nothing is chosen on it. Ways to live with that, from the same seeds, on the same items:
training through the noise, label smoothing, stopping early (the epoch whose neighbors say most of the wrong
held-out labels), and cleaning by neighbors, once or twice, by dropping or by relabeling. Training on clean labels
is shown as what could be had at most.

What two ways share is trained once: the first round of all cleanings is also the training through the noise, and
the second round of two is the last of one. Long runs go on from --folder.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from attnknn.classifier import AttnKNN
from attnknn.config import CLEANING_RULES, Cleaning, LabelNoise, TrainingConfig
from attnknn.data import Dataset, load_dataset, split_by_group
from attnknn.evaluation.protocol import hits
from attnknn.intervals import paired_interval
from attnknn.training.cleaning import BestKept, held_out_agreement
from attnknn.training.defaults import default_config
from attnknn.training.embedder import blind, train_embedder
from attnknn.training.parts import part
from attnknn.training.run import assemble, fit, working_threads
from attnknn.votes import COMPARED, TITLES
from benchmarks.gaps import write_gap

RIVAL = "stopped early"

Hits = dict[str, list[np.ndarray]]
"""Per vote and seed, for each test query whether the vote was right."""


def limit(dataset: Dataset, items: int | None, seed: int) -> Dataset:
    """Keep so many training items, class by class, and all of test."""
    train = dataset.where("train")
    if items is None or items >= len(train):
        return dataset
    is_taken = split_by_group(dataset.labels[train], dataset.groups[train], items / len(train), seed)
    rows = np.sort(np.concatenate([train[is_taken], dataset.where("test")]))
    arrays = ("inputs", "labels", "ids", "splits", "groups")
    return replace(dataset, **{name: getattr(dataset, name)[rows] for name in arrays})


def ways(dataset: Dataset, config: TrainingConfig, folder: Path, smoothing: float) -> Iterator[tuple[str, AttnKNN]]:
    """Train every way to live with the noise that `config` asks for."""

    def trained(place: str, **changes: Any) -> AttnKNN:
        (folder / place).mkdir(parents=True, exist_ok=True)
        return fit(dataset, replace(config, **changes), remember=folder / place)

    first = f"{CLEANING_RULES[0]}/round-1"
    cleaned = {}
    for rule in CLEANING_RULES:
        for rounds in (2, 1):
            if rule != CLEANING_RULES[0]:
                shutil.copytree(folder / first, folder / rule / "round-1", dirs_exist_ok=True)
            times = ("once", "twice")[rounds - 1]
            cleaned[f"{rule}, {times}"] = trained(rule, cleaning=Cleaning(rounds, rule))
    yield "through the noise", trained(first)
    yield f"smoothing {smoothing:g}", trained("smoothing", embedder=replace(config.embedder, smoothing=smoothing))
    yield RIVAL, stop_early(dataset, config, folder / first)
    yield from cleaned.items()
    yield "clean labels", trained("clean", label_noise=None)


def stop_early(dataset: Dataset, config: TrainingConfig, folder: Path) -> AttnKNN:
    """Train through the noise, and take the epoch that the held-out labels speak for."""
    parts = part(dataset, config)
    look = BestKept(held_out_agreement(parts), blind, folder)
    inputs, labels = parts.inputs("fit"), parts.labels("fit")
    with working_threads(config):
        embedder = train_embedder(
            inputs, labels, dataset.n_classes, config.embedder, config.seed, look=look, remember=folder
        )
        return assemble(dataset, parts, config, look.restore(embedder))


def purity(classifier: AttnKNN, dataset: Dataset) -> float:
    """Measure which share of a bank carries the clean label."""
    rows = [dataset.index_of(item) for item in classifier.entries.ids.tolist()]
    return float(np.mean(classifier.entries.labels == dataset.labels[rows]))


def cells_of(classifier: AttnKNN, dataset: Dataset) -> tuple[dict[str, np.ndarray], tuple[int, float]]:
    """Return hits by vote, and size and purity of the bank."""
    prediction = classifier.predict_items()
    return {vote: hits(prediction, vote) for vote in COMPARED}, (len(classifier.entries), purity(classifier, dataset))


def difference(ours: Hits, theirs: Hits, vote: str) -> str:
    """Write a paired difference in points."""
    a, b = np.stack(ours[vote]), np.stack(theirs[vote])
    low, high = (100 * end for end in paired_interval(a, b))
    return write_gap(100 * (a.mean() - b.mean()), (low, high))


def tables(found: dict[str, list[tuple[dict[str, np.ndarray], tuple[int, float]]]], title: str) -> list[str]:
    """Lay out accuracies in percent, means over seeds, and differences from the best that costs nothing."""
    heads = " | ".join(TITLES[vote] for vote in COMPARED)
    lines = [f"| {title} | entries | pure, % | {heads} |", "|---" * (len(COMPARED) + 3) + "|"]
    by_way: dict[str, Hits] = {}
    for way, runs in found.items():
        by_way[way] = {vote: [seen[vote] for seen, _ in runs] for vote in COMPARED}
        entries, pure = np.mean([facts for _, facts in runs], axis=0)
        accuracies = " | ".join(f"{100 * np.mean(by_way[way][vote]):.2f}" for vote in COMPARED)
        lines.append(f"| {way} | {entries:.0f} | {100 * pure:.1f} | {accuracies} |")
    votes = ("baseline", "attention", "attention_averages")
    lines += ["", f"| minus {RIVAL}, points | {' | '.join(TITLES[vote] for vote in votes)} |", "|---" * 4 + "|"]
    for way in found:
        if way != RIVAL:
            lines.append(f"| {way} | {' | '.join(difference(by_way[way], by_way[RIVAL], vote) for vote in votes)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", nargs="?", default="digits")
    parser.add_argument("--kinds", nargs="+", choices=("symmetric", "pair"), default=["symmetric", "pair"])
    parser.add_argument("--rate", type=float, default=0.4)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--items", type=int, help="training items, held-out ones included; all by default")
    parser.add_argument("--smoothing", type=float, default=0.1)
    parser.add_argument("--folder", type=Path, help="where an interrupted benchmark goes on from")
    asked = parser.parse_args()
    whole = load_dataset(asked.dataset)
    usual = default_config(whole)
    embedder = replace(usual.embedder, epochs=asked.epochs or usual.embedder.epochs)
    print(f"{whole.title}, {asked.items or 'all'} items, {embedder.epochs} epochs, seeds {asked.seeds}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        for kind in asked.kinds:
            found: dict[str, list[tuple[dict[str, np.ndarray], tuple[int, float]]]] = {}
            for seed in asked.seeds:
                dataset, noise = limit(whole, asked.items, seed), LabelNoise(kind, asked.rate, seed)
                attention = usual.attention.for_bank_as_it_is()
                config = replace(usual, seed=seed, embedder=embedder, attention=attention, label_noise=noise)
                place = (asked.folder or Path(temporary)) / kind / str(seed)
                for way, classifier in ways(dataset, config, place, asked.smoothing):
                    found.setdefault(way, []).append(cells_of(classifier, dataset))
            print("\n" + "\n".join(tables(found, f"{kind} {asked.rate:.0%}")), flush=True)


if __name__ == "__main__":
    main()
