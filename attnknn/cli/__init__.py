"""The terminal: the same verbs as the library, `python -m attnknn …`.

    datasets · checkpoints          what there is
    train DATASET                   dataset → checkpoint
    evaluate CHECKPOINT             every vote on every test query, under label noise
    predict CHECKPOINT --query ID   one decision, with its neighbors, heads and votes
    download DATASET · prepare CHECKPOINT                what does not travel with the product
    jobs list|show|cancel|pause|resume · worker          long work in the background

With `--json` a command prints exactly one JSON document on stdout; progress goes to stderr. A visitor's
situation is one sentence on stderr and exit code 2 (`terminal.py`, the one place that catches).
Commands import what they need when they run, so `--help` is there before torch, pandas or NumPy.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from attnknn.cli.bring import download_dataset, prepare_bank
from attnknn.cli.catalogue import list_checkpoints, list_datasets
from attnknn.cli.evaluate import evaluate_checkpoint
from attnknn.cli.jobs import jobs, run_worker
from attnknn.cli.predict import predict_item
from attnknn.cli.terminal import PROGRAM, Terminal
from attnknn.cli.train import train_checkpoint

app = typer.Typer(
    name="attnknn",
    cls=Terminal,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"Start with: {PROGRAM} predict digits --query digits/test/0",
)
app.command("datasets")(list_datasets)
app.command("checkpoints")(list_checkpoints)
app.command("train")(train_checkpoint)
app.command("evaluate")(evaluate_checkpoint)
app.command("predict")(predict_item)
app.command("download")(download_dataset)
app.command("prepare")(prepare_bank)
app.command("worker")(run_worker)
app.add_typer(jobs, name="jobs")


@app.callback()
def _terminal(
    context: typer.Context,
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="ATTNKNN_CHECKPOINTS",
            show_default="checkpoints/ beside the package",
            help="Where checkpoints are read and written.",
        ),
    ] = None,
) -> None:
    """See how a classifier that looks things up decides: attention over nearest neighbors."""
    context.obj = checkpoints


def main() -> None:
    """Run the command that the arguments of this process name, and end the process with its exit code."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a title must not fail where a pipe only takes Latin letters
    app()
