"""Tables as text: what `attnknn.evaluation.protocol.evaluate` found, for a paper, a page or another program.

    tidy frame ─→ for_readers ─→ write_markdown, write_latex     means over draws, rounded, escaped
             └──→ write_csv, write_json                          every draw, every digit

The writers take any frame.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from attnknn.votes import TITLES

if TYPE_CHECKING:
    import pandas as pd

LEVEL = ("k", "noise_kind", "noise_rate")
MEASURES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "nll": "NLL (nats)",
    "brier": "Brier",
    "ece": "ECE",
    "ece_debiased": "debiased ECE",
    "smooth_ece": "smooth ECE",
    "augrc": "AUGRC",
    "ece_raw": "raw ECE",
    "nll_raw": "raw NLL (nats)",
    "effective_neighbors": "effective neighbors",
    "unanimity": "unanimity",
}
"""What a reader calls each measure; raw is before calibration."""

MISSING = "–"
LATEX = str.maketrans(
    {"\\": r"\textbackslash ", "~": r"\textasciitilde ", "^": r"\textasciicircum "}
    | {one: f"\\{one}" for one in "&%$#_{}"}
)
MARKUP = re.compile(r"[\\`*\[<|~&]|(?<![^\W_])_|_(?![^\W_])")  # what Markdown may take for more than itself in a cell


def average_draws(frame: pd.DataFrame) -> pd.DataFrame:
    """Average each measure over draws of label noise: one row per level and vote, in the order of the frame.

    Args:
        frame: Of `evaluate`, one row per draw and vote.

    Returns:
        The columns of `LEVEL`, vote, draws (how many) and the measures.
    """
    groups = frame.groupby([*LEVEL, "vote"], sort=False)
    means = groups[list(MEASURES)].mean()
    means.insert(0, "draws", groups.size())
    return means.reset_index()


def for_readers(frame: pd.DataFrame) -> pd.DataFrame:
    """Average over draws, and call votes, noise and measures what a reader calls them."""
    means = average_draws(frame).rename(columns=MEASURES)
    means["vote"] = means["vote"].map(TITLES)
    kinds, rates = means.pop("noise_kind"), means.pop("noise_rate")
    means.insert(1, "noise", [name_noise(*level) for level in zip(kinds, rates, strict=True)])
    return means


def name_noise(kind: str, rate: float) -> str:
    """Say which noise, in a cell: `40 % pair`, or `none`."""
    return f"{100 * rate:g} % {kind}" if rate else "none"


def write_markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    r"""Write a table in Markdown, numbers flush right; what would be read as markup is escaped.

    Args:
        frame: One row per line.
        digits: Of numbers that are not whole, after the point.

    Example:
        >>> import pandas as pd
        >>> print(write_markdown(pd.DataFrame({"vote": ["a|b"], "NLL": [0.5]})), end="")
        | vote | NLL |
        |---|---:|
        | a\|b | 0.5000 |

    References:
        https://github.github.com/gfm/#tables-extension-
    """
    rules = ["---:" if is_number else "---" for is_number in _are_numbers(frame)]
    table = _as_text(frame, digits)
    rows = [table.columns, *table.to_numpy()]
    head, *body = [f"| {' | '.join(map(_escape_markdown, row))} |\n" for row in rows]
    return "".join([head, f"|{'|'.join(rules)}|\n", *body])


def write_latex(frame: pd.DataFrame, digits: int = 4, caption: str | None = None) -> str:
    """Write a table in LaTeX, numbers flush right, special characters escaped; it needs the package booktabs.

    Args:
        frame: One row per line.
        digits: Of numbers that are not whole, after the point.
        caption: Plain text, for a table that floats; None for the bare rows.
    """
    columns = "".join("r" if is_number else "l" for is_number in _are_numbers(frame))
    text = None if caption is None else caption.translate(LATEX)
    return _as_text(frame, digits).to_latex(index=False, escape=True, column_format=columns, caption=text)


def write_csv(frame: pd.DataFrame) -> str:
    """Write every digit as CSV; what is missing is empty."""
    return frame.to_csv(index=False, lineterminator="\n")


def write_json(frame: pd.DataFrame) -> str:
    """Write every digit as a JSON list of rows; what is missing or not finite is null."""
    finite = frame.replace([np.inf, -np.inf], np.nan)
    rows = finite.astype(object).where(finite.notna(), None).to_dict("records")
    return json.dumps(rows, indent=2, allow_nan=False) + "\n"


WRITERS: dict[str, Callable[[pd.DataFrame], str]] = {
    "markdown": write_markdown,
    "latex": write_latex,
    "csv": write_csv,
    "json": write_json,
}


def _are_numbers(frame: pd.DataFrame) -> list[bool]:
    from pandas.api.types import is_numeric_dtype

    return [is_numeric_dtype(dtype) for dtype in frame.dtypes]


def _as_text(frame: pd.DataFrame, digits: int) -> pd.DataFrame:
    write = partial(_write_cell, digits=digits)
    return frame.map(write).rename(columns=write)


def _write_cell(value: Any, digits: int) -> str:
    """Write a number with so many digits, a dash for what is missing, and text on one line."""
    if value is None or value != value:  # NaN is what differs from itself
        return MISSING
    return f"{value:.{digits}f}" if isinstance(value, float) else " ".join(str(value).split())


def _escape_markdown(text: str) -> str:
    return MARKUP.sub(r"\\\g<0>", text)
