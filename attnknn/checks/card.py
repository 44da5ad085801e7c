"""What the card must say of dataset and configuration, and that nothing is said twice and differently.

What a card does not say is not missed here: `docs/formats.md` tells which fields are needed, and for what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_type_hints

from attnknn.checks import Problem
from attnknn.checks.arrays import Arrays
from attnknn.config import SMALLEST_IMAGE, EmbedderConfig

Card = Mapping[str, Any]

KINDS = ("image", "table", "points")
EMBEDDERS: tuple[str, ...] = get_args(get_type_hints(EmbedderConfig)["kind"])

_UNSAID = object()


def dataset_problems(card: Card) -> Iterator[Problem]:
    """Find what the card's `dataset` says that no dataset can be: classes of one name, an unknown kind."""
    if not isinstance(card.get("dataset"), dict):
        yield "The card must describe its dataset.", "It has no object of that name."
    names = said(card, "dataset.class_names")
    if not is_names(names) or len(names) < 2:
        yield "dataset.class_names must list two or more different names.", it_says(names)
    kind = said(card, "dataset.kind")
    if kind is not _UNSAID and kind not in KINDS:
        yield f"dataset.kind must be one of {', '.join(KINDS)}.", it_says(kind)


def config_problems(card: Card) -> Iterator[Problem]:
    """Find what the card's `config` says that cannot be built, or fitted again."""
    kind = said(card, "config.embedder.kind")
    if kind is not _UNSAID and kind not in EMBEDDERS:
        yield f"config.embedder.kind must be one of {', '.join(EMBEDDERS)}.", it_says(kind)
    shape = said(card, "dataset.input_shape")
    if kind == "fast_cnn" and shape is not _UNSAID and not is_image_shape(shape):
        yield (
            f"fast_cnn takes images, [height, width] or [height, width, 3], of {SMALLEST_IMAGE} pixels or more.",
            it_says(shape),
        )
    members, dimension = (said(card, f"config.embedder.{one}") for one in ("members", "dimension"))
    most = dimension if type(dimension) is int else EmbedderConfig.dimension
    if members is not _UNSAID and not (type(members) is int and 1 <= members <= most):
        yield f"config.embedder.members must be a whole number from 1 to {most}, the dimension.", it_says(members)
    k = said(card, "config.attention.k")
    if k is not _UNSAID and (type(k) is not int or k < 1):
        yield "config.attention.k must be a whole number from 1.", it_says(k)


def agreement_problems(card: Card, arrays: Arrays) -> Iterator[Problem]:
    """Find facts that card and arrays, or two places of the card, tell differently."""
    twice = {
        "sizes.fit": len(arrays["entry_ids"]),
        "sizes.test": len(arrays["query_ids"]),
        "dataset.input_shape": list(arrays["entry_inputs"].shape[1:]),
        "config.embedder.dimension": arrays["entry_keys"].shape[1],
        "config.dataset": said(card, "dataset.name"),
        "config.attention.heads": said(card, "attention.heads"),
    }
    for path, found in twice.items():
        value = said(card, path)
        if _UNSAID not in (value, found) and (type(value) is not type(found) or value != found):
            yield f"{path} must be {found!r:.80}, as elsewhere in the checkpoint.", it_says(value)
    yield from _features(card, arrays)
    yield from _files(card, arrays)


def said(card: Card, path: str) -> Any:
    """Return what the card says at a dotted path; something that equals nothing else if it does not."""
    value: Any = card
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return _UNSAID
        value = value[name]
    return value


def is_image_shape(value: Any) -> bool:
    """Say whether this is the shape of an image, gray or in color, that is large enough to be pooled."""
    return (
        isinstance(value, list)
        and len(value) in (2, 3)
        and all(type(one) is int for one in value)
        and min(value[:2]) >= SMALLEST_IMAGE
        and value[2:] in ([], [3])
    )


def is_names(value: Any) -> bool:
    """Say whether this is a list of different texts."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value) and len(set(value)) == len(value)


def _features(card: Card, arrays: Arrays) -> Iterator[Problem]:
    """Every column of a table has a name, or none has."""
    names, columns = said(card, "dataset.feature_names"), arrays["entry_inputs"].shape[1:]
    if said(card, "dataset.kind") in ("table", "points") and names not in (_UNSAID, []):
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            yield "dataset.feature_names must be a list of names.", it_says(names)
        elif columns != (len(names),):
            yield f"dataset.feature_names must name inputs of shape {columns}.", f"It has {len(names)} names."


def _files(card: Card, arrays: Arrays) -> Iterator[Problem]:
    """What is said of an array is what its own header says."""
    for name, array in arrays.items():
        facts = card["files"].get(f"bundle/{name}.npy", {})
        for fact, found in (("dtype", array.dtype.str), ("shape", list(array.shape))):
            if facts.get(fact, found) != found:
                yield f"The card must say {fact} {found} of {name}, as the file does.", it_says(facts[fact])


def it_says(value: Any) -> str:
    """Quote what the card says, cut short."""
    return "It says nothing." if value is _UNSAID else f"It says {value!r:.80}."
