"""What became of training labels before anybody saw them, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnknn.config import TrainingConfig

TIMES = ("never", "once", "twice")
"""How often labels are cleaned; the place of a word is its number."""

COUNTS = ("round", "kept", "relabeled", "dropped", "judge_epoch")


def write_noise(config: TrainingConfig) -> str:
    """Write the label noise that training saw (protocol A); nothing, where there was none.

    Example:
        >>> from attnknn.config import LabelNoise
        >>> write_noise(TrainingConfig(label_noise=LabelNoise("pair", 0.4)))
        '40% pair label noise'
    """
    noise = config.label_noise
    return f"{noise.rate:.0%} {noise.kind} label noise" if noise and noise.rate else ""


def write_cleaning(config: TrainingConfig) -> str:
    """Write how often labels were cleaned, and by which rule; nothing, where they were not.

    Example:
        >>> from attnknn.config import Cleaning
        >>> write_cleaning(TrainingConfig(cleaning=Cleaning(2, "drop")))
        'cleaned twice (drop)'
    """
    cleaning = config.cleaning
    return f"cleaned {TIMES[cleaning.rounds]} ({cleaning.rule})" if cleaning else ""


def write_labels(config: TrainingConfig) -> str:
    """Write both; nothing, where the labels are the dataset's own."""
    return ", ".join(filter(None, (write_noise(config), write_cleaning(config))))


def is_round(facts: Any) -> bool:
    """Whether this says what one round of cleaning did, as cards and the table of jobs do."""
    return isinstance(facts, Mapping) and all(isinstance(facts.get(count), int) for count in COUNTS)


def write_round(facts: Mapping[str, Any]) -> str:
    """Write what one round of cleaning did, and how many labels were right, where that is known.

    Example:
        >>> write_round({"round": 1, "kept": 88, "relabeled": 0, "dropped": 17, "judge_epoch": 5})
        'Cleaning after round 1, by the neighbors of epoch 5: 88 labels kept, 0 relabeled, 17 dropped.'
    """
    done = f"{facts['kept']:,} labels kept, {facts['relabeled']:,} relabeled, {facts['dropped']:,} dropped."
    if all(isinstance(facts.get(share), float) for share in ("purity_before", "purity")):
        done += f" Right before: {facts['purity_before']:.1%}; right after: {facts['purity']:.1%}."
    return f"Cleaning after round {facts['round']}, by the neighbors of epoch {facts['judge_epoch']}: {done}"
