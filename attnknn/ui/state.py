"""State is the URL: what a link may set, what is accepted, and the sentence when it is not.

Widgets are bound to the URL by Streamlit (`bind="query-params"`), which silently shows something else
when a value does not fit. Here what a link says is compared with what the widgets show, so that the
page can say what was wrong and what it shows instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from attnknn.config import NOISE_KINDS

TEMPERATURES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.5, 7.0, 20.0)
LARGEST_K = 64
HIGHEST_RATE = 0.9
LARGEST_SEED = 9999
LONGEST = 40  # characters of a value that are repeated in a sentence


@dataclass(frozen=True)
class Setting:
    """One thing a link may set.

    Attributes:
        name: Key of the widget, and name of the query parameter.
        expected: What fits, in words.
        read: What a text from the URL means; raises ValueError where it means nothing.
    """

    name: str
    expected: str
    read: Callable[[str], object]

    def agrees(self, said: str, shown: object) -> bool:
        """Whether a link says what is shown."""
        with suppress(ValueError):
            return self.read(said) == shown
        return False

    def complaint(self, said: str, shown: object) -> str:
        """Say what was expected, what came, and what is shown instead."""
        came = f"the link says {self.name}={shorten(said)}"
        return f"{self.name} must be {self.expected}; {came}. Showing {self.name} = {shown}."


def settings(largest_k: int, example: str) -> list[Setting]:
    """List what a link to the Neighbors page may set, for a checkpoint with that k and such queries."""
    return [
        Setting(
            "query", f"the id of a test item, such as {example}, or of a picture embedded here for this checkpoint", str
        ),
        Setting("k", f"a whole number between 1 and {largest_k}", float),
        Setting("temperature", f"one of {', '.join(map(str, TEMPERATURES))}, spelled like that", float),
        Setting("noise", f"a number between 0 and {HIGHEST_RATE}", float),
        Setting("kind", f"one of {', '.join(NOISE_KINDS)}", str),
        Setting("seed", f"a whole number between 0 and {LARGEST_SEED}", float),
        Setting("neighbor", "the id of an entry that is shown", str),
    ]


def complaints(link: Mapping[str, str], known: list[Setting], shown: Mapping[str, object]) -> list[str]:
    """Compare what a link says with what is shown; one sentence per value that does not agree."""
    asked = [one for one in known if one.name in link]
    return [
        one.complaint(link[one.name], shown[one.name])
        for one in asked
        if not one.agrees(link[one.name], shown[one.name])
    ]


def shorten(text: str) -> str:
    """Return the beginning of a text that may be of any length."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
