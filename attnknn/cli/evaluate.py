"""`evaluate`: every vote on every test query, under label noise."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnknn.cli.options import AsJson, CheckpointName, Neighbors, NoiseKindName, read_k, read_noises, refuse
from attnknn.cli.show import print_json, print_table, write_noise, write_number, write_share
from attnknn.cli.terminal import root_of

if TYPE_CHECKING:
    import pandas as pd

SHOWN = {"accuracy": 3, "macro_f1": 3, "nll": 3, "brier": 3, "ece": 3, "augrc": 4, "effective_neighbors": 3}
"""Measures in the tables for a terminal, and with how many digits."""
FOR_READERS, FOR_PROGRAMS = ("markdown", "latex"), ("csv", "json")


def evaluate_checkpoint(
    context: typer.Context,
    checkpoint: CheckpointName,
    k: Neighbors = None,
    noise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RATE", help="Share of the bank's labels replaced; give it again for more rates.", show_default="0"
        ),
    ] = None,
    noise_kind: NoiseKindName = "symmetric",
    seed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N", help="Names the draw of label noise; give it again for more draws.", show_default="0"
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="markdown or latex: all measures, means over draws; csv or json: every draw, every digit.",
            show_default="tables for a terminal",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure every vote of CHECKPOINT on all its test queries; queries keep their clean labels."""
    from attnknn.classifier import load

    noises, k_asked = read_noises(noise_kind, noise or ["0"], seed or ["0"]), read_k(k)
    check_format(form, as_json)
    classifier = load(checkpoint, root_of(context))

    from attnknn.evaluation.protocol import evaluate

    frame = evaluate(classifier, k_asked, noises)
    sizes = {"n_queries": len(classifier.queries), "n_entries": len(classifier.entries)}
    if as_json:
        print_json({"checkpoint": checkpoint} | sizes | {"results": frame.to_dict("records")})
    elif form:
        write_frame(frame, form)
    else:
        show_levels(checkpoint, frame)


def check_format(form: str | None, as_json: bool) -> None:
    """Refuse a format that is unknown, or asked for beside --json.

    Raises:
        SettingError: Either of them.
    """
    if form is not None and form not in (*FOR_READERS, *FOR_PROGRAMS):
        known = ", ".join((*FOR_READERS, *FOR_PROGRAMS))
        raise refuse("--format", form, f"one of {known}", "Without it, tables are made for a terminal.")
    if form is not None and as_json:
        raise refuse("--format", form, "absent where --json is given", "Give one of the two.")


def write_frame(frame: pd.DataFrame, form: str) -> None:
    """Print the rows as text of that format on stdout, and nothing else."""
    from attnknn.evaluation.tables import WRITERS, for_readers

    sys.stdout.write(WRITERS[form](for_readers(frame) if form in FOR_READERS else frame))


def show_levels(checkpoint: str, frame: pd.DataFrame) -> None:
    """Print one table per noise rate, each number a mean over the draws."""
    from attnknn.evaluation.tables import MEASURES, average_draws
    from attnknn.votes import TITLES

    titles = [MEASURES[name].replace(" ", "\n") for name in SHOWN]
    for _, part in average_draws(frame).groupby("noise_rate", sort=False):
        first: Any = part.iloc[0]
        rows = [
            [TITLES[vote], *map(write_number, numbers, SHOWN.values())]
            for vote, numbers in zip(part["vote"], part[[*SHOWN]].to_numpy(), strict=True)
        ]
        noise = write_noise(first["noise_rate"], first["noise_kind"])
        draws = "1 draw" if first["draws"] == 1 else f"mean of {first['draws']} draws"
        caption = f"All neighbors carry one label for {write_share(first['unanimity'])} of the queries."
        print_table(f"{checkpoint}: {noise}, k = {first['k']}, {draws}", ["vote", *titles], rows, caption=caption)
