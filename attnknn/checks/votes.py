"""What must hold of heads, terms and the tensors of the votes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.checks import Problem, refuse
from attnknn.checks.card import Card, is_names, it_says, said
from attnknn.errors import CheckpointError
from attnknn.models.attention import HEADS
from attnknn.models.terms import TERMS

Weights = Mapping[str, NDArray[Any]]

ATTENTIONS = ("attention", "attention_averages")


def expect_heads(name: str, card: Card) -> None:
    """Accept heads and terms that can be built here.

    Raises:
        DamagedCheckpoint: They are no lists of different names, or the distance is not among the terms.
        CheckpointError: One has no definition here; a newer version may have it.
    """
    refuse(name, _names(card))
    for kind, known in (("head", HEADS), ("term", TERMS)):
        unknown = [one for one in card["attention"][f"{kind}s"] if one not in known]
        if unknown:
            raise CheckpointError(
                f"Every {kind} must be one that this version knows: {', '.join(known)}.",
                f'Checkpoint "{name}" has {unknown[0]!r:.80}.',
                "Update Attn-KNN Explorer.",
            )


def weight_problems(
    weights: Weights, heads: Sequence[str], terms: Sequence[str], calibrated: Sequence[str], dimension: int
) -> Iterator[Problem]:
    """Find what does not hold of the tensors of the votes.

    Args:
        weights: By name, as `docs/formats.md` lists them.
        heads: Known names of the H heads.
        terms: Known names of the T terms.
        calibrated: Votes that have a calibrator.
        dimension: D, of the keys.
    """
    for tensor, shape in _shapes(heads, terms, calibrated, dimension).items():
        yield from _numbers(weights, tensor, shape)
    if "attention.seat" in weights:
        yield "Class averages sit at the table of attention_averages only.", "There is a tensor attention.seat."
    if (weights["sharpness"] < 0).any():
        yield "sharpness must not be negative.", f"It is {weights['sharpness'].tolist()}."
    yield from _unseen(weights, heads, terms)


def _names(card: Card) -> Iterator[Problem]:
    for kind in ("heads", "terms"):
        names = said(card, f"attention.{kind}")
        if not is_names(names) or not names:
            yield f"attention.{kind} must be a list of different names.", it_says(names)
    if "distance" not in card["attention"]["terms"]:
        yield "attention.terms must have the distance among them.", it_says(card["attention"]["terms"])


def _shapes(
    heads: Sequence[str], terms: Sequence[str], calibrated: Sequence[str], dimension: int
) -> dict[str, tuple[int | None, ...]]:
    """Name every tensor that is needed, and its shape; None is any size."""
    shapes: dict[str, tuple[int | None, ...]] = {"sharpness": (2,)}
    shapes |= {f"calibration.{vote}": (2, 8) for vote in calibrated}
    for vote in ATTENTIONS:
        shapes |= {f"{vote}.coefficients": (len(heads), len(terms)), f"{vote}.sink": (len(heads), 4)}
        if "content" in terms:
            shapes[f"{vote}.metric"] = (None, dimension)
    return shapes | {f"attention_averages.{name}": (len(heads), 2) for name in ("seat", "pull")}


def _numbers(weights: Weights, name: str, shape: tuple[int | None, ...]) -> Iterator[Problem]:
    axes = ", ".join("R" if size is None else str(size) for size in shape)
    expected = f"weights.safetensors must hold {name}: finite numbers of shape ({axes}{',' * (len(shape) == 1)})."
    if name not in weights:
        yield expected, "It is missing."
    found = weights[name]
    fits = len(found.shape) == len(shape) and all(
        size == want or (want is None and size > 0) for size, want in zip(found.shape, shape, strict=True)
    )
    if found.dtype.kind not in "fiu" or not fits:
        yield expected, f"It is {found.dtype} of shape {found.shape}."
    if not np.isfinite(found).all():
        yield expected, "Some are NaN or infinite."


def _unseen(weights: Weights, heads: Sequence[str], terms: Sequence[str]) -> Iterator[Problem]:
    """A head has no say about a term that it does not see."""
    is_seen = np.array([[term in HEADS[head].terms for term in terms] for head in heads])
    for vote in ATTENTIONS:
        wrong = np.argwhere((weights[f"{vote}.coefficients"] != 0) & ~is_seen)
        if len(wrong):
            head, term = heads[wrong[0][0]], terms[wrong[0][1]]
            came = f'"{head}" does not see "{term}", and has one.'
            yield f"{vote}.coefficients must be zero where a head does not see a term.", came
