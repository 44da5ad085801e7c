"""What each part of the attention is worth: python -m benchmarks.ablations digits breast_cancer --what heads votes.

`heads` (terms left out, named heads against identical ones, one to four of them) and `votes` (attention, averages,
prototypes, and a fit on the very noise draw in use) are measured on the held-out part alone: whatever is fitted,
with its calibrator, on one half is measured on the other, under noise draws that the fit has not seen.

`wrong` trains under 40 % wrong labels (protocol A), and fits the votes on held-out labels as they were given, allowing
for how they were made wrong, and on 100 clean ones. `folds` trains one embedder per fold, so that every training item
fits the votes and is an entry. Both are told on test, with nothing chosen there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold

from attnknn.ballot import FittedVotes, cast_votes
from attnknn.bank.entries import Observation, observe, stack, surround
from attnknn.bundle import Queries
from attnknn.calibration import calibrate, fit_calibrator, vote_facts
from attnknn.checkpoints import ROOT
from attnknn.classifier import AttnKNN, load
from attnknn.config import AttentionConfig, Cleaning, LabelNoise, TrainingConfig
from attnknn.data import Dataset, load_dataset
from attnknn.intervals import paired_interval
from attnknn.models.attention import HEADS, Head, attend, head_disagreement
from attnknn.models.terms import Surroundings
from attnknn.training.attention import fit_attention, fit_votes, fit_votes_on, noise_draws, noise_transition
from attnknn.training.defaults import default_config
from attnknn.training.embedder import train_embedder
from attnknn.training.parts import Parts, part
from attnknn.training.run import assemble, fit, held_out_queries, working_threads
from attnknn.votes import TITLES
from benchmarks.gaps import write_gap
from benchmarks.tables import ask_held_out

Floats = NDArray[np.float64]
SHIPPED = ("trusted", "typical")
ALL_TERMS = ("distance", "rank", "trust", "agreement", "prototype")  # keys are not read: that takes minutes
IDENTICAL = tuple(f"everything {number}" for number in (1, 2, 3, 4))
FOLDS, TRUSTED = 5, 100

HEADS.update({name: Head(ALL_TERMS, "sees all terms but those on keys") for name in IDENTICAL})
HEADS.update(
    {
        f"{name} − {left_out}": Head(tuple(term for term in HEADS[name].terms if term != left_out), "misses a term")
        for name in SHIPPED
        for left_out in HEADS[name].terms
    }
)
HEADS.update(
    {f"typical + {added}": Head((*HEADS["typical"].terms, added), "has one more") for added in ("content", "fellows")}
)


@dataclass(frozen=True)
class World:
    """A classifier, its held-out queries in two halves, and draws of label noise to fit and to measure on."""

    classifier: AttnKNN
    halves: tuple[Queries, Queries]
    config: AttentionConfig
    fit_on: list[Observation]
    measure_on: list[tuple[LabelNoise, Observation]]

    @classmethod
    def build(cls, classifier: AttnKNN, items: int | None) -> World:
        """Draw `items` held-out queries, all by default, and noise of other seeds to measure on."""
        held_out, rng = held_out_queries(classifier), np.random.default_rng(0)
        rows = rng.permutation(len(held_out))[:items]
        halves = held_out.take(np.sort(rows[0::2])), held_out.take(np.sort(rows[1::2]))
        config, entries = classifier.config.attention, classifier.entries
        if items is not None:
            config = replace(config, draws=1)
        noises = noise_draws(config, entries.n_classes, classifier.config.seed)
        fresh = noise_draws(config, entries.n_classes, classifier.config.seed + 1)
        seen = [observe(entries, noise) for noise in noises]
        return cls(classifier, halves, config, seen, [(noise, observe(entries, noise)) for noise in fresh])

    def around(self, queries: Queries, draws: Sequence[Observation], with_keys: bool) -> Surroundings:
        """Surround queries under several draws."""
        pool = queries.pool.first(self.config.k)
        return stack([surround(queries.keys, pool, seen, queries.groups, with_keys) for seen in draws])


@dataclass(frozen=True)
class Judged:
    """What a vote said about queries that it was not fitted on, per fresh draw and query, shape (R, n)."""

    losses: Floats
    hits: Floats

    @classmethod
    def of(cls, p: Floats, labels: NDArray[np.integer], draws: int) -> Judged:
        """Judge probabilities of `draws` draws under each other."""
        truth = np.tile(labels, draws)
        losses = -np.log(p[np.arange(len(p)), truth])
        return cls(losses.reshape(draws, -1), 100.0 * (p.argmax(axis=1) == truth).reshape(draws, -1))

    @classmethod
    def join(cls, parts: Sequence[Judged]) -> Judged:
        """Put the halves beside each other."""
        return cls(*(np.concatenate([getattr(one, name) for one in parts], axis=1) for name in ("losses", "hits")))


def judge_heads(world: World, heads: tuple[str, ...], beginnings: int | None = None) -> tuple[Judged, float]:
    """Fit a set of heads and its calibrator on each half, judge it on the other; also, how much the heads disagree."""
    config = replace(world.config, heads=heads)
    with_keys = any({"content", "fellows"} & {*HEADS[head].terms} for head in heads)
    fresh = [seen for _, seen in world.measure_on]
    parts, apart = [], []
    for seen, unseen in (world.halves, world.halves[::-1]):
        around = world.around(seen, world.fit_on, with_keys)
        labels = np.tile(seen.labels, len(world.fit_on))
        rng = None if beginnings is None else np.random.default_rng(beginnings)
        fitted = fit_attention(around, labels, config, world.classifier.fitted.distance, beginnings=rng)
        p = attend(around, fitted).probabilities.mean(axis=1)
        calibrator = fit_calibrator(p, vote_facts(around, p), labels)
        there = world.around(unseen, fresh, with_keys)
        votes = attend(there, fitted)
        p = votes.probabilities.mean(axis=1)
        parts.append(Judged.of(calibrate(p, vote_facts(there, p), calibrator), unseen.labels, len(fresh)))
        apart.append(float(head_disagreement(votes.weights).mean()))
    return Judged.join(parts), float(np.mean(apart))


def judge_votes(world: World) -> dict[str, Judged]:
    """Judge prototypes and both attentions, fitted for the whole slider and on the noise draw in use."""
    found: dict[str, list[Judged]] = {}
    votes = ("prototype", "attention", "attention_averages")
    for seen, unseen in (world.halves, world.halves[::-1]):
        slider = fit_votes(seen, world.classifier.entries, world.config, world.classifier.config.seed)
        refits = [refit_on(world, seen, draw) for _, draw in world.measure_on]
        for suffix, fits in (("", [slider] * len(refits)), (", refit", refits)):
            for vote in votes:
                p = [
                    cast_votes(unseen, world.config.k, draw, fitted, names=[vote]).calibrated[vote]
                    for (_, draw), fitted in zip(world.measure_on, fits, strict=True)
                ]
                found.setdefault(TITLES[vote] + suffix, []).append(
                    Judged.of(np.concatenate(p), unseen.labels, len(refits))
                )
    return {vote: Judged.join(parts) for vote, parts in found.items()}


def refit_on(world: World, queries: Queries, seen: Observation) -> FittedVotes:
    """Fit the votes on one noise draw alone: that of the bank in use."""
    bank = replace(world.classifier.entries, labels=seen.labels)
    return fit_votes(queries, bank, world.config.for_bank_as_it_is(), world.classifier.config.seed)


def write_judged(world: World, found: dict[str, Judged], rival: str, extra: dict[str, float] | None = None) -> None:
    """Print NLL over all draws, its difference to a rival, and accuracy (NLL) level by level."""
    levels: dict[str, list[int]] = {}
    for row, (noise, _) in enumerate(world.measure_on):
        levels.setdefault(f"{noise.kind} {noise.rate:.0%}", []).append(row)
    titles = [world.classifier.name, "NLL", f"NLL − {rival}", *(["disagreement"] if extra else []), *levels]
    print(f"| {' | '.join(titles)} |", "|---" * len(titles) + "|", sep="\n")
    for name, one in found.items():
        interval = paired_interval(one.losses, found[rival].losses)
        gap = write_gap(one.losses.mean() - found[rival].losses.mean(), interval, 4)
        cells = [f"{one.losses.mean():.4f}", "–" if name == rival else gap]
        cells += [f"{extra[name]:.3f}"] if extra else []
        cells += [f"{one.hits[rows].mean():.2f} ({one.losses[rows].mean():.3f})" for rows in levels.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print()


def ablate_heads(world: World, slow: bool) -> None:
    """Leave terms out, add heads, make heads identical."""
    sets: dict[str, tuple[str, ...]] = {" · ".join(SHIPPED): SHIPPED}
    sets |= {name: (name,) for name in ("nearest", *SHIPPED)}
    sets |= {f"trusted · {name}": ("trusted", name) for name in HEADS if name.startswith("typical −")}
    sets |= {f"{name} · typical": (name, "typical") for name in HEADS if name.startswith("trusted −")}
    sets["nearest · trusted · typical"] = ("nearest", *SHIPPED)
    sets |= {f"{count} × everything": IDENTICAL[:count] for count in (1, 2, 4)}
    if slow:
        sets |= {name: (name,) for name in ("familiar", "typical + content", "typical + fellows")}
        sets |= {"trusted · typical · familiar": (*SHIPPED, "familiar"), "all four": ("nearest", *SHIPPED, "familiar")}
    found = {title: judge_heads(world, heads, 0 if heads[0] in IDENTICAL else None) for title, heads in sets.items()}
    judged, apart = ({title: pair[which] for title, pair in found.items()} for which in (0, 1))
    write_judged(world, judged, " · ".join(SHIPPED), apart)


def measure(classifier: AttnKNN, fitted: FittedVotes, noises: Sequence[LabelNoise]) -> dict[str, tuple[float, float]]:
    """Accuracy in percent and NLL on test of every vote, mean over draws."""
    other, labels = AttnKNN(classifier.bundle, fitted, classifier.card, {}), classifier.queries.labels
    cast = [other.predict_items(noise=noise).ballot.calibrated for noise in noises]
    judged = {vote: [Judged.of(one[vote], labels, 1) for one in cast] for vote in cast[0]}
    return {
        TITLES[vote]: tuple(float(np.mean([getattr(one, name) for one in ones])) for name in ("hits", "losses"))
        for vote, ones in judged.items()
    }  # type: ignore[return-value]


def write_measured(title: str, rows: dict[str, list[dict[str, tuple[float, float]]]]) -> None:
    """Print accuracy (NLL) by vote, mean over seeds."""
    votes = list(next(iter(rows.values()))[0])
    print(f"| {title} | {' | '.join(votes)} |", "|---" * (len(votes) + 1) + "|", sep="\n")
    for name, seeds in rows.items():
        cells = (np.mean([one[vote] for one in seeds], axis=0) for vote in votes)
        print(f"| {name} | {' | '.join(f'{right:.2f} ({loss:.3f})' for right, loss in cells)} |", flush=True)
    print()


def ablate_wrong_labels(name: str, seeds: Sequence[int]) -> None:
    """Fit on held-out labels of which 40 % are wrong, 30 % with two classes: as given, allowed for, trusted, clean."""
    dataset = load_dataset(name)
    rate = 0.4 if dataset.n_classes > 2 else 0.3
    for kind in ("symmetric", "pair")[: 1 if dataset.n_classes == 2 else 2]:
        for cleaning in (None, Cleaning(1, "relabel")):
            rows: dict[str, list[dict[str, tuple[float, float]]]] = {}
            for seed in seeds:
                usual = default_config(dataset, seed)
                config = replace(usual, label_noise=LabelNoise(kind, rate, seed), cleaning=cleaning)  # type: ignore[arg-type]
                config = replace(config, attention=usual.attention.for_bank_as_it_is())
                classifier, parts = fit(dataset, config), part(dataset, config)
                given = ask_held_out(parts, classifier)
                clean = replace(given, labels=dataset.labels[parts.rows["held_out"]].astype(np.int32))
                trusted = clean.take(np.random.default_rng(seed).permutation(len(clean))[:TRUSTED])
                transition = noise_transition(given, classifier.entries)
                fits: dict[str, tuple[Queries, Floats | None]] = {
                    "as given": (given, None),
                    "noise allowed for": (given, transition),
                    f"{len(trusted)} trusted": (trusted, None),
                    "all clean": (clean, None),
                }
                for way, (queries, allowed_for) in fits.items():
                    fitted = fit_votes(queries, classifier.entries, config.attention, seed, allowed_for)
                    rows.setdefault(way, []).append(measure(classifier, fitted, [LabelNoise()]))
            how = "relabeled once" if cleaning else "through the noise"
            write_measured(f"{name}, {kind} {rate:.0%}, {how}, {len(seeds)} seeds", rows)


def cross_fit(dataset: Dataset, config: TrainingConfig) -> AttnKNN:
    """Train on all training items, and fit the votes on folds of them that other embedders have not seen."""
    parts, quick = part(dataset, config), replace(config, attention=config.attention.for_bank_as_it_is())
    train = parts.dataset.where("train")
    cut = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=config.seed)
    folds = [train[fold] for _, fold in cut.split(train, parts.dataset.labels[train], parts.dataset.groups[train])]

    def trained(fit_rows: NDArray[np.intp], held_out: NDArray[np.intp]) -> tuple[AttnKNN, Parts]:
        some = Parts(parts.dataset, parts.rows | {"fit": fit_rows, "held_out": held_out})
        how = (dataset.n_classes, config.embedder, config.seed)
        embedder = train_embedder(some.inputs("fit"), some.labels("fit"), *how)
        return assemble(dataset, some, quick, embedder), some

    with working_threads(config):
        fitted_on = []
        for fold in folds:
            classifier, some = trained(np.setdiff1d(train, fold), fold)
            fitted_on.append((ask_held_out(some, classifier), classifier.entries))
        whole, _ = trained(train, folds[0])
        fitted = fit_votes_on(fitted_on, config.attention, config.seed)
    return AttnKNN(whole.bundle, fitted, whole.card | {"config": config.to_dict()}, {})


def ablate_folds(name: str, seeds: Sequence[int]) -> None:
    """Hold out against cross-fitting, on test, level by level; the split of train and test stays the same."""
    dataset = load_dataset(name)
    ways: dict[str, Callable[[Dataset, TrainingConfig], AttnKNN]] = {"held out": fit, f"{FOLDS} folds": cross_fit}
    trained = {way: [make(dataset, default_config(dataset, seed)) for seed in seeds] for way, make in ways.items()}
    for kind, rate in (("symmetric", 0.0), ("symmetric", 0.4), ("symmetric", 0.6), ("pair", 0.4)):
        noises = [LabelNoise(kind, rate, seed) for seed in range(3)]  # type: ignore[arg-type]
        rows = {way: [measure(one, one.fitted, noises) for one in ones] for way, ones in trained.items()}
        write_measured(f"{name}, {kind} {rate:.0%}, {len(seeds)} seeds", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["digits"], help="checkpoints; for wrong and folds, datasets")
    parser.add_argument("--what", nargs="+", choices=("heads", "votes", "wrong", "folds"), default=["heads", "votes"])
    parser.add_argument("--items", type=int, help="held-out items, under one noise draw of a kind; all by default")
    parser.add_argument("--slow", action="store_true", help="heads that read keys, too")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--root", type=Path, default=ROOT, help="where the checkpoints lie")
    asked = parser.parse_args()
    for name in asked.names:
        if {"heads", "votes"} & {*asked.what}:
            world = World.build(load(name, asked.root), asked.items)
            print(f"{name}: {len(world.halves[0])} + {len(world.halves[1])} held-out items\n")
        if "heads" in asked.what:
            ablate_heads(world, asked.slow)
        if "votes" in asked.what:
            write_judged(world, judge_votes(world), TITLES["prototype"])
        if "wrong" in asked.what:
            ablate_wrong_labels(name, asked.seeds)
        if "folds" in asked.what:
            ablate_folds(name, asked.seeds)


if __name__ == "__main__":
    main()
