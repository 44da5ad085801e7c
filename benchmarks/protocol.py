"""Every vote at every level of label noise, with what may be claimed: python -m benchmarks.protocol digits --seeds 1.

Checkpoints that differ in nothing but their seed are embedders of one study, and share its tables. Protocol B: the
bank's labels are corrupted after clean training, at every level and with so many draws. Protocol A: a checkpoint that
was trained on noisy labels is asked as it is, and is a row of its study's table. Test queries keep their true labels,
and nothing is chosen on them but the rival that attention has to match.

Readers get the tables of `benchmarks.captions`, programs every draw. --out FOLDER keeps both, and every claim.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from attnknn.arrays import one_hot
from attnknn.checkpoints import root_from_environment
from attnknn.classifier import AttnKNN, load
from attnknn.config import LabelNoise, TrainingConfig
from attnknn.errors import DatasetNotHere, SettingError, UnknownDataset
from attnknn.evaluation.claims import Claim, Level, Outcome, judge
from attnknn.evaluation.protocol import Findings, examine, hits
from attnknn.evaluation.tables import WRITERS
from benchmarks.captions import (
    PILOT_DATASET,
    PILOT_K,
    Table,
    lay_out_ece,
    lay_out_head,
    lay_out_pilot,
    lay_out_votes,
)

LEVELS = [Level("B", "symmetric", rate) for rate in (0.0, 0.2, 0.4, 0.6, 0.8)]
LEVELS += [Level("B", "pair", rate) for rate in (0.2, 0.4)]
HEAD_K = 50
FILES = {"markdown": "tables.md", "latex": "tables.tex", "csv": "rows.csv", "json": "rows.json"}

Study = tuple[str, TrainingConfig]
"""Protocol, and the training without its seed and its label noise."""

Judged = Mapping[Outcome, Sequence[Claim]]


@dataclass(frozen=True)
class Examined:
    """One checkpoint, after it was asked everything; the classifier itself is let go.

    Attributes:
        name: Of the checkpoint.
        title: Of its dataset.
        config: How it was trained.
        queries: Ids of the test queries, which all embedders of a study share.
        n_entries: N.
        findings: By level and k.
        best_k: With how many neighbors the uniform vote is right most often on held-out items; None: they are
            not on this machine.
        head: What `ask_head` returns, by k: 50, and the best one.
    """

    name: str
    title: str
    config: TrainingConfig
    queries: tuple[str, ...]
    n_entries: int
    findings: dict[tuple[Level, int], Findings]
    best_k: int | None
    head: dict[int, np.ndarray]

    @property
    def study(self) -> Study:
        """Which tables it belongs into."""
        return ("A" if self.config.label_noise else "B"), replace(self.config, seed=0, label_noise=None)


def open_classifier(place: str) -> AttnKNN:
    """Load a checkpoint by its name, or by the path of its folder."""
    path = Path(place)
    return load(path.name, path.parent) if path.is_dir() else load(place, root_from_environment())


def ask_everything(classifier: AttnKNN, ks: Sequence[int], seeds: int) -> Examined:
    """Cast every vote at every level."""
    config = classifier.config
    noisy = config.label_noise
    levels = [Level("A", noisy.kind, noisy.rate)] if noisy else LEVELS
    findings: dict[tuple[Level, int], Findings] = {}
    for level in levels:
        rate = level.rate if level.protocol == "B" else 0.0
        draws = [LabelNoise(level.kind, rate, seed) for seed in range(seeds if rate else 1)]  # type: ignore[arg-type]
        findings |= {(level, k): examine(classifier, k, draws) for k in ks}
    best = choose_k(classifier)
    fixed = min(HEAD_K, len(classifier.entries))
    return Examined(
        name=classifier.name,
        title=str(classifier.card["dataset"].get("title", config.dataset)),
        config=config,
        queries=tuple(classifier.queries.ids.tolist()),
        n_entries=len(classifier.entries),
        findings=findings,
        best_k=best,
        head={k: ask_head(classifier, k) for k in {fixed, best or fixed}},
    )


def ask_head(classifier: AttnKNN, k: int) -> np.ndarray:
    """Return hits, 0 or 100, of the uniform vote and of the softmax head on clean labels, shape (2, Q)."""
    said = classifier.decide(classifier.ask(k=k), k, votes=("uniform", "baseline"))
    return np.stack([100 * hits(said, vote) for vote in ("uniform", "baseline")])


def choose_k(classifier: AttnKNN) -> int | None:
    """Choose the k, at most 64, with which most held-out items are right; the smallest of equals."""
    from attnknn.training.run import held_out_queries

    try:
        asked = held_out_queries(classifier)
    except (DatasetNotHere, UnknownDataset):
        return None
    assert asked.labels is not None
    labels = classifier.entries.labels[asked.pool.entries]
    counts = one_hot(labels, len(classifier.class_names), np.int32).cumsum(axis=1)
    return 1 + int(np.argmax((counts.argmax(axis=2) == asked.labels[:, None]).mean(axis=0)))


def group(examined: Sequence[Examined]) -> dict[Study, list[Examined]]:
    """Put embedders of one study together.

    Raises:
        SettingError: Two of them are the same embedder, or were asked other queries.
    """
    studies: dict[Study, list[Examined]] = {}
    for one in examined:
        for other in studies.setdefault(one.study, []):
            if one.queries != other.queries:
                expected = f"checkpoints with the test queries of {other.name}"
                raise SettingError("CHECKPOINT", one.name, expected, "Show it in a table of its own.")
            if one.config == other.config:
                raise SettingError("CHECKPOINT", one.name, f"another seed than {other.name}'s", "Name each one once.")
        studies[one.study].append(one)
    return studies


def join(embedders: Sequence[Examined], ks: Sequence[int]) -> Iterator[Outcome]:
    """Put the embedders of each level behind each other."""
    for k in ks:
        for level in dict.fromkeys(level for one in embedders for level, _ in one.findings):
            yield Outcome.join(level, k, [one.findings[level, k] for one in embedders if (level, k) in one.findings])


def list_rows(embedders: Sequence[Examined]) -> pd.DataFrame:
    """One row per checkpoint, draw and vote, with every digit."""
    return pd.DataFrame(
        [
            {
                "checkpoint": one.name,
                "dataset": one.config.dataset,
                "embedder_seed": one.config.seed,
                "protocol": level.protocol,
                "noise": level.title,
            }
            | row
            | {"noise_kind": level.kind, "noise_rate": level.rate}
            for one in embedders
            for (level, _), findings in one.findings.items()
            for row in findings.rows
        ]
    )


def list_claims(claims: Iterable[Claim]) -> pd.DataFrame:
    """One row per claim, with what its interval says."""
    return pd.DataFrame([vars(claim.level) | vars(claim) | {"verdict": claim.verdict} for claim in claims]).drop(
        columns="level"
    )


def lay_out(study: Study, embedders: Sequence[Examined], judged: Judged) -> Iterator[Table]:
    """Make the tables of one study."""
    protocol, config = study
    rows = list_rows(embedders)
    for k in dict.fromkeys(outcome.k for outcome in judged):
        some = {outcome: claims for outcome, claims in judged.items() if outcome.k == k}
        yield from lay_out_votes(some, rows[rows["k"] == k])
        if (protocol, config.dataset, k) == ("B", PILOT_DATASET, PILOT_K):
            yield lay_out_pilot([*some])
    if protocol == "B":
        yield lay_out_head(*compare_with_head(embedders))
        yield lay_out_ece(rows[rows["noise_rate"] == 0])


def compare_with_head(embedders: Sequence[Examined]) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], str]:
    """Collect hits of the uniform vote and of the head, with k = 50 and with the k that held-out items choose."""
    fixed = min(HEAD_K, *(one.n_entries for one in embedders))
    asked = {f"uniform, k = {fixed}": [one.head[fixed] for one in embedders]}
    best = [one.best_k for one in embedders if one.best_k]
    if len(best) == len(embedders):
        chosen = [one.head[k] for one, k in zip(embedders, best, strict=True)]
        asked["uniform, best k on held-out items"] = chosen
        said = f"The best k on held-out items: {', '.join(map(str, best))}."
    else:
        said = "The best k on held-out items is not known: the dataset is not on this machine."
    return {name: (np.stack(both)[:, 0], np.stack(both)[:, 1]) for name, both in asked.items()}, said


def write_all(study: Study, embedders: Sequence[Examined], tables: Iterable[Table], form: str) -> str:
    """Write the tables of one study for readers."""
    noisy = {
        "A": "all labels but those of test are noisy from the start",
        "B": "the bank is noisy after clean training",
    }
    names = ", ".join(f"{one.name} (seed {one.config.seed})" for one in embedders)
    first = embedders[0]
    heading = f"{first.title}, protocol {study[0]}: {noisy[study[0]]}. {first.n_entries:,} entries; {names}."
    return "\n".join([f"{'%' if form == 'latex' else '#'} {heading}\n", *(table.write(form) for table in tables)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoints", nargs="*", default=["digits"], help="names, or paths of folders")
    parser.add_argument("--seeds", type=int, default=5, help="draws of label noise per level")
    parser.add_argument("--k", type=int, nargs="+", default=[5, 16, 50])
    parser.add_argument("--format", choices=tuple(FILES), default="markdown")
    parser.add_argument("--out", type=Path, help="a folder for rows, claims and tables")
    asked = parser.parse_args()
    examined = []
    for place in asked.checkpoints:
        begun = time.perf_counter()
        examined.append(ask_everything(open_classifier(place), asked.k, asked.seeds))
        print(f"{place}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    studies = group(examined)
    outcomes = {study: [*join(embedders, asked.k)] for study, embedders in studies.items()}
    judged = judge([outcome for some in outcomes.values() for outcome in some])
    rows, claims = list_rows(examined), list_claims(claim for some in judged.values() for claim in some)
    readers = "latex" if asked.format == "latex" else "markdown"
    tables = "\n".join(
        write_all(study, embedders, lay_out(study, embedders, {one: judged[one] for one in outcomes[study]}), readers)
        for study, embedders in studies.items()
    )
    text = tables if asked.format == readers else WRITERS[asked.format](rows)
    sys.stdout.write(text)
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        kept = {FILES[readers]: tables, "rows.csv": WRITERS["csv"](rows), "claims.csv": WRITERS["csv"](claims)}
        for name, content in (kept | {FILES[asked.format]: text}).items():
            (asked.out / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
