"""What is read from the card of a checkpoint: its numbers as rows, and the way to open it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attnknn.checkpoints import open_checkpoint, root_from_environment
from attnknn.config import TrainingConfig
from attnknn.ui import shell, store
from attnknn.ui.display import or_sentence
from attnknn.ui.labels import is_round, write_cleaning, write_labels, write_noise
from attnknn.votes import TITLES

Card = dict[str, Any]
SHOWN = {  # column of the list → vote, noise kind, noise rate
    "attention": ("attention", "symmetric", 0.0),
    "uniform": ("uniform", "symmetric", 0.0),
    "attention, 40 % noise": ("attention", "symmetric", 0.4),
    "uniform, 40 % noise": ("uniform", "symmetric", 0.4),
}
NOISE_ADDED = "Label noise of the bank, added after training. Symmetric: any other class, equally likely."
OWN_LABELS = "the dataset's"
SETTINGS = ("seed", "held_out")
OF_EMBEDDER = ("kind", "epochs", "dimension", "width", "members", "batch_size", "learning_rate", "dropout")


def read_card(name: str) -> Card | str:
    """Return the card of a checkpoint whose files are what it says, or else a sentence why not."""
    root = root_from_environment()
    path = root / name / "card.json"
    return _read(name, str(root), path.stat().st_mtime_ns if path.is_file() else 0)


def config_of(card: Card) -> TrainingConfig:
    """Return how a checkpoint was trained."""
    return TrainingConfig.from_dict(card["config"])


def rounds_of(card: Card) -> list[dict[str, Any]]:
    """Return what each round of cleaning did; nobody checks this part of a stranger's card."""
    found = card.get("cleaning")
    return [one for one in found if is_round(one)] if isinstance(found, list) else []


def offer_opening(name: str, place: DeltaGenerator) -> None:
    """Link to the Neighbors page with a checkpoint, as long as it is there."""
    if name in store.names():
        place.page_link(
            shell.PAGES / "neighbors.py",
            label=f"Open **{name}** in Neighbors",
            icon=":material/hub:",
            query_params={"checkpoint": name},
        )


def list_row(name: str, card: Card | str) -> dict[str, Any]:
    """Return one row of the list of checkpoints; a damaged one has no numbers."""
    if isinstance(card, str):
        return {"name": name, "data": "damaged"}
    found = {(row["vote"], row["noise_kind"], row["noise_rate"]): row["accuracy"] for row in card.get("metrics", [])}
    numbers = {column: 100 * found[wanted] if wanted in found else None for column, wanted in SHOWN.items()}
    config, sizes = card["config"], card["sizes"]
    what = {"data": card["dataset"]["name"], "labels": write_labels(config_of(card)) or OWN_LABELS}
    facts = {"n": sizes.get("test"), "epochs": config["embedder"].get("epochs"), "seed": config["seed"]}
    return {"name": name, **what, **numbers, **facts}


def compare(cards: dict[str, Card]) -> list[dict[str, str]]:
    """Lay out two or more checkpoints side by side: a row per vote and added noise, a column per checkpoint."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for name, card in cards.items():
        for row in card.get("metrics", []):
            noise = f"{row['noise_kind']} {row['noise_rate']:.0%}" if row["noise_rate"] else "none"
            low, high = row["accuracy_interval"]
            cell = f"{row['accuracy']:.1%} [{low:.1%}, {high:.1%}], NLL {row['nll']:.3f}"
            rows.setdefault((noise, TITLES.get(row["vote"], row["vote"])), {})[name] = cell
    return [{"noise added": noise, "vote": vote} | cells for (noise, vote), cells in rows.items()]


def compare_settings(cards: dict[str, Card]) -> list[dict[str, str]]:
    """Lay out in which settings checkpoints differ."""
    columns = {name: _settings(card) for name, card in cards.items()}
    names = list(next(iter(columns.values()), {}))
    rows = [{"setting": one} | {name: found.get(one, "") for name, found in columns.items()} for one in names]
    return [row for row in rows if len({value for key, value in row.items() if key != "setting"}) > 1]


def _settings(card: Card) -> dict[str, str]:
    config, typed = card["config"], config_of(card)
    found = {"data": card["dataset"]["title"], "test items": card["sizes"].get("test")}
    found |= {"entries": card["sizes"].get("fit"), "label noise in training": write_noise(typed) or "none"}
    found |= {"labels": write_cleaning(typed) or "not cleaned"}
    found |= {name.replace("_", " "): config[name] for name in SETTINGS}
    found |= {name.replace("_", " "): config["embedder"].get(name) for name in OF_EMBEDDER}
    found |= {"k": config["attention"]["k"], "heads": ", ".join(config["attention"]["heads"])}
    return {name: str(value) for name, value in found.items()}


@st.cache_data(max_entries=128, show_spinner=False)
def _read(name: str, root: str, stamp: int) -> Card | str:
    return or_sentence(lambda: open_checkpoint(name, Path(root)).card)
