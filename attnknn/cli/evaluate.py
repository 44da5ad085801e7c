"""`evaluate`: every vote on every test query, under label noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnknn.cli.options import AsJson, CheckpointName, Neighbors, NoiseKindName, read_k, read_noises
from attnknn.cli.show import print_json, print_table, write_noise, write_number, write_share
from attnknn.cli.terminal import root_of

if TYPE_CHECKING:
    import pandas as pd

MEASURES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "nll": "NLL (nats)",
    "brier": "Brier",
    "ece": "ECE",
    "effective_neighbors": "effective\nneighbors",
}


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
    as_json: AsJson = False,
) -> None:
    """Measure every vote of CHECKPOINT on all its test queries; queries keep their clean labels."""
    from attnknn.classifier import load

    noises, k_asked = read_noises(noise_kind, noise or ["0"], seed or ["0"]), read_k(k)
    classifier = load(checkpoint, root_of(context))

    from attnknn.evaluation.protocol import evaluate

    frame = evaluate(classifier, k_asked, noises)
    sizes = {"n_queries": len(classifier.queries), "n_entries": len(classifier.entries)}
    if as_json:
        print_json({"checkpoint": checkpoint} | sizes | {"results": frame.to_dict("records")})
    else:
        for _, part in frame.groupby("noise_rate", sort=False):
            show_level(checkpoint, part)


def show_level(checkpoint: str, frame: pd.DataFrame) -> None:
    """Print the votes at one noise rate, each number a mean over the draws."""
    from attnknn.votes import TITLES

    first: Any = frame.iloc[0]
    n_draws = frame["seed"].nunique()
    noise = write_noise(first["noise_rate"], first["noise_kind"])
    means = frame.groupby("vote", sort=False)[list(MEASURES)].mean()
    rows = [
        [TITLES[str(vote)], *(write_number(number) for number in numbers)]
        for vote, numbers in zip(means.index, means.to_numpy(), strict=True)
    ]
    caption = f"All neighbors carry one label for {write_share(frame['unanimity'].mean())} of the queries."
    draws = "1 draw" if n_draws == 1 else f"mean of {n_draws} draws"
    print_table(
        f"{checkpoint}: {noise}, k = {first['k']}, {draws}", ["vote", *MEASURES.values()], rows, caption=caption
    )
