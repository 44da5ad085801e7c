"""State is the URL: what a link may set, what is accepted, and the sentence when it is not.

Widgets are bound to the URL by Streamlit (`bind="query-params"`), which silently falls back to the
default when a value does not fit. Here the same values are checked before any widget reads them, so
that the page can say what was wrong and what it shows instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from attnknn.config import NOISE_KINDS

TEMPERATURES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.5, 7.0, 20.0)
LARGEST_K = 64
HIGHEST_RATE = 0.9
LARGEST_SEED = 9999


@dataclass(frozen=True)
class Setting:
    """One thing a link may set.

    Attributes:
        name: Key of the widget, and name of the query parameter.
        default: Shown when the link says nothing, or nothing usable.
        expected: What fits, in words.
        fits: Whether a text from the URL is usable.
    """

    name: str
    default: str
    expected: str
    fits: Callable[[str], bool]

    def complaint(self, value: str) -> str:
        """Say what was expected, what came, and what is shown instead."""
        shown = value if len(value) <= 40 else value[:40] + "…"
        said = f"the link says {self.name}={shown}"
        return f"{self.name} must be {self.expected}; {said}. Showing {self.name} = {self.default}."


def settings(largest_k: int, default_k: int, query_ids: Mapping[str, int], default_query: str) -> list[Setting]:
    """List what a link to the Neighbors page may set, for the checkpoint in use."""
    kinds = ", ".join(NOISE_KINDS)
    return [
        Setting("query", default_query, f"the id of a test item, such as {default_query}", query_ids.__contains__),
        Setting("k", str(default_k), f"a whole number between 1 and {largest_k}", _whole(1, largest_k)),
        Setting("temperature", "1.0", f"one of {', '.join(map(str, TEMPERATURES))}", _one_of(TEMPERATURES)),
        Setting("noise", "0.0", f"a number between 0 and {HIGHEST_RATE}", _number(0, HIGHEST_RATE)),
        Setting("kind", NOISE_KINDS[0], f"one of {kinds}", NOISE_KINDS.__contains__),
        Setting("seed", "0", f"a whole number between 0 and {LARGEST_SEED}", _whole(0, LARGEST_SEED)),
    ]


def complaints(params: Mapping[str, str], known: list[Setting]) -> list[str]:
    """Check what a link says against what fits; one sentence per value that does not."""
    return [one.complaint(params[one.name]) for one in known if one.name in params and not one.fits(params[one.name])]


def _whole(low: int, high: int) -> Callable[[str], bool]:
    return lambda text: text.isascii() and text.isdigit() and low <= int(text[:9]) <= high


def _number(low: float, high: float) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            return low <= float(text) <= high
        except ValueError:
            return False

    return fits


def _one_of(numbers: tuple[float, ...]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            return float(text) in numbers
        except ValueError:
            return False

    return fits
