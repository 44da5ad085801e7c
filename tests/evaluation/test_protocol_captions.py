"""Captions say what their tables hold: where attention loses, by how much, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from attnknn.bank.entries import observe
from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise, TrainingConfig
from attnknn.errors import SettingError
from attnknn.evaluation.claims import Level, Outcome, judge
from attnknn.training.run import held_out_queries
from attnknn.votes import COMPARED, TITLES
from benchmarks import protocol
from benchmarks.captions import PILOT, Table, lay_out_ece, lay_out_head, lay_out_pilot, lay_out_votes
from tests.strategies import lattice_classifier

CLEAN, HEAVY = Level("B", "symmetric", 0.0), Level("B", "symmetric", 0.8)


def outcome(level: Level, accuracy: dict[str, int], nll: dict[str, float], queries: int = 400) -> Outcome:
    """Votes that are right on the first so many percent of the queries, and lose so many nats on each."""
    place, ripple = np.arange(queries), np.linspace(-0.1, 0.1, queries)[None, None]
    return Outcome(
        level,
        16,
        {
            "accuracy": {
                vote: 100.0 * (place < accuracy.get(vote, 80) * queries / 100)[None, None] for vote in COMPARED
            },
            "nll": {vote: nll.get(vote, 0.5) + ripple for vote in COMPARED},
        },
    )


def rows_of(*outcomes: Outcome) -> pd.DataFrame:
    return pd.DataFrame(
        [{"noise": one.level.title, "vote": vote, "nll_raw": 0.75} for one in outcomes for vote in COMPARED]
    )


def laid_out(*outcomes: Outcome) -> tuple[Table, Table]:
    accuracy, nll = lay_out_votes(judge(outcomes, resamples=1000), rows_of(*outcomes))
    return accuracy, nll


# ---- The main table


def test_a_caption_names_every_level_where_attention_loses_and_no_other():
    good = outcome(CLEAN, {"attention": 85, "attention_averages": 80}, {"attention": 0.4, "attention_averages": 0.3})
    bad = outcome(HEAVY, {"attention": 60, "attention_averages": 90}, {"attention": 0.7, "attention_averages": 0.3})
    accuracy, nll = laid_out(good, bad)
    assert "Attention is within its paired 95 % interval" in accuracy.caption
    assert "at 1 of 2 levels, and not, in points, at 80 % symmetric (against uniform -20.00 [" in accuracy.caption
    assert (
        "Attention + averages is within its paired 95 % interval of the best rival vote, or above it, at every level."
        in (accuracy.caption)
    )
    assert re.search(r"Attention is lowest in NLL at 1 of 2 .* at 80 % symmetric \(against \w+ \+0\.2", nll.caption)
    assert "Attention + averages is lowest in NLL at every level." in nll.caption
    assert "none (" not in accuracy.caption + nll.caption


def test_lowest_is_not_said_of_a_tie():
    missed = "is lowest in NLL at 0 of 1 levels, and not, in nats, at none"
    _, nll = laid_out(outcome(CLEAN, {}, {}))
    assert nll.caption.count(f"{missed} (against uniform +0.0000 [+0.0000, +0.0000] no difference, p = 1)") == 2
    _, nll = laid_out(outcome(CLEAN, {}, {"prototype": 0.2, "attention_averages": 0.2001}))
    assert f"Attention {missed} (against nearest prototype +0.3000" in nll.caption
    assert f"Attention + averages {missed} (against nearest prototype +0.0001" in nll.caption


def test_cells_are_means_with_intervals_one_row_per_level():
    accuracy, nll = laid_out(outcome(CLEAN, {}, {}), outcome(HEAVY, {"edited": 30}, {"edited": 1.5}))
    for table in (accuracy, nll):
        assert [*table.frame.columns] == ["noise", *(TITLES[vote] for vote in COMPARED)]
        assert table.frame["noise"].tolist() == ["none", "80 % symmetric"]
    mean, low, high = (float(number) for number in re.findall(r"[\d.]+", accuracy.frame["edited"][1]))
    assert (mean, low, high) == (30, pytest.approx(25.5, abs=0.8), pytest.approx(34.5, abs=0.8))
    assert nll.frame["edited"][1].startswith("1.5")
    assert nll.frame["edited"][1].endswith("(0.750)")


def test_a_table_floats_in_latex_with_its_caption_escaped():
    table = Table("A & B", pd.DataFrame({"noise": ["40 % pair"]}), "80 % [1, 2] of_it")
    assert r"\caption{A \& B. 80 \% [1, 2] of\_it}" in table.write("latex")
    assert table.write("latex").rstrip().endswith(r"\end{table}")
    assert table.write("markdown").splitlines()[0] == "## A & B"
    assert table.write("markdown").splitlines()[-1] == "80 % [1, 2] of_it"


# ---- The other tables


def test_the_pilot_is_reached_within_the_interval_or_missed():
    alone, averages = (PILOT[CLEAN][vote] for vote in ("attention", "attention_averages"))
    assert (alone["accuracy"], averages["nll"]) == (90.07, 0.315)
    table = lay_out_pilot(
        [
            outcome(CLEAN, {"attention": 91, "attention_averages": 90}, {"attention": 0.3, "attention_averages": 0.5}),
            outcome(Level("B", "pair", 0.2), {}, {}),
        ]
    )
    assert table.frame["verdict"].tolist() == ["reached", "reached", "within the interval", "missed"]
    assert table.frame["pilot"].tolist() == ["90.07", "0.383", "90.34", "0.315"]
    assert table.caption.startswith("1 of 4 figures are missed")


def test_the_head_may_be_ahead_by_a_tenth_of_a_point():
    head = np.full((1, 2000), 100.0)
    near, far = head.copy(), head.copy()
    near[0, :2], far[0, :40] = 0, 0
    table = lay_out_head({"near": (near, head), "far": (far, head)}, "That is all.")
    assert table.frame["neighbors minus head, points"][0].startswith("-0.10 [")
    assert "near: at most 0.1 points behind; far: more than 0.1 points behind. That is all." in table.caption


def test_an_ece_is_shown_before_and_after_with_what_chance_would_show():
    frame = pd.DataFrame(
        {
            "k": 16,
            "vote": ["attention", "attention", "attention_averages", "baseline", "uniform"],
            "ece_debiased_raw": 0.05,
            "chance_raw_low": 0.001,
            "chance_raw_high": 0.009,
            "ece_debiased": [0.008, 0.010, 0.02, 0.001, 0.9],
            "chance_low": 0.002,
            "chance_high": 0.008,
            "smooth_ece": 0.01,
        }
    )
    table = lay_out_ece(frame)
    assert table.frame["vote"].tolist() == ["attention", "attention + averages", "parametric baseline"]
    assert table.frame["ECE after"].tolist() == pytest.approx([0.009, 0.02, 0.001])
    assert table.frame["chance before"][0] == "[0.0010, 0.0090]"
    assert "attention with k = 16 at most 0.010; attention + averages with k = 16 above 0.010." in table.caption


# ---- From checkpoints


def trained(seed: int, noise: LabelNoise | None = None, **changes) -> AttnKNN:
    """A checkpoint of a study, as its card tells it; the same test queries for all of them."""
    classifier = lattice_classifier()
    config = TrainingConfig.from_dict(classifier.card["config"])
    told = {"seed": seed, "label_noise": noise} | changes
    return AttnKNN(
        classifier.bundle,
        classifier.fitted,
        classifier.card | {"config": TrainingConfig(**(vars(config) | told)).to_dict()},
        {},
    )


def test_checkpoints_that_differ_by_their_seed_are_one_study():
    noise = LabelNoise("pair", 0.4, 7)
    kinds = [trained(0), trained(1), trained(0, noise), trained(1, noise), trained(0, held_out=0.3)]
    examined = [protocol.ask_everything(one, [5], 2) for one in kinds]
    studies = protocol.group(examined)
    assert [(study[0], len(embedders)) for study, embedders in studies.items()] == [("B", 2), ("A", 2), ("B", 1)]
    by_protocol = [[*protocol.join(embedders, [5])] for embedders in studies.values()]
    assert [one.level for one in by_protocol[0]] == protocol.LEVELS
    assert [one.values["nll"]["uniform"].shape for one in by_protocol[0]] == [(2, 1, 12)] + [(2, 2, 12)] * 6
    (noisy,) = by_protocol[1]
    assert (noisy.level, noisy.values["nll"]["uniform"].shape) == (Level("A", "pair", 0.4), (2, 1, 12))
    with pytest.raises(SettingError, match="another seed than"):
        protocol.group([examined[0], examined[0]])


def test_noise_in_training_is_asked_as_it_is():
    """Protocol A adds nothing: the labels of the bank are those that the checkpoint brought."""
    one = protocol.ask_everything(trained(0, LabelNoise("pair", 0.4)), [5], 3)
    (found,) = one.findings.values()
    clean = protocol.examine(trained(0), 5, [LabelNoise()])
    np.testing.assert_array_equal(found.hits["attention"], clean.hits["attention"])
    assert set(protocol.list_rows([one])["noise"]) == {"40 % pair"}


def test_k_is_chosen_on_held_out_items(iris: AttnKNN):
    asked = held_out_queries(iris)
    right = []
    for k in range(1, 65):
        labels = observe(iris.entries, LabelNoise()).labels[asked.pool.entries[:, :k]]
        answers = [np.bincount(row, minlength=3).argmax() for row in labels]
        right.append(np.mean(answers == asked.labels))
    assert protocol.choose_k(iris) == 1 + right.index(max(right))
    assert protocol.choose_k(lattice_classifier()) is None


def test_one_command_makes_rows_claims_and_tables(shelf: Path, tmp_path: Path, monkeypatch, capsys):
    arguments = [str(shelf / "iris"), "--seeds", "2", "--k", "3", "8", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["protocol", *arguments])
    protocol.main()
    shown = capsys.readouterr().out
    assert shown == (tmp_path / "tables.md").read_text(encoding="utf-8")
    titles = [line for line in shown.splitlines() if line.startswith("#")]
    assert titles[0].startswith("# Iris")
    assert titles[1:] == [
        *("## Accuracy, k = 3", "## NLL, k = 3", "## Accuracy, k = 8", "## NLL, k = 8"),
        *("## Neighbors against the softmax head", "## Calibration on clean labels"),
    ]
    rows, claims = (pd.read_csv(tmp_path / name) for name in ("rows.csv", "claims.csv"))
    assert len(rows) == 2 * (1 + 6 * 2) * len(COMPARED)
    assert len(claims) == 2 * 7 * 4
    lost = claims[(claims["measure"] == "nll") & (claims["gap"] >= 0) & (claims["k"] == 8)]
    caption = shown.split("## NLL, k = 8")[1].split("##")[0]
    assert caption.count("(against ") == len(lost)


def test_programs_get_every_draw(shelf: Path, tmp_path: Path, monkeypatch, capsys):
    arguments = [str(shelf / "iris"), "--seeds", "1", "--k", "3", "--format", "csv", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["protocol", *arguments])
    protocol.main()
    assert capsys.readouterr().out == (tmp_path / "rows.csv").read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["claims.csv", "rows.csv", "tables.md"]
