"""The cleaning loop: train, find labels that their own neighbors contradict, drop or replace them, train again.

    fit part ──→ embedder of the round ──→ neighborhoods ──→ judge_labels ──→ what is left, for the next round

An embedder that is trained long enough on wrong labels learns them by heart, and then its neighborhoods confirm
them. So a round does not judge by its last epoch, but by the one whose neighbors said best the observed labels of
the held-out part, which the embedder never sees. Nothing here looks at clean labels or at test; `measure` does,
afterwards, and only where the noise was drawn by us.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save_file

from attnknn.arrays import pick, tally
from attnknn.bank.exact import search_exact
from attnknn.bank.memory import MemoryBank
from attnknn.config import Cleaning, TrainingConfig
from attnknn.errors import SettingError
from attnknn.models.embedders import Embedder
from attnknn.reporting import PausePoint, Report
from attnknn.training.embedder import Look, train_embedder
from attnknn.training.look import LOOKED_THROUGH, Onlooker
from attnknn.training.parts import Parts

JUDGES = 20  # neighbors that judge a label
DROPPED = SILENT = -1
FILE = "best.safetensors"

Score = Callable[[Embedder], float]


@dataclass(frozen=True)
class Cleaned:
    """What the loop ends with.

    Attributes:
        embedder: Trained on what was left, for as many epochs as asked.
        parts: The fit part holds the items that were left, under their cleaned labels.
        rounds: What each round did, in JSON types, for the card.
    """

    embedder: Embedder
    parts: Parts
    rounds: list[dict[str, Any]]


class BestKept:
    """Looks on, and keeps the embedder of the epoch with the highest score; of equal ones, the first.

    Args:
        score: What to go by; must draw no random numbers.
        look: Who else looks on.
        folder: Where the best is remembered, so that an interrupted run ends with the same one.
    """

    def __init__(self, score: Score, look: Look, folder: Path | None = None) -> None:
        self._score, self._look, self._folder = score, look, folder
        self.score, self.epoch, self._state = -np.inf, 0, {}
        if folder and (folder / FILE).exists():
            with safe_open(folder / FILE, framework="pt") as file:
                self._state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                facts = json.loads(file.metadata()["facts"])
            self.score, self.epoch = facts["score"], facts["epoch"]

    def __call__(self, embedder: Embedder, epoch: int) -> dict[str, Any]:
        """Return what the other one saw."""
        score = self._score(embedder)
        if score > self.score:
            self.score, self.epoch = score, epoch
            self._state = {name: tensor.cpu().clone() for name, tensor in embedder.state_dict().items()}
            self._remember()
        return self._look(embedder, epoch)

    def restore(self, embedder: Embedder) -> Embedder:
        """Give an embedder the weights that were kept."""
        embedder.load_state_dict(self._state)
        return embedder.eval()

    def _remember(self) -> None:
        if self._folder:
            draft = self._folder / f".{FILE}"
            facts = json.dumps({"score": self.score, "epoch": self.epoch})
            save_file(self._state, draft, metadata={"facts": facts})
            draft.replace(self._folder / FILE)


def train_cleaned(
    parts: Parts,
    config: TrainingConfig,
    report: Report,
    remember: Path | None,
    pause_point: PausePoint,
    clean_labels: NDArray[np.integer] | None = None,
) -> Cleaned:
    """Train as often as `config.n_trainings` says, cleaning the fit part in between.

    Every round judges the observed labels of the whole fit part anew, so that what one round dropped may come
    back in the next; but neighbors speak for the labels that the round before left them, and dropped ones not at
    all.

    Args:
        parts: The fit part, as observed.
        config: How to train, and how to clean; `config.cleaning` must be set.
        report: Told after every epoch, numbered over all rounds, and after each cleaning.
        remember: A folder that gets one folder per round.
        pause_point: Called between batches, and between rounds.
        clean_labels: Of the whole dataset, where they are known: only to measure what the rounds did.

    Raises:
        SettingError: A round left fewer items than neighbors vote.
    """
    if config.cleaning is None:
        raise ValueError("config.cleaning must say how to clean, however: config.cleaning=None")
    observed, rounds = parts, []
    for number in range(1, config.n_trainings):
        folder = _folder(remember, number)
        look = BestKept(held_out_agreement(parts), _onlooker(parts, config), folder)
        embedder = look.restore(_train(parts, config, number, report, look, folder, pause_point))
        pause_point()
        parts = clean(observed, parts, embedder, config.cleaning)
        left = len(parts.rows["fit"])
        if left <= config.attention.k:
            raise SettingError("Cleaning", f"{left} items left", f"more than k = {config.attention.k}", "Clean less.")
        facts = _compare(observed, parts) | {"judge_epoch": look.epoch, "held_out_agreement": round(look.score, 4)}
        facts |= measure(observed, parts, clean_labels) if clean_labels is not None else {}
        rounds.append({"round": number} | facts)
        report("embedder", number / config.n_trainings, {"round": number, "rounds": config.n_trainings} | facts)
    last, folder = config.n_trainings, _folder(remember, config.n_trainings)
    embedder = _train(parts, config, last, report, _onlooker(parts, config), folder, pause_point)
    return Cleaned(embedder, parts, rounds)


def clean(observed: Parts, before: Parts, embedder: Embedder, cleaning: Cleaning) -> Parts:
    """Judge the observed labels of the fit part by the neighbors that an embedder finds, and keep what is left.

    Args:
        observed: As the run began.
        before: As the round before left it: what neighbors say now.
        embedder: Finds the neighbors.
        cleaning: The rule.
    """
    rows, labels = observed.rows["fit"], observed.labels("fit")
    keys, _ = embedder.embed(observed.inputs("fit"))
    bank = MemoryBank.build(keys, labels, observed.ids("fit"), observed.groups("fit"))
    said = np.where(np.isin(rows, before.rows["fit"]), before.dataset.labels[rows], SILENT)
    judged = judge_labels(bank.neighborhoods(JUDGES), said, labels, observed.dataset.n_classes, cleaning)
    is_left = judged != DROPPED
    return observed.with_fit(rows[is_left], judged[is_left])


def judge_labels(
    neighborhoods: NDArray[np.integer],
    said: NDArray[np.integer],
    labels: NDArray[np.integer],
    n_classes: int,
    cleaning: Cleaning,
) -> NDArray[np.integer]:
    """Say which label each entry is left with.

    n_jc = #{i among the 20 nearest of j : s_i = c},   m_j = argmax_c n_jc

    left_j = y_j where n_j,y_j = max_c n_jc, else m_j where n_j,m_j >= agreeing (rule `relabel`), else none

    In the first round s = y, and what `drop` leaves is what Wilson's editing leaves (`keeps_label`).

    Args:
        neighborhoods: (N, M) rows of the bank, nearest first, the entry and its duplicates not among them; −1
            is nobody.
        said: (N,) labels that the entries speak for; −1 says nothing.
        labels: (N,) observed labels, which are judged.
        n_classes: C.
        cleaning: The rule, and how many neighbors must agree.

    Returns:
        (N,) labels; −1 where an entry is dropped. A tie for first place keeps the label.

    References:
        Wilson (1972), https://doi.org/10.1109/TSMC.1972.4309137

    Example:
        >>> neighborhoods, labels = np.array([[1, 2], [0, 2], [0, 1]]), np.array([0, 0, 1])
        >>> judge_labels(neighborhoods, labels, labels, 2, Cleaning(rule="drop")).tolist()
        [0, 0, -1]
    """
    near = neighborhoods[:, :JUDGES]
    speaks = (near >= 0) & (said[near] >= 0)
    votes = tally(speaks.astype(np.float64), np.where(speaks, said[near], 0), n_classes)
    most, own = votes.max(axis=1), pick(votes, labels[:, None])[:, 0]
    outvoted = votes.argmax(axis=1)
    if cleaning.rule == "drop":
        outvoted[:] = DROPPED
    outvoted[most < cleaning.agreeing] = DROPPED
    return np.where(own == most, labels, outvoted)


def measure(observed: Parts, cleaned: Parts, clean_labels: NDArray[np.integer]) -> dict[str, float]:
    """Measure a cleaning, where the clean labels are known.

    Args:
        observed: Before it.
        cleaned: After it.
        clean_labels: Of the whole dataset.

    Returns:
        `purity`: the share of items left whose label is the clean one; `purity_before`: the same of the whole
        fit part; `recall`: the share of wrong labels that were taken away (1 where none was wrong).
    """
    before, after = observed.rows["fit"], cleaned.rows["fit"]
    is_wrong = observed.labels("fit") != clean_labels[before]
    stands = np.isin(before, after) & (cleaned.dataset.labels[before] == observed.labels("fit"))
    return {
        "purity_before": round(float(1 - is_wrong.mean()), 4),
        "purity": round(float(np.mean(cleaned.labels("fit") == clean_labels[after])), 4),
        "recall": round(float(np.mean(~stands[is_wrong])), 4) if is_wrong.any() else 1.0,
    }


def held_out_agreement(parts: Parts) -> Score:
    """Score an embedder by how often the 20 nearest fit items say the observed label of a held-out one."""
    fit = parts.rows["fit"][:: -(-len(parts.rows["fit"]) // LOOKED_THROUGH)]
    dataset, held_out = parts.dataset, parts.labels("held_out")

    def score(embedder: Embedder) -> float:
        (keys, _), (queries, _) = embedder.embed(dataset.inputs[fit]), embedder.embed(parts.inputs("held_out"))
        near = search_exact(keys, queries, min(JUDGES, len(fit)), dataset.ids[fit])
        votes = tally(np.ones(near.entries.shape), dataset.labels[fit][near.entries], dataset.n_classes)
        return float(np.mean(votes.argmax(axis=1) == held_out))

    return score


def _train(
    parts: Parts,
    config: TrainingConfig,
    number: int,
    report: Report,
    look: Look,
    folder: Path | None,
    pause_point: PausePoint,
) -> Embedder:
    """Train the embedder of one round, and number its epochs after those of the rounds before."""
    before, rounds = (number - 1) * config.embedder.epochs, config.n_trainings

    def told(stage: str, done: float, numbers: dict[str, Any]) -> None:
        counted = {"epoch": before + numbers["epoch"], "round": number, "rounds": rounds}
        report(stage, (number - 1 + done) / rounds, numbers | counted)

    inputs, labels, n_classes = parts.inputs("fit"), parts.labels("fit"), parts.dataset.n_classes
    return train_embedder(inputs, labels, n_classes, config.embedder, config.seed, told, look, folder, pause_point)


def _onlooker(parts: Parts, config: TrainingConfig) -> Onlooker:
    return Onlooker(parts.dataset, parts.rows, config.embedder.epochs)


def _folder(remember: Path | None, number: int) -> Path | None:
    if remember is None:
        return None
    folder = remember / f"round-{number}"
    folder.mkdir(exist_ok=True)
    return folder


def _compare(observed: Parts, cleaned: Parts) -> dict[str, int]:
    rows = cleaned.rows["fit"]
    relabeled = int(np.sum(cleaned.labels("fit") != observed.dataset.labels[rows]))
    return {"kept": len(rows) - relabeled, "relabeled": relabeled, "dropped": len(observed.rows["fit"]) - len(rows)}
