"""What `train` can be asked for, and how its text becomes a configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from attnknn.cli.options import LARGEST_SEED, read_whole, refuse
from attnknn.config import AGREEING, CLEANING_RULES, MOST_ROUNDS, AttentionConfig, Cleaning, LabelNoise

if TYPE_CHECKING:
    from attnknn.config import TrainingConfig
    from attnknn.data import Dataset, DatasetDescription

Made = TypeVar("Made", LabelNoise, Cleaning)

MOST_EPOCHS = 100_000
SUITS = "suits the data"
USUAL = AttentionConfig()
CLEANING = Cleaning()
OF_NOISE = {"label_noise": "rate", "noise_kind": "kind", "noise_seed": "seed"}
OF_CLEANING = {"cleaning": "rounds", "cleaning_rule": "rule", "agreeing": "agreeing"}
"""Options and their fields. The others say nothing without the first."""

DatasetName = Annotated[
    str, typer.Argument(metavar="DATASET", help="Name of a registered dataset.", show_default=False)
]
Name = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of the checkpoint.", show_default="that of the dataset")
]
Seed = Annotated[str, typer.Option(metavar="N", help="Seeds the split, the embedder and the noise of the fit.")]
Epochs = Annotated[str | None, typer.Option(metavar="N", help="Passes over the training items.", show_default=SUITS)]
K = Annotated[str | None, typer.Option("--k", metavar="N", help="Neighbors per query.", show_default=str(USUAL.k))]
Heads = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES", help="Heads of the attention, with commas between.", show_default=",".join(USUAL.heads)
    ),
]
HeldOut = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="Training items that only the votes are fitted on.", show_default="0.2"),
]
Dimension = Annotated[str | None, typer.Option(metavar="N", help="Length of an embedding.", show_default=SUITS)]
Width = Annotated[
    str | None,
    typer.Option(metavar="N", help="Channels of the first layer, or units of a hidden one.", show_default=SUITS),
]
Members = Annotated[
    str | None,
    typer.Option(metavar="N", help="Networks side by side, which share an embedding.", show_default=SUITS),
]
BatchSize = Annotated[str | None, typer.Option(metavar="N", help="Items per step.", show_default=SUITS)]
LearningRate = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Learning rate at its peak.", show_default=SUITS)
]
Dropout = Annotated[
    str | None, typer.Option(metavar="SHARE", help="Share of hidden units silenced while training.", show_default=SUITS)
]
Shift = Annotated[
    str | None,
    typer.Option(metavar="PIXELS", help="Largest random shift of a training image.", show_default=SUITS),
]
Cutout = Annotated[
    str | None,
    typer.Option(
        metavar="PIXELS", help="Side of the square that is blanked in every larger training image.", show_default=SUITS
    ),
]
Ascent = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help="How far each network for larger images goes uphill before a gradient, in the last epochs.",
        show_default=SUITS,
    ),
]
Noise = Annotated[
    str | None,
    typer.Option(
        "--label-noise",
        metavar="RATE",
        help="Share of the training labels that are replaced before anything sees them.",
        show_default="0",
    ),
]
NoiseKindName = Annotated[
    str | None, typer.Option("--noise-kind", metavar="KIND", help="symmetric or pair.", show_default="symmetric")
]
NoiseSeed = Annotated[str | None, typer.Option(metavar="N", help="Names the draw of the noise.", show_default="0")]
Rounds = Annotated[
    str | None,
    typer.Option(
        "--cleaning",
        metavar="ROUNDS",
        help="How often labels are cleaned by their neighbors, and training begins anew.",
        show_default="0",
    ),
]
CleaningRule = Annotated[
    str | None,
    typer.Option(
        metavar="RULE", help="What becomes of an outvoted label: drop or relabel.", show_default=CLEANING.rule
    ),
]
Agreeing = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="Neighbors, of 20, that are enough to relabel.", show_default=str(CLEANING.agreeing)
    ),
]
WithoutBank = Annotated[
    bool,
    typer.Option("--without-bank", help="Save weights and card alone; the bank is filled where it is first used."),
]
Log = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write every report into it, one JSON object a line.", show_default=False),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a checkpoint of that name.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def choose(dataset: Dataset | DatasetDescription, asked: Mapping[str, str | None]) -> TrainingConfig:
    """Take the defaults that suit the data, and change what was asked for.

    Args:
        dataset: What will be trained on.
        asked: Text by name: `seed`, `held_out`, `k`, `heads`, fields of `EmbedderConfig`, `label_noise`, `cleaning`
            and what belongs to these; None is the default.

    Raises:
        SettingError: A number is out of its range, a word unknown, or there are more members than dimensions.

    Example:
        >>> from attnknn.data import describe_datasets
        >>> config = choose(describe_datasets()[0], {"seed": "7", "width": "24", "dropout": None})
        >>> config.seed, config.embedder.width, config.embedder.dropout
        (7, 24, 0.1)
    """
    from attnknn.training.defaults import default_config
    from attnknn.work.submit import check_shares

    usual = default_config(dataset)
    given = {name: _read(name, text) for name, text in asked.items() if text is not None}
    noise, cleaning = _take(LabelNoise, OF_NOISE, given), _take(Cleaning, OF_CLEANING, given)
    embedder = {name: value for name, value in given.items() if hasattr(usual.embedder, name)}
    attention = {name: value for name, value in given.items() if hasattr(usual.attention, name)}
    rest = {name: value for name, value in given.items() if name not in embedder | attention}
    chosen = replace(usual.embedder, **embedder)
    check_shares(chosen)
    return replace(
        usual,
        embedder=chosen,
        attention=replace(usual.attention, **attention),
        label_noise=noise,
        cleaning=cleaning,
        **rest,
    )


def read_heads(text: str) -> tuple[str, ...]:
    """Read names of heads, with commas between.

    Raises:
        SettingError: A name is unknown, or there twice.

    Example:
        >>> read_heads("nearest, trusted")
        ('nearest', 'trusted')
    """
    from attnknn.models.attention import HEADS

    names = tuple(name.strip() for name in text.split(","))
    if not set(names) <= set(HEADS) or len(set(names)) < len(names):
        expected = f"different names among {', '.join(HEADS)}"
        raise refuse("--heads", text, expected, "Write them as in --heads nearest,trusted.")
    return names


def read_number(option: str, text: str, low: float, high: float) -> float:
    """Read a number that may have a fraction.

    Raises:
        SettingError: It is no number, or out of range.

    Example:
        >>> read_number("--dropout", "0.25", 0, 0.7)
        0.25
    """
    value = math.nan
    with suppress(ValueError):
        value = float(text)
    if not low <= value <= high:
        remedy = f"Write it with a point, as in {option} {(low + high) / 2:g}."
        raise refuse(option, text, f"a number between {low:g} and {high:g}", remedy)
    return value


def _take(kind: type[Made], fields: Mapping[str, str], given: dict[str, Any]) -> Made | None:
    """Take the options of one thing out of what was given; None if the first, which asks for it, did not."""
    asks, *others = fields
    chosen = {fields[name]: given.pop(name) for name in tuple(given) if name in fields}
    if chosen.get(fields[asks]):
        return kind(**chosen)
    for name in others:
        if fields[name] in chosen:
            expected, remedy = f"given together with {_write(asks)}", f"Add {_write(asks)}, or leave it out."
            raise refuse(_write(name), str(chosen[fields[name]]), expected, remedy)
    return None


def _write(name: str) -> str:
    return "--" + name.replace("_", "-")


def _read(name: str, text: str) -> Any:
    """Read one choice within its bounds; the same bounds as on the page, but for longer runs and larger seeds."""
    from attnknn.training.defaults import SHARES
    from attnknn.work.submit import LIMITS, TRAINED_NOISES

    option, words = _write(name), {"noise_kind": TRAINED_NOISES, "cleaning_rule": CLEANING_RULES}
    if name == "heads":
        return read_heads(text)
    if name in words:
        if text not in words[name]:
            raise refuse(option, text, f"one of {', '.join(words[name])}", f"Write {option} {words[name][0]}.")
        return text
    if name in SHARES:
        return read_number(option, text, *SHARES[name])
    if isinstance(LIMITS.get(name, (0, 0))[0], float):
        return read_number(option, text, *LIMITS[name])
    low, high = {**LIMITS, "cleaning": (0, MOST_ROUNDS), "agreeing": AGREEING}[name]
    highest = {"epochs": MOST_EPOCHS, "seed": LARGEST_SEED}.get(name, int(high))
    return read_whole(option, text, int(low), highest)
