"""Options that several commands share, and how their text becomes values.

Numbers arrive as text and are read here, so that k=banana is answered with a sentence of ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from attnknn.config import NOISE_KINDS, LabelNoise
from attnknn.errors import SettingError

LARGEST_SEED = 2**32 - 1

CheckpointName = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="Name of a checkpoint.", show_default=False)]
Neighbors = Annotated[
    str | None,
    typer.Option("--k", metavar="N", help="How many neighbors vote.", show_default="as many as in the fit"),
]
NoiseKindName = Annotated[str, typer.Option("--noise-kind", metavar="KIND", help=f"One of {', '.join(NOISE_KINDS)}.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]


def read_whole(option: str, text: str, low: int, high: int | None = None) -> int:
    """Read a whole number.

    Args:
        option: As it is typed, `--k`; names the setting in the sentence.
        text: What came.
        low: The smallest that is accepted.
        high: The largest that is accepted, if there is one.

    Raises:
        SettingError: It is not a whole number, or out of range.

    Example:
        >>> read_whole("--k", "16", 1)
        16
    """
    value = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None
    if value is None or value < low or (high is not None and value > high):
        expected = f"a whole number of at least {low}" if high is None else f"a whole number between {low} and {high}"
        raise refuse(option, text, expected, f"Write it in digits, as in {option} {max(low, 1)}.")
    return value


def read_k(text: str | None) -> int | None:
    """Read how many neighbors vote; the classifier knows how many there can be."""
    return None if text is None else read_whole("--k", text, 1)


def read_rate(text: str) -> float:
    """Read a noise rate: a share between 0 and 1.

    Raises:
        SettingError: It is no number, or out of range.
    """
    value = _float(text)
    if not 0 <= value <= 1:
        raise refuse("--noise", text, "a share between 0 and 1", "For 40 % of the labels write --noise 0.4.")
    return value


def read_temperature(text: str) -> float:
    """Read a temperature: positive and finite.

    Raises:
        SettingError: It is no number, or not positive.
    """
    value = _float(text)
    if not 0 < value < float("inf"):
        raise refuse("--temperature", text, "a positive number", "Use 1 for the votes as they were fitted.")
    return value


def read_noises(kind: str, rates: Sequence[str], seeds: Sequence[str]) -> list[LabelNoise]:
    """Read draws of label noise, every seed at every rate.

    Raises:
        SettingError: The kind is unknown, or a rate or a seed out of range.
    """
    if kind not in NOISE_KINDS:
        raise refuse("--noise-kind", kind, f"one of {', '.join(NOISE_KINDS)}", "Without it, noise is symmetric.")
    draws = [read_whole("--seed", seed, 0, LARGEST_SEED) for seed in seeds]
    return [LabelNoise(kind, rate, seed) for rate in map(read_rate, rates) for seed in draws]


def refuse(option: str, text: str, expected: str, remedy: str) -> SettingError:
    """Return the error that says what an option must be; a text of nothing is called empty."""
    return SettingError(option, text.strip() or "empty", expected, remedy)


def _float(text: str) -> float:
    """Read a number; what is none becomes NaN, which no range contains."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
