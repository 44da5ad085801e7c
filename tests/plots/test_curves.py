"""Curves of a run: what is in the table is in the picture, and only the curve moves."""

from __future__ import annotations

import subprocess
import sys

import pytest

from attnknn.plots.curves import HELD_OUT, LOSS, Curve, describe, training_curve

TABLE = {"epoch": [1.0, 2.0, 3.0], "loss": [2.0, 2.5, 0.5], "held_out_accuracy": [0.2, 0.8, 0.9]}
CURVES = pytest.mark.parametrize("curve", [LOSS, HELD_OUT], ids=lambda curve: curve.column)


def first(n: int) -> dict[str, list[float]]:
    return {name: column[:n] for name, column in TABLE.items()}


@CURVES
def test_a_curve_is_its_column(curve: Curve):
    (line,) = training_curve(TABLE, curve, 40).data
    assert list(line.x) == TABLE["epoch"]
    assert list(line.y) == TABLE[curve.column]


@CURVES
def test_a_single_point_can_be_seen(curve: Curve):
    assert "markers" in training_curve(first(1), curve, 40).data[0].mode


@CURVES
def test_nothing_but_the_curve_moves_while_it_grows(curve: Curve):
    layouts = [training_curve(first(n), curve, 40).layout for n in (2, 3)]
    fixed = [layout.to_plotly_json() for layout in layouts]
    for layout in fixed:
        layout["yaxis"].pop("range")
    assert fixed[0] == fixed[1]
    assert tuple(layouts[0].xaxis.range) == (0, 40)


@CURVES
def test_every_value_lies_inside_the_axes(curve: Curve):
    figure = training_curve(TABLE, curve, 3)
    low, high = figure.layout.yaxis.range
    assert all(low <= value <= high for value in TABLE[curve.column])


@CURVES
def test_an_empty_table_is_an_empty_picture_and_a_sentence(curve: Curve):
    figure = training_curve(first(0), curve, 40)
    assert len(figure.data[0].y or ()) == 0
    assert figure.layout.yaxis.range[1] > 0
    assert describe(first(0), curve).endswith("no epoch has ended yet.")


def test_a_sentence_says_where_a_curve_begins_and_ends():
    assert describe(TABLE, HELD_OUT).endswith("20.0% after epoch 1, 90.0% after epoch 3.")
    assert describe(first(1), LOSS).endswith("2.000 after epoch 1.")


def test_plots_need_neither_streamlit_nor_torch():
    code = (
        "import sys; from attnknn.plots.curves import LOSS, training_curve\n"
        "training_curve({'epoch': [1], 'loss': [1.0]}, LOSS, 3)\n"
        "print([name for name in ('streamlit', 'torch', 'sklearn', 'faiss') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
