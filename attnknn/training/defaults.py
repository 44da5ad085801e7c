"""What suits a kind of data, what may be chosen instead, and the command that says so.

Needs no torch, so that the page can show it in a form.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from attnknn.config import AttentionConfig, Cleaning, EmbedderConfig, LabelNoise, TrainingConfig
from attnknn.data import Dataset, DatasetDescription, describe_datasets

LARGE_IMAGE = 16  # pixels of the shorter side, from which on the network for larger images is worth its time
FLIPPED = ("cifar10", "cifar100", "fashion_mnist")  # what means the same in a mirror
LARGE = EmbedderConfig("fast_cnn", 128, 32, epochs=8, batch_size=500, learning_rate=1e-2, shift=2, smoothing=0.1)
TABLE = EmbedderConfig("mlp", dimension=16, width=64, epochs=100, batch_size=32, learning_rate=2e-3, dropout=0.2)
LONG, VERY_LONG = 1_000, 10_000  # rows from which on a table is seen in fewer passes, and in larger batches

SHARES = {"held_out": (0.1, 0.4), "dropout": (0.0, 0.7)}
"""Between what a share must lie."""

ALWAYS = ("--seed", "--epochs", "--k", "--heads")
"""What a command says even where it is the default."""


def default_config(dataset: Dataset | DatasetDescription, seed: int = 0) -> TrainingConfig:
    """Choose an embedder and a schedule that suit tiny images, larger ones, or tables and points of any length."""
    n_items, *shape = dataset.inputs.shape if isinstance(dataset, Dataset) else (dataset.n_items, *dataset.shape)
    if dataset.kind != "image":
        return TrainingConfig(dataset.name, seed, embedder=_table(n_items), attention=_attention(n_items))
    if min(shape[:2]) < LARGE_IMAGE and len(shape) == 2:
        return TrainingConfig(dataset.name, seed)
    embedder = replace(LARGE, flip=dataset.name in FLIPPED)
    if len(shape) == 3:
        embedder = replace(embedder, width=64, ascent=0.3)
    return TrainingConfig(dataset.name, seed, held_out=0.1, embedder=embedder, attention=AttentionConfig(draws=1))


def _table(n_items: int) -> EmbedderConfig:
    if n_items < LONG:
        return TABLE
    return replace(TABLE, epochs=30) if n_items < VERY_LONG else replace(TABLE, epochs=20, batch_size=256)


def _attention(n_items: int) -> AttentionConfig:
    """Ask more neighbors where there are many; of noise, many held-out items need one draw of a kind each."""
    if n_items < LONG:
        return AttentionConfig()
    return AttentionConfig(k=32, draws=3 if n_items < VERY_LONG else 1)


def command_line(config: TrainingConfig, name: str) -> str:
    """Write the command that makes a checkpoint again: every choice that is not what suits the data.

    Args:
        config: What is trained.
        name: Of the checkpoint; left out where it is the dataset's.

    Example:
        >>> command_line(TrainingConfig("digits", 3, held_out=0.3), "other")
        'python -m attnknn train digits --name other --seed 3 --epochs 40 --k 16 --heads trusted,typical --held-out 0.3'
    """
    known = {one.name: one for one in describe_datasets()}
    usual = TrainingConfig(config.dataset)
    if config.dataset in known:
        usual = default_config(known[config.dataset])
    before, chosen = _options(usual, config.dataset), _options(config, name)
    said = {option: chosen[option] for option in chosen if option in ALWAYS or chosen[option] != before[option]}
    words = [str(word) for pair in said.items() for word in pair]
    return shlex.join(["python", "-m", "attnknn", "train", config.dataset, *words])


def _options(config: TrainingConfig, name: str) -> dict[str, Any]:
    """Lay out a configuration as the options of the terminal's `train`."""
    embedder, attention = config.embedder, config.attention
    noise, cleaning = config.label_noise or LabelNoise(), config.cleaning or Cleaning()
    return {
        "--name": name,
        "--seed": config.seed,
        "--epochs": embedder.epochs,
        "--k": attention.k,
        "--heads": ",".join(attention.heads),
        "--held-out": config.held_out,
        "--dimension": embedder.dimension,
        "--width": embedder.width,
        "--members": embedder.members,
        "--batch-size": embedder.batch_size,
        "--learning-rate": embedder.learning_rate,
        "--dropout": embedder.dropout,
        "--shift": embedder.shift,
        "--cutout": embedder.cutout,
        "--ascent": embedder.ascent,
        "--label-noise": noise.rate,
        "--noise-kind": noise.kind,
        "--noise-seed": noise.seed,
        "--cleaning": config.n_trainings - 1,
        "--cleaning-rule": cleaning.rule,
        "--agreeing": cleaning.agreeing,
    }
