"""`predict`: one decision, with its neighbors, heads and votes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnknn.cli.options import (
    AsJson,
    CheckpointName,
    Neighbors,
    NoiseKindName,
    read_k,
    read_noises,
    read_temperature,
    refuse,
)
from attnknn.cli.show import print_json, print_table, write_noise, write_number, write_share
from attnknn.cli.terminal import root_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attnknn.bundle import Queries
    from attnknn.by_hand import ByHand
    from attnknn.classifier import AttnKNN

Flips = Annotated[
    list[str] | None,
    typer.Option("--flip", metavar="ID:CLASS", help="Give an entry another label, by number; may be repeated."),
]
Drops = Annotated[list[str] | None, typer.Option("--drop", metavar="ID", help="Leave an entry out; may be repeated.")]
Mutes = Annotated[list[str] | None, typer.Option("--mute", metavar="HEAD", help="Do not hear a head; may be repeated.")]


def predict_item(
    context: typer.Context,
    checkpoint: CheckpointName,
    query: Annotated[
        str | None, typer.Option(metavar="ID", help="A test item or an entry, as in digits/test/0.", show_default=False)
    ] = None,
    image: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A picture of your own instead.", show_default=False)
    ] = None,
    k: Neighbors = None,
    noise: Annotated[str, typer.Option(metavar="RATE", help="Share of the bank's labels replaced.")] = "0",
    noise_kind: NoiseKindName = "symmetric",
    seed: Annotated[str, typer.Option(metavar="N", help="Names the draw of label noise.")] = "0",
    temperature: Annotated[str, typer.Option(metavar="T", help="Divides the scores; 1 is as fitted.")] = "1",
    flip: Flips = None,
    drop: Drops = None,
    mute: Mutes = None,
    as_json: AsJson = False,
) -> None:
    """Classify one item with CHECKPOINT, and show every neighbor, head and vote behind the answer."""
    from attnknn.by_hand import decide_by_hand
    from attnknn.classifier import load

    if (query is None) == (image is None):
        given = "both" if query else "neither"
        raise refuse("--query", given, "given, or else --image", "Name one item, or one picture.")
    (draw,), k_asked, softness = read_noises(noise_kind, [noise], [seed]), read_k(k), read_temperature(temperature)
    classifier = load(checkpoint, root_of(context))
    by_hand = read_by_hand(classifier, flip or [], drop or [], mute or [])
    asked = ask_picture(classifier, image, k_asked) if image else classifier.ask([str(query)], k_asked)
    expect_neighbors(classifier, asked, by_hand)
    k_fitted = classifier.config.attention.k
    answer = decide_by_hand(classifier, asked, by_hand, k_asked or k_fitted, draw, softness).to_dict()
    if as_json:
        print_json(answer)
    else:
        show_neighbors(answer)
        show_votes(answer)


def read_by_hand(classifier: AttnKNN, flips: Sequence[str], drops: Sequence[str], mutes: Sequence[str]) -> ByHand:
    """Read what is changed by hand: of two labels for one entry, the last.

    Raises:
        SettingError: An entry, a class or a head does not exist, or no head is left.
    """
    from attnknn.by_hand import ByHand, read_flip

    is_entry, names, heads = classifier.bundle.is_entry, classifier.class_names, classifier.fitted.attention.heads
    example, changed = str(classifier.entries.ids[0]), []
    for text in flips:
        try:
            changed.append(read_flip(text, is_entry, len(names)))
        except ValueError as error:
            expected = f"the id of an entry and a class from 0 to {len(names) - 1}, as in {example}:0"
            fact = f"Class 0 is {names[0]}, class {len(names) - 1} is {names[-1]}."
            raise refuse("--flip", text, expected, fact) from error
    for text in drops:
        if not is_entry(text):
            raise refuse("--drop", text, f"the id of an entry, as in {example}", "Without it, no entry is left out.")
    for text in mutes:
        if text not in heads or set(mutes) == set(heads):
            said = text if text not in heads else "all of them"
            raise refuse("--mute", said, f"one of {', '.join(heads)}, not all", "Without it, every head is heard.")
    return ByHand(dict(changed), tuple(drops), tuple(mutes))


def expect_neighbors(classifier: AttnKNN, asked: Queries, by_hand: ByHand) -> None:
    """See to it that somebody is left who can vote.

    Raises:
        SettingError: All entries that were found are left out.
    """
    rows = asked.pool.entries[0]
    found = {str(entry) for entry in classifier.entries.ids[rows[rows >= 0]]}
    if found <= set(by_hand.dropped):
        expected = f"at most {len(found) - 1} of the {len(found)} nearest entries"
        raise refuse("--drop", "all of them", expected, "Leave out fewer, so that somebody can vote.")


def ask_picture(classifier: AttnKNN, path: Path, k: int | None) -> Queries:
    """Embed a picture, and find its neighbors.

    Raises:
        InputError: It is no picture, or the checkpoint knows none.
        MissingLibrary: torch is not installed.
    """
    values = read_image(path, classifier)
    keys, logits = classifier.embedder.embed(values)
    return classifier.ask_embedded(keys, logits, k)


def read_image(path: Path, classifier: AttnKNN) -> NDArray[Any]:
    """Read a picture, and make it look like those of the bank; shape (1, ...).

    Raises:
        InputError: It is no picture, or the checkpoint knows none.
    """
    from attnknn.data.uploads import LARGEST_FILE, fit_picture, read_picture
    from attnknn.errors import InputError

    if classifier.card["dataset"]["kind"] != "image":
        expected, received = "A picture needs a checkpoint of pictures.", f"{classifier.name} knows rows of numbers."
        raise InputError(expected, received, "Choose another checkpoint.")
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise refuse("--image", str(path), "a file that can be read", f"It could not ({error.strerror}).") from error
    return fit_picture(read_picture(content), classifier.bundle.arrays["entry_inputs"]).values[None]


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
    title = f"{answer['query']} is {answer['label'] or 'of unknown label'}: its {answer['k']} nearest entries, {noise}"
    columns = ["entry", "label", "flipped\nfrom", "distance", *answer["heads"], "share"]
    print_table(title, columns, [*rows, none], n_words=3, caption="Weights of each head sum to one with its sink.")


def show_votes(answer: dict[str, Any]) -> None:
    """Print what every vote says, the two most probable classes of each, and how many neighbors it heard."""
    from attnknn.votes import TITLES

    rows = []
    for name, vote in answer["votes"].items():
        ranked = sorted(vote["calibrated"].items(), key=lambda pair: -pair[1])[:2]
        likely = [f"{label} {write_share(probability)}" for label, probability in ranked]
        is_right = "" if answer["label"] is None else "yes" if vote["predicted"] == answer["label"] else "no"
        rows.append([TITLES[name], vote["predicted"], is_right, *likely, write_number(vote["effective_neighbors"], 1)])
    columns = ["vote", "predicted", "right", "calibrated", "runner-up", "effective\nneighbors"]
    print_table("Votes", columns, rows, n_words=5)
