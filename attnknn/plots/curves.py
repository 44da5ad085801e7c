"""One number over the epochs of a run. The axes are laid out for the whole run at once, so that nothing moves.

A run that cleans its labels trains several embedders: its rounds follow each other, of equally many epochs, and each
has a line of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

Table = Mapping[str, Sequence[float]]
"""Columns of equal length by name; `epoch` counts from 1."""

HEIGHT = 200
MARK = "rgba(128, 128, 128, 0.8)"  # where a round begins; seen on a light and on a dark page


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
HELD_OUT_NOISY = replace(HELD_OUT, title="Baseline against noisy held-out labels")


def training_curve(table: Table, curve: Curve, n_epochs: int, n_rounds: int = 1) -> Figure:
    """Draw one column over epochs.

    Args:
        table: Columns `epoch` and the curve's own; they may be empty.
        curve: What to draw.
        n_epochs: How many epochs the run will have, over all rounds; the width of the picture.
        n_rounds: How many embedders are trained one after the other.

    Returns:
        A figure whose axes are those of the finished run: a curve grows in it, and nothing else moves. It has one
        line per round, and a mark where a round begins.

    Example:
        >>> figure = training_curve({"epoch": [1, 2], "loss": [2.0, 1.0]}, LOSS, 40)
        >>> list(figure.data[0].y), figure.layout.yaxis.range
        ([2.0, 1.0], (0, 2.2))
    """
    from plotly.graph_objects import Figure

    figure = Figure([_line(epochs, values, curve) for epochs, values in _by_round(table, curve, n_epochs, n_rounds)])
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
    figure.update_yaxes(range=_range(table[curve.column], curve), fixedrange=True, automargin=False, nticks=5)
    if curve.is_share:
        figure.update_yaxes(tickformat=".0%")
    if n_rounds > 1:
        _mark_rounds(figure, n_epochs, n_rounds)
    return figure


def describe(table: Table, curve: Curve, n_epochs: int = 0, n_rounds: int = 1) -> str:
    """Say in a sentence what a curve shows, round by round, for who cannot see it.

    Example:
        >>> describe({"epoch": [1, 2], "loss": [2.0, 1.0]}, LOSS)
        'Loss on the fit part (cross-entropy, nats): 2.000 after epoch 1, 1.000 after epoch 2.'
    """
    rounds = [one for one in _by_round(table, curve, n_epochs, n_rounds) if one[1]]
    if not rounds:
        return f"{curve.title}: no epoch has ended yet."

    def write(epoch: float, value: float) -> str:
        return f"{f'{value:.1%}' if curve.is_share else f'{value:.3f}'} after epoch {epoch:.0f}"

    ends = [dict.fromkeys((write(epochs[0], values[0]), write(epochs[-1], values[-1]))) for epochs, values in rounds]
    return f"{curve.title}: {'; '.join(', '.join(of_round) for of_round in ends)}."


def _by_round(table: Table, curve: Curve, n_epochs: int, n_rounds: int) -> list[tuple[list[float], list[float]]]:
    """Part epochs and values by the round that they belong to."""
    length = max(n_epochs // n_rounds, 1)
    rounds: list[tuple[list[float], list[float]]] = [([], []) for _ in range(n_rounds)]
    for epoch, value in zip(table["epoch"], table[curve.column], strict=True):
        epochs, values = rounds[min(int(epoch - 1) // length, n_rounds - 1)]
        epochs.append(epoch)
        values.append(value)
    return rounds


def _line(epochs: list[float], values: list[float], curve: Curve) -> Scatter:
    from plotly.graph_objects import Scatter

    return Scatter(
        x=epochs,
        y=values,
        mode="lines+markers" if len(values) < 2 else "lines",
        line={"color": curve.color, "width": 2},
        hovertemplate=f"epoch %{{x}}: %{{y:{'.1%' if curve.is_share else '.4f'}}}<extra></extra>",
        cliponaxis=False,
    )


def _mark_rounds(figure: Figure, n_epochs: int, n_rounds: int) -> None:
    """Name the rounds above the lines, and draw where each but the first begins."""
    length = n_epochs / n_rounds
    figure.update_layout(margin_t=46)
    for number in range(n_rounds):
        figure.add_annotation(
            text=f"round {number + 1} of {n_rounds}",
            x=number * length,
            y=1,
            yref="paper",
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            font={"size": 11},
        )
        if number:
            figure.add_vline(number * length, line={"color": MARK, "width": 1, "dash": "dot"})


def _range(values: Sequence[float], curve: Curve) -> tuple[float, float]:
    """Percents fill their scale; other numbers start high, and their first value sets it."""
    if curve.is_share:
        return 0, 1
    return 0, 1.1 * max(values, default=1.0) or 1.0
