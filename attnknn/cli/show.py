"""Print results: one JSON document, or tables for a reader."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_IN_A_PIPE = 140


def print_json(document: Any) -> None:
    """Print a document of plain types on stdout; numbers that are not finite become null."""
    sys.stdout.write(json.dumps(without_nan(document), indent=2, allow_nan=False) + "\n")


def without_nan(value: Any) -> Any:
    """Replace numbers that JSON cannot write by None, at any depth.

    Example:
        >>> without_nan({"nll": float("nan"), "rows": [1.5, float("inf")]})
        {'nll': None, 'rows': [1.5, None]}
    """
    if isinstance(value, Mapping):
        return {str(key): without_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], n_words: int = 1, caption: str = ""
) -> None:
    """Print a table on stdout.

    Args:
        title: Above the table.
        columns: Names of the columns.
        rows: Cells as text, one row per item.
        n_words: How many columns from the left hold words; the others hold numbers,
            flush right and never broken.
        caption: Below the table.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for place, column in enumerate(columns):
        is_word = place < n_words
        table.add_column(column, justify="left" if is_word else "right", overflow="fold", no_wrap=not is_word)
    for row in rows:
        table.add_row(*row)
    console = stdout_console()
    console.print(title, soft_wrap=True, style="bold")
    console.print(table)
    console.print(f"{caption}\n" if caption else "", soft_wrap=True)


def stdout_console() -> Console:
    """Return a console that prints text as it is; wide enough for a table where no terminal sets the width."""
    from rich.console import Console

    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if has_width else WIDTH_IN_A_PIPE, markup=False, highlight=False, emoji=False)


def write_number(value: float | None, digits: int = 3) -> str:
    """Write a number for a cell; what there is none of is a dash.

    Example:
        >>> write_number(0.98765), write_number(float("nan")), write_number(None)
        ('0.988', '-', '-')
    """
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def write_share(value: float) -> str:
    """Write a share in percent.

    Example:
        >>> write_share(0.4)
        '40 %'
    """
    return f"{100 * value:.0f} %"


def write_interval(value: float | None, interval: Sequence[float] | None) -> str:
    """Write a number with the interval it lies in, if one is known.

    Example:
        >>> write_interval(0.95, [0.9, 1.0])
        '0.950 [0.900, 1.000]'
    """
    if interval is None:
        return write_number(value)
    return f"{write_number(value)} [{write_number(interval[0])}, {write_number(interval[1])}]"


def write_noise(rate: float, kind: str) -> str:
    """Write the label noise in force.

    Example:
        >>> write_noise(0.4, "pair"), write_noise(0, "pair")
        ('40 % pair label noise', 'no label noise')
    """
    return f"{write_share(rate)} {kind} label noise" if rate else "no label noise"
