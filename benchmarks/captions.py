"""What `benchmarks.protocol` shows: tables laid out for readers, each with a caption that is computed from it.

A caption says where attention is within its paired interval of the best rival vote and where it is not, where it is
lowest in NLL and where it is not, and by how much. Nobody writes it by hand, so nobody forgets where it loses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from attnknn.evaluation.claims import OURS, RIVALS, Claim, Estimate, Level, Measure, Outcome, estimate
from attnknn.evaluation.tables import write_latex, write_markdown
from attnknn.intervals import paired_interval
from attnknn.votes import COMPARED, TITLES
from benchmarks.gaps import write_gap

DIGITS: dict[Measure, int] = {"accuracy": 2, "nll": 4}
UNITS: dict[Measure, str] = {"accuracy": "points", "nll": "nats"}
LARGEST_ECE = 0.010
LARGEST_GAP = 0.1  # points by which neighbors may stay behind the softmax head

PILOT_DATASET, PILOT_K = "cifar10", 16
PILOT: dict[Level, dict[str, dict[Measure, float]]] = {
    Level("B", kind, rate): {
        "attention": {"accuracy": alone, "nll": alone_nll},
        "attention_averages": {"accuracy": averages, "nll": averages_nll},
    }
    for kind, rate, alone, alone_nll, averages, averages_nll in (
        ("symmetric", 0.0, 90.07, 0.383, 90.34, 0.315),
        ("symmetric", 0.4, 90.21, 0.412, 90.29, 0.316),
        ("symmetric", 0.6, 89.89, 0.445, 90.21, 0.317),
        ("symmetric", 0.8, 85.94, 0.592, 89.89, 0.323),
        ("pair", 0.4, 89.67, 0.415, 89.86, 0.350),
    )
}
"""Percent and nats, from the pilot that `docs/decisions.md` speaks of: CIFAR-10 as JPEG, 45,000 entries, one seed, a
network of 2 M parameters after 18 epochs (its softmax head: 90.31 %), the votes fitted anew for each level."""


@dataclass(frozen=True)
class Table:
    """One table with its caption."""

    title: str
    frame: pd.DataFrame
    caption: str

    def write(self, form: str) -> str:
        """Write it as `markdown` or `latex`."""
        if form == "latex":
            return write_latex(self.frame, caption=f"{self.title}. {self.caption}")
        return f"## {self.title}\n\n{write_markdown(self.frame)}\n{self.caption}\n"


def lay_out_votes(judged: Mapping[Outcome, Sequence[Claim]], rows: pd.DataFrame) -> list[Table]:
    """Lay out accuracy and NLL of every vote at one k, a row per level.

    Args:
        judged: All outcomes of one k, and what may be claimed of them.
        rows: The draws behind them, which know the NLL before calibration.
    """
    outcomes, claims = [*judged], [claim for some in judged.values() for claim in some]
    found, raw = [estimate(outcome) for outcome in outcomes], rows.groupby(["noise", "vote"])["nll_raw"].mean()
    levels, k = [outcome.level for outcome in outcomes], outcomes[0].k

    def accuracy(row: int, vote: str) -> str:
        return write_estimate(found[row]["accuracy", vote], "accuracy")

    def nll(row: int, vote: str) -> str:
        return f"{found[row]['nll', vote].mean:.4f} ({raw[levels[row].title, vote]:.3f})"

    rivals = (
        f"Rivals are {', '.join(TITLES[vote] for vote in RIVALS)}: at each level the best of them on these queries."
    )
    how = f"{say_sizes(outcomes)} {rivals} p is after Holm."
    units = "Percent, with 95 % intervals over test queries.", "Nats after calibration, before it in parentheses."
    return [
        Table(f"{title}, k = {k}", _grid(levels, cell), f"{unit} {_say(measure, claims)} {how}")
        for title, measure, cell, unit in zip(("Accuracy", "NLL"), DIGITS, (accuracy, nll), units, strict=True)
    ]


def say_sizes(outcomes: Sequence[Outcome]) -> str:
    """Say on how much a table stands."""
    embedders, draws, queries = np.max([outcome.values["nll"]["uniform"].shape for outcome in outcomes], axis=0)
    plural = ("" if embedders == 1 else "s"), ("" if draws == 1 else "s")
    return f"{queries:,} test queries, {embedders} embedder{plural[0]}, {draws} draw{plural[1]} of label noise."


def _say(measure: Measure, claims: Sequence[Claim]) -> str:
    """Say of each of our votes where its claim holds, and where not, and by how much."""
    goals = {"accuracy": "within its paired 95 % interval of the best rival vote, or above it,", "nll": "lowest in NLL"}
    sentences = []
    for vote in OURS:
        judged = [claim for claim in claims if (claim.vote, claim.measure) == (vote, measure)]
        lost = [
            claim for claim in judged if (claim.verdict == "worse" if measure == "accuracy" else not claim.is_ahead)
        ]
        where = "every level"
        if lost:
            where = f"{len(judged) - len(lost)} of {len(judged)} levels, and not, in {UNITS[measure]}, at {_list(lost)}"
        sentences.append(f"{TITLES[vote].capitalize()} is {goals[measure]} at {where}.")
    return " ".join(sentences)


def _list(claims: Sequence[Claim]) -> str:
    return "; ".join(
        f"{claim.level.title} (against {TITLES[claim.rival]} "
        f"{write_gap(claim.gap, (claim.low, claim.high), DIGITS[claim.measure])}, p = {claim.adjusted:.2g})"
        for claim in claims
    )


def write_estimate(found: Estimate, measure: Measure) -> str:
    """Write a mean with its interval."""
    return "{0:.{3}f} [{1:.{3}f}, {2:.{3}f}]".format(found.mean, found.low, found.high, DIGITS[measure])


def lay_out_pilot(outcomes: Sequence[Outcome]) -> Table:
    """Compare with the pilot where it measured."""
    rows, missed = [], 0
    for outcome in outcomes:
        found = estimate(outcome) if outcome.level in PILOT else {}
        for vote, numbers in PILOT.get(outcome.level, {}).items():
            for measure, number in numbers.items():
                verdict = _reach(found[measure, vote], number, measure)
                missed += verdict == "missed"
                ours = write_estimate(found[measure, vote], measure)
                rows.append([outcome.level.title, TITLES[vote], measure, f"{number:g}", ours, verdict])
    titles = ["noise", "vote", "measure", "pilot", "here", "verdict"]
    caption = f"{missed} of {len(rows)} figures are missed beyond the interval. {say_sizes(outcomes)} " + (
        "The pilot: CIFAR-10 as JPEG, one seed, a network of 2 M parameters after 18 epochs, the votes fitted anew "
        "for each level; here one fit serves all of them."
    )
    return Table(f"The pilot's figures, k = {PILOT_K}", pd.DataFrame(rows, columns=titles), caption)


def _reach(found: Estimate, figure: float, measure: Measure) -> str:
    best, mean = (found.high, found.mean) if measure == "accuracy" else (-found.low, -found.mean)
    figure = figure if measure == "accuracy" else -figure
    return "reached" if mean >= figure else "within the interval" if best >= figure else "missed"


def lay_out_head(gaps: Mapping[str, tuple[np.ndarray, np.ndarray]], said: str) -> Table:
    """Compare neighbors with the softmax head on the same features.

    Args:
        gaps: By a name of the vote: its hits and the head's, 0 or 100, shape (E, Q).
        said: What else has to be told.
    """
    rows, kept = [], []
    for name, (ours, head) in gaps.items():
        gap, interval = float((ours - head).mean()), paired_interval(ours, head)
        rows.append([name, f"{ours.mean():.2f}", f"{head.mean():.2f}", write_gap(gap, interval)])
        kept.append(
            f"{name}: {'at most' if round(gap, 6) >= -LARGEST_GAP else 'more than'} {LARGEST_GAP} points behind"
        )
    titles = ["vote", "neighbors", "softmax head", "neighbors minus head, points"]
    caption = f"Percent, clean labels, paired 95 % intervals. {'; '.join(kept)}. {said}".strip()
    return Table("Neighbors against the softmax head", pd.DataFrame(rows, columns=titles), caption)


def lay_out_ece(rows: pd.DataFrame) -> Table:
    """Lay out the debiased ECE on clean labels, before and after calibration, beside what chance would show.

    Args:
        rows: Draws without label noise; several embedders are averaged, with their bands.
    """
    shown = rows[rows["vote"].isin((*OURS, "baseline"))]
    means = shown.groupby(["k", "vote"], sort=False).mean(numeric_only=True).reset_index()
    table, kept = [], []
    for row in means.to_dict("records"):
        before, after = (f"[{row[f'{one}_low']:.4f}, {row[f'{one}_high']:.4f}]" for one in ("chance_raw", "chance"))
        cells = [row["ece_debiased_raw"], before, row["ece_debiased"], after, row["smooth_ece"]]
        table.append([row["k"], TITLES[row["vote"]], *cells])
        if row["vote"] in OURS:
            verdict = "at most" if row["ece_debiased"] <= LARGEST_ECE else "above"
            kept.append(f"{TITLES[row['vote']]} with k = {row['k']} {verdict} {LARGEST_ECE:.3f}")
    titles = ["k", "vote", "ECE before", "chance before", "ECE after", "chance after", "smooth ECE after"]
    caption = (
        f"Debiased ECE in 15 bins of equal mass, clean labels, with the 95 % band that a perfectly calibrated model "
        f"with the same confidences shows by chance. After calibration: {'; '.join(kept)}."
    )
    return Table("Calibration on clean labels", pd.DataFrame(table, columns=titles), caption)


def _grid(levels: Sequence[Level], cell: Callable[[int, str], str]) -> pd.DataFrame:
    """A row per level and a column per vote."""
    rows = [[level.title, *(cell(row, vote) for vote in COMPARED)] for row, level in enumerate(levels)]
    return pd.DataFrame(rows, columns=["noise", *(TITLES[vote] for vote in COMPARED)])
