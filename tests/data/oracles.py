"""Slow, obvious twins of the data room."""

from __future__ import annotations

import math
from hashlib import blake2b
from itertools import accumulate

import numpy as np

from attnknn.config import LabelNoise


def slow_units(name: str) -> tuple[float, float]:
    digest = int.from_bytes(blake2b(name.encode(), digest_size=16).digest(), "little")
    first, second = digest % 2**64, digest // 2**64
    return (first // 2**11) / 2**53, (second // 2**11) / 2**53


def slow_groups(inputs: np.ndarray) -> list[int]:
    numbers: list[int] = []
    for i, item in enumerate(inputs):
        twins = [numbers[j] for j in range(i) if np.array_equal(inputs[j], item)]
        numbers.append(twins[0] if twins else len(set(numbers)))
    return numbers


def slow_flip(label: int, u: float, v: float, noise: LabelNoise, n_classes: int) -> int:
    if u >= noise.rate:
        return label
    if noise.kind == "pair":
        return 0 if label == n_classes - 1 else label + 1
    others = [c for c in range(n_classes) if c != label]
    if noise.kind == "symmetric":
        return others[math.floor(v * len(others))]
    assert noise.matrix is not None
    stacked = list(accumulate(noise.matrix[label][c] for c in others))
    return next((c for c, top in zip(others, stacked, strict=True) if v * stacked[-1] < top), label)


def slow_quotas(labels: list[int], share: float) -> dict[int, int]:
    exact = {c: round(share * labels.count(c), 9) for c in sorted(set(labels))}
    quotas = {c: math.floor(places) for c, places in exact.items()}
    while sum(quotas.values()) < math.ceil(round(sum(exact.values()), 6)):
        poorest = max(quotas, key=lambda c: (exact[c] - quotas[c], -c))
        quotas[poorest] += 1
    return quotas


def slow_split(labels: list[int], groups: list[int], share: float, seed: int) -> list[bool]:
    places = slow_quotas(labels, share)
    held: set[int] = set()
    for group in sorted(set(groups), key=lambda g: slow_units(f"{seed}:{g}")[0]):
        wanted = [label for label, g in zip(labels, groups, strict=True) if g == group]
        if all(wanted.count(c) <= places[c] for c in wanted):
            held.add(group)
            places = {c: free - wanted.count(c) for c, free in places.items()}
    return [group in held for group in groups]
