"""Chance that hangs on a name, not on an order.

A random generator hands out its numbers in order, so one more item shifts everybody's luck. Here
each name is hashed to its own numbers: they depend on the name alone, and not on NumPy's version,
the platform, or who else was asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np


def hash_to_units(names: Iterable[str]) -> np.ndarray:
    """Draw two numbers for each name.

    (u, v) = the two halves of blake2b(name), each as a fraction of 53 bits

    Args:
        names: n names; equal names draw equal numbers.

    Returns:
        float64 array of shape (n, 2), each number uniform in [0, 1) and independent of the others.

    Example:
        >>> hash_to_units(["a", "b", "a"]).round(3).tolist()
        [[0.498, 0.493], [0.817, 0.094], [0.498, 0.493]]
    """
    digests = b"".join(blake2b(name.encode(), digest_size=16).digest() for name in names)
    halves = np.frombuffer(digests, dtype="<u8").reshape(-1, 2)
    return (halves >> np.uint64(11)) * 2.0**-53
