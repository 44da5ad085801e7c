"""How long something takes, after one time to warm up."""

from __future__ import annotations

import time
from collections.abc import Callable


def milliseconds(work: Callable[[], object], repeats: int) -> list[float]:
    """Return the milliseconds of each of some repeats."""
    work()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - begun))
    return times
