"""The table of votes in `docs/results.md`: python -m benchmarks.votes digits.

Protocol B: the bank's labels are corrupted after clean training. Every vote sees the same embeddings,
the same neighbors and the same kind of calibrator. Differences are paired over queries, with 95 %
bootstrap intervals over noise seeds and queries.
"""

from __future__ import annotations

import argparse

import numpy as np

from attnknn.classifier import AttnKNN, load
from attnknn.config import LabelNoise
from attnknn.evaluation.protocol import compare
from attnknn.intervals import paired_interval
from attnknn.models.attention import HEADS, head_disagreement
from attnknn.votes import COMPARED, TITLES
from benchmarks.gaps import write_gap

SEEDS = (0, 1, 2, 3, 4)
LEVELS = (
    ("symmetric", 0.0),
    ("symmetric", 0.2),
    ("symmetric", 0.4),
    ("symmetric", 0.6),
    ("symmetric", 0.8),
    ("pair", 0.4),
)
RIVALS = ("uniform", "distance", "edited", "prototype")


def draws(kind: str, rate: float) -> list[LabelNoise]:
    return [LabelNoise(kind, rate, seed) for seed in (SEEDS[:1] if rate == 0 else SEEDS)]  # type: ignore[arg-type]


def votes_table(classifier: AttnKNN, k: int) -> list[str]:
    """Accuracy and NLL of every vote at every level of noise."""
    lines = [
        f"| noise, k = {k} | {' | '.join(TITLES[vote] for vote in COMPARED)} |",
        "|---" * (len(COMPARED) + 1) + "|",
    ]
    for kind, rate in LEVELS:
        found = compare(classifier, k, draws(kind, rate))
        cells = [f"{100 * found[vote]['hits'].mean():.2f} ({found[vote]['losses'].mean():.3f})" for vote in COMPARED]
        lines.append(f"| {kind} {rate:.0%} | {' | '.join(cells)} |")
    return lines


def differences_table(classifier: AttnKNN, k: int) -> list[str]:
    """Paired differences in accuracy, in points, with their intervals."""
    pairs = [("attention", "uniform"), ("attention", "distance"), ("attention", None), ("attention_averages", None)]
    heads = [f"{TITLES[a]} − {TITLES[b] if b else 'the best of the other votes'}" for a, b in pairs]
    lines = [f"| noise, k = {k} | {' | '.join(heads)} |", "|---" * (len(pairs) + 1) + "|"]
    for kind, rate in LEVELS:
        found = compare(classifier, k, draws(kind, rate))
        cells = [_difference(found, ours, theirs) for ours, theirs in pairs]
        lines.append(f"| {kind} {rate:.0%} | {' | '.join(cells)} |")
    return lines


def _difference(found: dict[str, dict[str, np.ndarray]], ours: str, theirs: str | None) -> str:
    """Write one paired difference in points; `theirs` None is the best of the other votes."""
    named = theirs is not None
    if theirs is None:
        others = [*RIVALS, "attention_averages" if ours == "attention" else "attention"]
        theirs = max(others, key=lambda vote: found[vote]["hits"].mean())
    gap = 100 * (found[ours]["hits"].mean() - found[theirs]["hits"].mean())
    low, high = (100 * end for end in paired_interval(found[ours]["hits"], found[theirs]["hits"]))
    return write_gap(gap, (low, high)) + ("" if named else f" ({TITLES[theirs]})")


def heads_table(classifier: AttnKNN, k: int) -> list[str]:
    """Each head's accuracy when it votes alone, and how differently heads listen."""
    heads = classifier.fitted.attention.heads
    lines = [
        f"| noise, k = {k} | {' | '.join(heads)} | together | mean disagreement |",
        "|---" * (len(heads) + 3) + "|",
    ]
    for kind, rate in LEVELS:
        predictions = [classifier.predict_items(k=k, noise=noise) for noise in draws(kind, rate)]
        labels = classifier.queries.labels
        alone = [
            np.mean([np.mean(p.ballot.heads.probabilities[:, h].argmax(axis=1) == labels) for p in predictions])
            for h in range(len(heads))
        ]
        together = np.mean([np.mean(p.predicted("attention") == labels) for p in predictions])
        apart = np.mean([head_disagreement(p.weights).mean() for p in predictions])
        cells = " | ".join(f"{100 * accuracy:.2f}" for accuracy in [*alone, together])
        lines.append(f"| {kind} {rate:.0%} | {cells} | {apart:.3f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", nargs="?", default="digits")
    parser.add_argument("--k", type=int, nargs="*", default=[16, 5])
    arguments = parser.parse_args()
    classifier = load(arguments.checkpoint)
    queries, entries = len(classifier.queries), len(classifier.entries)
    print(f"{arguments.checkpoint}: {queries} test queries, {entries} entries, noise seeds {SEEDS}\n")
    for k in arguments.k:
        print("\n".join([*votes_table(classifier, k), "", *differences_table(classifier, k), ""]))
    print("\n".join(heads_table(classifier, arguments.k[0])))
    for head in classifier.fitted.attention.heads:
        print(f"- *{head}* {HEADS[head].why}")


if __name__ == "__main__":
    main()
