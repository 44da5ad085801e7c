"""How a paired difference is written in every table."""

from __future__ import annotations


def write_gap(gap: float, interval: tuple[float, float], digits: int = 2) -> str:
    """Write a difference with its interval; one that holds zero is no difference."""
    low, high = interval
    verdict = " no difference" if low <= 0 <= high else ""
    return f"{gap:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]{verdict}"
