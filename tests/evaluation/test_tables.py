"""Tables as text: read back by a reader of each format."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from attnknn.config import LabelNoise
from attnknn.evaluation.protocol import evaluate
from attnknn.evaluation.tables import (
    MEASURES,
    average_draws,
    for_readers,
    write_csv,
    write_json,
    write_latex,
    write_markdown,
)
from attnknn.votes import COMPARED, TITLES
from tests.strategies import lattice_classifier

NOISES = [LabelNoise("symmetric", 0.0, 0), LabelNoise("pair", 0.4, 0), LabelNoise("pair", 0.4, 1)]
LATEX = {
    r"\space ": " ",
    r"\textbackslash ": "\\",
    r"\textasciitilde ": "~",
    r"\textasciicircum ": "^",
    **{f"\\{mark}": mark for mark in "&%$#_{}"},
}

texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\\`*_[]<>|~&!#^$%{}-\n \t"), max_size=12
)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return evaluate(lattice_classifier(), 5, NOISES)


def on_one_line(text: str) -> str:
    return " ".join(text.split())


def read_markdown(text: str) -> list[list[str]]:
    """What a reader of Markdown sees in each cell; fails on any markup inside."""
    cells, rows = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text), []
    for token in cells:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            assert {child.type for child in token.children} <= {"text", "text_special"}, token.content
            rows[-1].append("".join(child.content for child in token.children))
    return rows


def read_latex(text: str) -> list[list[str]]:
    """What a reader of LaTeX sees in each cell; fails on any special character that is not escaped."""
    lines = [line for line in text.splitlines() if line.endswith(r" \\")]
    marks = re.compile("|".join(map(re.escape, LATEX)))
    rows = [re.split(r"(?<!\\)&", line.removesuffix(r" \\")) for line in lines]
    assert not any(re.search(r"[\\&%$#_{}~^]", marks.sub("", cell)) for row in rows for cell in row)
    return [[on_one_line(marks.sub(lambda found: LATEX[found.group()], cell)) for cell in row] for row in rows]


# ---- What readers get


def test_draws_are_averaged_and_kept_in_order(frame: pd.DataFrame):
    means = average_draws(frame)
    assert means["vote"].tolist() == [*COMPARED] * 2
    assert means["draws"].tolist() == [1] * len(COMPARED) + [2] * len(COMPARED)
    for name in MEASURES:
        numbers = frame[name].to_numpy().reshape(3, -1)
        expected = np.concatenate([numbers[0], (numbers[1] + numbers[2]) / 2])
        np.testing.assert_allclose(means[name].to_numpy(), expected, atol=1e-12)


def test_every_measure_has_a_name_for_readers(frame: pd.DataFrame):
    facts = ["vote", "k", "noise_kind", "noise_rate", "seed"]
    assert [*frame.columns] == [*facts, *MEASURES]
    shown = for_readers(frame)
    assert [*shown.columns] == ["k", "noise", "vote", "draws", *MEASURES.values()]
    assert shown["vote"].tolist() == [TITLES[vote] for vote in COMPARED] * 2
    assert shown["noise"].tolist() == ["none"] * len(COMPARED) + ["40 % pair"] * len(COMPARED)


@pytest.mark.parametrize(("write", "read"), [(write_markdown, read_markdown), (write_latex, read_latex)])
def test_a_table_for_readers_can_be_read_back(frame: pd.DataFrame, write, read):
    shown = for_readers(frame)
    head, *rows = read(write(shown, digits=3))
    assert head == [*shown.columns]
    assert len(rows) == len(shown)
    for row, (_, expected) in zip(rows, shown.iterrows(), strict=True):
        for cell, value in zip(row, expected, strict=True):
            missing = isinstance(value, float) and np.isnan(value)
            assert cell == ("–" if missing else f"{value:.3f}" if isinstance(value, float) else str(value))


def test_numbers_are_flush_right_and_words_are_not():
    table = pd.DataFrame({"vote": ["a"], "k": [5], "nll": [0.5]})
    assert write_markdown(table).splitlines()[1] == "|---|---:|---:|"
    assert write_latex(table).splitlines()[0] == r"\begin{tabular}{lrr}"
    assert write_latex(table).splitlines()[-1] == r"\end{tabular}"


# ---- Escaping


@settings(deadline=None)
@given(texts, texts)
@example("a&lt;", "\\!")
@example("_1_", "__0__")
def test_any_text_survives_markdown(title, text):
    table = pd.DataFrame({f"x{title}": [text, "y"], "n": [1, 2]})
    assert read_markdown(write_markdown(table)) == [
        [on_one_line(f"x{title}"), "n"],
        [on_one_line(text), "1"],
        ["y", "2"],
    ]


@settings(deadline=None, max_examples=50)
@given(texts, texts)
def test_any_text_survives_latex(title, text):
    table = pd.DataFrame({f"x{title}": [text, "y"], "n": [1, 2]})
    assert read_latex(write_latex(table)) == [
        [on_one_line(f"x{title}"), "n"],
        [on_one_line(text), "1"],
        ["y", "2"],
    ]


# ---- What programs get


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_and_json_keep_every_digit_and_say_what_is_missing(frame: pd.DataFrame):
    told, written = json.loads(write_json(frame)), read_csv(write_csv(frame))
    assert len(told) == len(written) == len(frame)
    for said, cells, row in zip(told, written, frame.to_dict("records"), strict=True):
        assert [*said] == [*cells] == [*row]
        for name, value in row.items():
            if isinstance(value, float) and np.isnan(value):
                assert (said[name], cells[name]) == (None, "")
            else:
                assert said[name] == value == type(value)(cells[name])
    assert {row["vote"] for row in told if row["effective_neighbors"] is None} == {"prototype", "baseline"}


def test_json_has_no_infinity():
    table = pd.DataFrame({"a": [np.inf, 1.5, -np.inf], "b": [1, 2, 3]})
    assert [row["a"] for row in json.loads(write_json(table))] == [None, 1.5, None]


@settings(deadline=None, max_examples=50)
@given(texts, texts)
def test_any_text_survives_csv_and_json(title, text):
    table = pd.DataFrame({f"x{title}": [text], "n": [1]})
    assert read_csv(write_csv(table)) == [{f"x{title}": text, "n": "1"}]
    assert json.loads(write_json(table)) == [{f"x{title}": text, "n": 1}]
