"""State is the URL: what a link to the Neighbors page may say, what is accepted, and the sentence when it is not.

The page reads its setting from the link whenever it runs, and writes the link whenever somebody sets something; so
that a reload, a shared link and the browser's Back all show the same. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from attnknn.by_hand import read_flip
from attnknn.config import NOISE_KINDS, LabelNoise

TEMPERATURES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.5, 7.0, 20.0)
HIGHEST_RATE = 0.9
LARGEST_SEED = 9999
LONGEST = 40  # characters of a value that are repeated in a sentence
MOST_FLIPS = 64


@dataclass(frozen=True)
class Setting:
    """How the votes on the board are cast.

    Attributes:
        k: How many neighbors vote.
        temperature: Divides the scores of the distance and attention votes.
        noise: Label noise of the bank.
        flips: Labels flipped by hand, class by id of entry.
        dropped: Ids of entries that the search is not to find.
        muted: Names of heads that are not heard.
        averages: Whether the board shows attention with the class averages at the table.
        neighbor: Id of the neighbor that is looked at; None is the nearest.
    """

    k: int
    temperature: float = 1.0
    noise: LabelNoise = field(default_factory=LabelNoise)
    flips: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    muted: tuple[str, ...] = ()
    averages: bool = False
    neighbor: str | None = None


@dataclass(frozen=True)
class Limits:
    """What a checkpoint and a query allow.

    Attributes:
        k: The k of the fit.
        largest_k: How many neighbors there are to show.
        n_classes: C.
        heads: Names of the heads.
        is_entry: Whether an id names an entry of the bank.
        is_shown: Whether an id names one of the entries that are sent.
        most_dropped: How many neighbors may be left out, so that one is left.
    """

    k: int
    largest_k: int
    n_classes: int
    heads: tuple[str, ...]
    is_entry: Callable[[str], bool]
    is_shown: Callable[[str], bool]
    most_dropped: int


@dataclass(frozen=True)
class Parameter:
    """One thing a link may set.

    Attributes:
        name: Of the query parameter.
        expected: What fits, in words.
        read: What a text means; raises ValueError where it means nothing.
        default: What is meant where the link says nothing.
        write: The text that means a value.
    """

    name: str
    expected: str
    read: Callable[[str], Any]
    default: Any
    write: Callable[[Any], str] = str


def parameters(limits: Limits) -> tuple[Parameter, ...]:
    """List what a link may set, in the order of the controls."""
    heads, last = limits.heads, limits.n_classes - 1
    return (
        Parameter("k", f"a whole number between 1 and {limits.largest_k}", _whole(1, limits.largest_k), limits.k),
        Parameter("temperature", f"one of {', '.join(map(str, TEMPERATURES))}", _one_number_of(TEMPERATURES), 1.0),
        Parameter("noise", f"a number between 0 and {HIGHEST_RATE}", _rate, 0.0),
        Parameter("kind", f"one of {', '.join(NOISE_KINDS)}", _one_of(NOISE_KINDS), NOISE_KINDS[0]),
        Parameter("seed", f"a whole number between 0 and {LARGEST_SEED}", _whole(0, LARGEST_SEED), 0),
        Parameter(
            "flips",
            f"ids of entries, each with a class from 0 to {last}, as in id:{last},id:0; at most {MOST_FLIPS}",
            _flips(limits),
            {},
            lambda flips: ",".join(f"{entry}:{label}" for entry, label in flips.items()),
        ),
        Parameter(
            "dropped",
            f"ids of entries with commas between them, at most {limits.most_dropped}",
            _list_of(limits.is_entry, limits.most_dropped),
            (),
            ",".join,
        ),
        Parameter(
            "muted", f"some of {', '.join(heads)}, not all", _list_of(heads.__contains__, len(heads) - 1), (), ",".join
        ),
        Parameter("averages", "1, for class averages at the table", _one_of(("1",)), ""),
        Parameter("neighbor", "the id of an entry that is shown", _item(limits.is_shown), ""),
    )


def read(link: Mapping[str, str], limits: Limits) -> tuple[Setting, list[str]]:
    """Read a link: what it sets, and one sentence for each value that does not fit."""
    values, complaints = {}, []
    for one in parameters(limits):
        values[one.name] = one.default
        if one.name in link:
            try:
                values[one.name] = one.read(link[one.name])
            except ValueError:
                complaints.append(complain(one.name, one.expected, link[one.name], _in_words(one)))
    noise = LabelNoise(values.pop("kind"), values.pop("noise"), values.pop("seed"))
    averages, neighbor = bool(values.pop("averages")), values.pop("neighbor") or None
    return Setting(noise=noise, averages=averages, neighbor=neighbor, **values), complaints


def write(setting: Setting, limits: Limits) -> dict[str, str]:
    """Write a setting as a link, which says only what is not as it is anyway."""
    noise = setting.noise
    said = vars(setting) | {"noise": noise.rate, "kind": noise.kind, "seed": noise.seed}
    said |= {"averages": "1" if setting.averages else "", "neighbor": setting.neighbor or ""}
    return {one.name: one.write(said[one.name]) for one in parameters(limits) if said[one.name] != one.default}


def complain(name: str, expected: str, said: str, shown: str) -> str:
    """Say what was expected, what came, and what is shown instead."""
    return f"{name} must be {expected}; the link says {name}={shorten(said)}. Showing {name} = {shown}."


def shorten(text: str) -> str:
    """Return the beginning of a text that may be of any length."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _in_words(parameter: Parameter) -> str:
    return parameter.write(parameter.default) or ("the nearest" if parameter.name == "neighbor" else "none")


def _number(text: str) -> float:
    if len(text) > LONGEST or not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read_whole(text: str) -> int:
        number = _number(text)
        if not (number.is_integer() and least <= number <= most):
            raise ValueError(text)
        return int(number)

    return read_whole


def _one_number_of(numbers: tuple[float, ...]) -> Callable[[str], float]:
    def read_one(text: str) -> float:
        if (number := _number(text)) not in numbers:
            raise ValueError(text)
        return number

    return read_one


def _rate(text: str) -> float:
    """Read a rate, and put it on the nearest stop of the slider."""
    if not 0 <= (rate := _number(text)) <= HIGHEST_RATE:
        raise ValueError(text)
    return round(100 * rate) / 100


def _one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    def read_word(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return read_word


def _item(is_known: Callable[[str], bool]) -> Callable[[str], str]:
    def read_item(text: str) -> str:
        if not is_known(text):
            raise ValueError(text)
        return text

    return read_item


def _list_of(is_known: Callable[[str], bool], most: int) -> Callable[[str], tuple[str, ...]]:
    def read_list(text: str) -> tuple[str, ...]:
        items = tuple(dict.fromkeys(text.split(",", most)))
        if len(items) > most or not all(map(is_known, items)):
            raise ValueError(text)
        return items

    return read_list


def _flips(limits: Limits) -> Callable[[str], dict[str, int]]:
    def read_flips(text: str) -> dict[str, int]:
        parts = text.split(",", MOST_FLIPS)
        if len(parts) > MOST_FLIPS:
            raise ValueError(text)
        return dict(read_flip(part, limits.is_entry, limits.n_classes) for part in parts)

    return read_flips
