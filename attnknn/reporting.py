"""How long work tells what it does, and lets itself be stopped: the words that training and downloads share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Report = Callable[[str, float, dict[str, Any]], None]
"""Called as report(stage, share done between 0 and 1, numbers to show)."""

PausePoint = Callable[[], None]
"""Called often; whatever it raises ends the work."""


def silent(stage: str, done: float, numbers: dict[str, Any]) -> None:
    """Report nothing."""


def never() -> None:
    """Never pause."""
