"""`predict`: one decision, with its neighbors, heads and votes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from attnknn.cli.options import (
    AsJson,
    CheckpointName,
    Neighbors,
    NoiseKindName,
    read_k,
    read_noises,
    read_temperature,
)
from attnknn.cli.show import print_json, print_table, write_noise, write_number, write_share
from attnknn.cli.terminal import root_of


def predict_item(
    context: typer.Context,
    checkpoint: CheckpointName,
    query: Annotated[
        str, typer.Option(metavar="ID", help="A test item or an entry, as in digits/test/0.", show_default=False)
    ],
    k: Neighbors = None,
    noise: Annotated[str, typer.Option(metavar="RATE", help="Share of the bank's labels replaced.")] = "0",
    noise_kind: NoiseKindName = "symmetric",
    seed: Annotated[str, typer.Option(metavar="N", help="Names the draw of label noise.")] = "0",
    temperature: Annotated[str, typer.Option(metavar="T", help="Divides the scores; 1 is as fitted.")] = "1",
    as_json: AsJson = False,
) -> None:
    """Classify one item with CHECKPOINT, and show every neighbor, head and vote behind the answer."""
    from attnknn.classifier import load

    (draw,), k_asked, softness = read_noises(noise_kind, [noise], [seed]), read_k(k), read_temperature(temperature)
    classifier = load(checkpoint, root_of(context))
    answer = classifier.predict_items([query], k_asked, draw, softness).to_dict()
    if as_json:
        print_json(answer)
    else:
        show_neighbors(answer)
        show_votes(answer)


def show_neighbors(answer: dict[str, Any]) -> None:
    """Print every neighbor with each head's weight on it, and the heads' sinks."""
    rows = [
        [
            neighbor["id"],
            neighbor["observed_label"],
            neighbor["clean_label"] if neighbor["is_flipped"] else "",
            write_number(neighbor["distance"]),
            *(write_number(weight) for weight in neighbor["weights"]),
            write_number(neighbor["share"]),
        ]
        for neighbor in answer["neighbors"]
    ]
    sink = answer["sink"]
    none = ["none of these", "", "", "", *map(write_number, sink), write_number(sum(sink) / len(sink))]
    noise = write_noise(answer["noise_rate"], answer["noise_kind"])
    title = f"{answer['query']} is {answer['label']}: its {answer['k']} nearest entries, {noise}"
    columns = ["entry", "label", "flipped\nfrom", "distance", *answer["heads"], "share"]
    print_table(title, columns, [*rows, none], n_words=3, caption="Weights of each head sum to one with its sink.")


def show_votes(answer: dict[str, Any]) -> None:
    """Print what every vote says, the two most probable classes of each, and how many neighbors it heard."""
    from attnknn.votes import TITLES

    rows = []
    for name, vote in answer["votes"].items():
        ranked = sorted(vote["calibrated"].items(), key=lambda pair: -pair[1])[:2]
        likely = [f"{label} {write_share(probability)}" for label, probability in ranked]
        is_right = "yes" if vote["predicted"] == answer["label"] else "no"
        rows.append([TITLES[name], vote["predicted"], is_right, *likely, write_number(vote["effective_neighbors"], 1)])
    columns = ["vote", "predicted", "right", "calibrated", "runner-up", "effective\nneighbors"]
    print_table("Votes", columns, rows, n_words=5)
