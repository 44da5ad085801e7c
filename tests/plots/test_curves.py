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


ROUNDS = {"epoch": [1.0, 2.0, 3.0, 4.0, 5.0], "loss": [2.0, 1.5, 1.0, 2.2, 0.9], "held_out_accuracy": [0.1] * 5}
"""Two of three rounds of three epochs each; the second has just begun."""


@CURVES
@pytest.mark.parametrize("n", range(6))
def test_rounds_follow_each_other_and_each_has_a_line_of_its_own(curve: Curve, n: int):
    table = {name: column[:n] for name, column in ROUNDS.items()}
    lines = training_curve(table, curve, 9, 3).data
    assert [list(line.x) for line in lines] == [table["epoch"][:3], table["epoch"][3:], []]
    assert [value for line in lines for value in line.y] == table[curve.column]
    assert all("markers" in line.mode for line in lines if len(line.x) == 1), "a single point can be seen"


@CURVES
def test_a_mark_stands_where_a_round_begins_from_the_start(curve: Curve):
    empty, begun = (
        training_curve({name: column[:n] for name, column in ROUNDS.items()}, curve, 9, 3).layout for n in (0, 5)
    )
    assert empty.shapes == begun.shapes
    assert empty.annotations == begun.annotations
    assert [mark.x0 for mark in begun.shapes] == [mark.x1 for mark in begun.shapes] == [3, 6]
    assert [(one.x, one.text) for one in begun.annotations] == [
        (0, "round 1 of 3"),
        (3, "round 2 of 3"),
        (6, "round 3 of 3"),
    ]
    assert tuple(begun.xaxis.range) == (0, 9)


def test_a_run_of_one_round_has_no_marks():
    layout = training_curve(TABLE, LOSS, 3).layout
    assert (layout.shapes, layout.annotations) == ((), ())


def test_a_sentence_tells_rounds_apart():
    told = describe(ROUNDS, LOSS, 9, 3)
    assert told.endswith(": 2.000 after epoch 1, 1.000 after epoch 3; 2.200 after epoch 4, 0.900 after epoch 5.")


def test_plots_need_neither_streamlit_nor_torch():
    code = (
        "import sys; from attnknn.plots.curves import LOSS, training_curve\n"
        "training_curve({'epoch': [1], 'loss': [1.0]}, LOSS, 3)\n"
        "print([name for name in ('streamlit', 'torch', 'sklearn', 'faiss') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
