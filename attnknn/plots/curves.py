"""One number over the epochs of a run. The axes are laid out for the whole run at once, so that nothing moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Table = Mapping[str, Sequence[float]]
"""Columns of equal length by name; `epoch` counts from 1."""

HEIGHT = 200


@dataclass(frozen=True)
class Curve:
    """How one column is drawn.

    Attributes:
        column: Name of the column.
        title: What a reader calls it, with its unit.
        color: Readable on a light and on a dark page.
        is_share: Whether it lies between 0 and 1, and is read in percent.
    """

    column: str
    title: str
    color: str
    is_share: bool = False


LOSS = Curve("loss", "Loss on the fit part (cross-entropy, nats)", "#0E8A8A")
HELD_OUT = Curve("held_out_accuracy", "Accuracy of the baseline on held-out items", "#7A5AD6", is_share=True)


def training_curve(table: Table, curve: Curve, n_epochs: int) -> Figure:
    """Draw one column over epochs.

    Args:
        table: Columns `epoch` and the curve's own; they may be empty.
        curve: What to draw.
        n_epochs: How many epochs the run will have; the width of the picture.

    Returns:
        A figure whose axes are those of the finished run: a curve grows in it, and nothing else moves.

    Example:
        >>> figure = training_curve({"epoch": [1, 2], "loss": [2.0, 1.0]}, LOSS, 40)
        >>> list(figure.data[0].y), figure.layout.yaxis.range
        ([2.0, 1.0], (0, 2.2))
    """
    from plotly.graph_objects import Figure, Scatter

    values = list(table[curve.column])
    line = Scatter(
        x=list(table["epoch"]),
        y=values,
        mode="lines+markers" if len(values) < 2 else "lines",
        line={"color": curve.color, "width": 2},
        hovertemplate="epoch %{x}: %{y:.1%}<extra></extra>"
        if curve.is_share
        else "epoch %{x}: %{y:.4f}<extra></extra>",
        cliponaxis=False,
    )
    figure = Figure(line)
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 48, "r": 12, "t": 30, "b": 42},
        title={"text": curve.title, "font": {"size": 13}, "x": 0, "xref": "container", "y": 0.98, "yanchor": "top"},
        showlegend=False,
        hovermode="x",
        dragmode=False,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    figure.update_xaxes(
        title="epoch", range=[0, max(n_epochs, 1)], fixedrange=True, automargin=False, title_standoff=10
    )
    figure.update_yaxes(range=_range(values, curve), fixedrange=True, automargin=False, nticks=5)
    if curve.is_share:
        figure.update_yaxes(tickformat=".0%")
    return figure


def describe(table: Table, curve: Curve) -> str:
    """Say in a sentence what a curve shows, for who cannot see it.

    Example:
        >>> describe({"epoch": [1, 2], "loss": [2.0, 1.0]}, LOSS)
        'Loss on the fit part (cross-entropy, nats): 2.000 after epoch 1, 1.000 after epoch 2.'
    """
    values = table[curve.column]
    if not len(values):
        return f"{curve.title}: no epoch has ended yet."

    def write(place: int) -> str:
        value = f"{values[place]:.1%}" if curve.is_share else f"{values[place]:.3f}"
        return f"{value} after epoch {table['epoch'][place]:.0f}"

    return f"{curve.title}: {', '.join(dict.fromkeys((write(0), write(-1))))}."


def _range(values: Sequence[float], curve: Curve) -> tuple[float, float]:
    """Percents fill their scale; other numbers start high, and their first value sets it."""
    if curve.is_share:
        return 0, 1
    return 0, 1.1 * max(values, default=1.0) or 1.0
