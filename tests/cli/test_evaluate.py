"""Every vote on every test query, as the protocol measures it."""

from __future__ import annotations

import json
import math

import pytest

from attnknn.classifier import load
from attnknn.config import LabelNoise
from attnknn.evaluation.protocol import evaluate
from attnknn.evaluation.tables import MEASURES, for_readers, write_csv, write_json, write_latex, write_markdown
from attnknn.votes import COMPARED, TITLES

from .conftest import run_process


def test_json_is_what_the_protocol_measures_with_null_for_nan(run_json, root):
    document = run_json("evaluate", "iris", "--k", "6", "--noise", "0", "--noise", "0.4", "--seed", "0", "--seed", "1")
    assert set(document) == {"checkpoint", "n_queries", "n_entries", "results"}
    assert (document["checkpoint"], document["n_queries"], document["n_entries"]) == ("iris", 45, 84)
    noises = [LabelNoise("symmetric", rate, seed) for rate in (0.0, 0.4) for seed in (0, 1)]
    rows = evaluate(load("iris", root), 6, noises).to_dict("records")
    assert len(document["results"]) == len(rows) == 4 * len(COMPARED)
    for found, row in zip(document["results"], rows, strict=True):
        assert set(found) == {"vote", "k", "noise_kind", "noise_rate", "seed", *MEASURES}
        assert found == {
            key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()
        }
    assert {row["vote"] for row in document["results"] if row["effective_neighbors"] is None} == {
        "prototype",
        "baseline",
    }


def test_without_options_k_is_that_of_the_fit_and_no_label_is_flipped(run_json):
    rows = run_json("evaluate", "iris")["results"]
    assert {(row["k"], row["noise_kind"], row["noise_rate"], row["seed"]) for row in rows} == {(8, "symmetric", 0.0, 0)}


@pytest.mark.parametrize("kind", ["pair", "matrix"])
def test_other_kinds_of_noise_are_measured(run_json, kind):
    rows = run_json("evaluate", "iris", "--noise", "1", "--noise-kind", kind)["results"]
    assert {row["noise_kind"] for row in rows} == {kind}
    by_vote = {row["vote"]: row for row in rows}
    assert by_vote["uniform"]["accuracy"] < 0.2 < by_vote["baseline"]["accuracy"]


def test_stdout_of_a_process_is_one_document(root):
    done = run_process("evaluate", "iris", "--noise", "0.2", "--json", root=root)
    assert json.loads(done.stdout)["checkpoint"] == "iris"
    assert done.stderr == ""


def test_a_table_per_noise_level_with_means_over_draws(run, run_json):
    asked = ["--noise", "0", "--noise", "0.4", "--seed", "1", "--seed", "2"]
    shown = run("evaluate", "iris", *asked).stdout
    assert "iris: no label noise, k = 8, mean of 2 draws" in shown
    assert "iris: 40 % symmetric label noise, k = 8, mean of 2 draws" in shown
    assert shown.count(TITLES["attention_averages"]) == 2
    rows = run_json("evaluate", "iris", *asked)["results"]
    found = [row["nll"] for row in rows if row["vote"] == "attention" and row["noise_rate"] == 0.4]
    line = [line for line in shown.splitlines() if line.startswith("attention ")][2]
    assert f"{sum(found) / 2:.3f}" in line.split()


@pytest.mark.parametrize(
    ("form", "write"),
    [
        ("markdown", lambda frame: write_markdown(for_readers(frame))),
        ("latex", lambda frame: write_latex(for_readers(frame))),
        ("csv", write_csv),
        ("json", write_json),
    ],
)
def test_a_format_is_the_text_of_the_measured_rows_and_nothing_else(run, root, form, write):
    noises = [LabelNoise("symmetric", rate, seed) for rate in (0.0, 0.4) for seed in (1, 2)]
    asked = ["--noise", "0", "--noise", "0.4", "--seed", "1", "--seed", "2"]
    assert run("evaluate", "iris", *asked, "--format", form).stdout == write(evaluate(load("iris", root), None, noises))


def test_a_table_for_readers_can_be_printed_where_only_latin_letters_can(root):
    done = run_process("evaluate", "iris", "--format", "markdown", root=root, PYTHONIOENCODING="ascii")
    assert done.stdout.startswith("| k | noise | vote |")


def test_two_formats_at_once_are_refused(run):
    result = run("evaluate", "iris", "--json", "--format", "csv", code=2)
    assert (result.stdout, result.stderr) == (
        "",
        "--format must be absent where --json is given. It was csv. Give one of the two.\n",
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["irs"], 'There is no checkpoint "irs". Did you mean "iris"?'),
        (["../iris"], 'There is no checkpoint "../iris".'),
        (["iris", "--k", "banana"], "--k must be a whole number of at least 1. It was banana."),
        (["iris", "--k", "0"], "It was 0."),
        (["iris", "--k", "85"], "It was 85."),
        (["iris", "--noise", "1.01"], "--noise must be a share between 0 and 1. It was 1.01."),
        (["iris", "--noise", "0.1", "--noise", "-0.1"], "It was -0.1."),
        (["iris", "--noise", "nan"], "It was nan."),
        (["iris", "--noise-kind", "gaussian"], "--noise-kind must be one of symmetric, pair, matrix. It was gaussian."),
        (["iris", "--format", "html"], "--format must be one of markdown, latex, csv, json. It was html."),
        (["iris", "--seed", "first"], "--seed must be a whole number between 0 and 4294967295. It was first."),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(run, arguments, sentence):
    result = run("evaluate", *arguments, "--json", code=2)
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
