"""Views, k-ensembles and adaptive k of every vote, and items from elsewhere: python -m benchmarks.variants digits.

Protocol B: the bank's labels are corrupted after clean training. Each vote of each variant has its own calibrator of
the same kind, fitted on held-out queries under the noise draws that the votes were fitted under. Differences are to
the plain vote of the same name, paired over queries and noise seeds, with 95 % bootstrap intervals that are not
adjusted for their number.

Items from elsewhere are told from test items without noise. The rival is the distance to the 50th neighbor (Sun et
al. 2022); differences are paired over items, with 95 % intervals (DeLong et al. 1988). Sets that are not on this
machine are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from attnknn.bundle import Queries
from attnknn.checkpoints import root_from_environment
from attnknn.classifier import AttnKNN, load
from attnknn.config import LabelNoise
from attnknn.data import describe_dataset, is_here, load_dataset
from attnknn.evaluation.gains import compare_variants, fit_variant
from attnknn.evaluation.outside import tell_apart
from attnknn.evaluation.tables import write_markdown
from attnknn.evaluation.variants import list_variants
from attnknn.evaluation.views import ask_views
from attnknn.training.attention import noise_draws
from attnknn.training.parts import part
from attnknn.training.run import held_out_queries, working_threads
from attnknn.votes import TITLES
from benchmarks.gaps import write_gap

SEEDS = range(5)
LEVELS = [
    [LabelNoise()],
    [LabelNoise("symmetric", 0.4, seed) for seed in SEEDS],
    [LabelNoise("pair", 0.4, seed) for seed in SEEDS],
]
ELSEWHERE = ("digits", "fashion_mnist", "cifar10")
MOST = 2000  # images of each set from elsewhere


def votes_table(classifier: AttnKNN, most: int | None) -> pd.DataFrame:
    """Every vote of every variant, at every level of noise, on so many queries of each part."""
    config = classifier.config
    images = part(load_dataset(config.dataset), config).inputs("held_out")
    held_out = ask_some(classifier, images, held_out_queries(classifier), most)
    test = ask_some(classifier, classifier.bundle.arrays["query_inputs"], classifier.queries, most)
    noises = noise_draws(config.attention, len(classifier.class_names), config.seed)
    variants = list_variants(config.attention.k, held_out[0].pool.k, len(test))
    fitted = {name: fit_variant(classifier, some, held_out, noises) for name, some in variants.items()}
    return for_readers(compare_variants(classifier, fitted, test, LEVELS))


def ask_some(classifier: AttnKNN, images: NDArray[Any], queries: Queries, most: int | None) -> list[Queries]:
    rows = spread(len(queries), most or len(queries))
    return ask_views(classifier, images[rows], queries.take(rows))


def spread(n: int, most: int) -> NDArray[np.intp]:
    """Rows from the first to the last, evenly: some sets lie there class by class."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


def for_readers(found: pd.DataFrame) -> pd.DataFrame:
    """Write accuracy and its differences in percent and points, NLL in nats, AUGRC times 1000."""
    noises = zip(found["noise_rate"], found["noise_kind"], strict=True)
    shown = {
        "noise": [f"{kind} {rate:.0%}" if rate else "none" for rate, kind in noises],
        "vote": found["vote"].map(TITLES),
        "variant": found["variant"],
        "k": found["k"].map("{:.1f}".format),
        "effective": found["effective_neighbors"].map("{:.1f}".format).replace("nan", "–"),
        "accuracy, %": (100 * found["accuracy"]).map("{:.2f}".format),
        "minus plain, points": write_gaps(100 * found[["accuracy_gap", "accuracy_low", "accuracy_high"]], 2),
        "NLL": found["nll"].map("{:.4f}".format),
        "minus plain": write_gaps(found[["nll_gap", "nll_low", "nll_high"]], 4),
        "debiased ECE": found["ece_debiased"].map("{:.4f}".format),
        "AUGRC × 1000": (1000 * found["augrc"]).map("{:.2f}".format),
    }
    is_plain = found["variant"] == "plain"
    table = pd.DataFrame(shown)
    table.loc[is_plain, ["minus plain, points", "minus plain"]] = None
    return table


def write_gaps(gaps: pd.DataFrame, digits: int) -> list[str]:
    return [write_gap(gap, (low, high), digits) for gap, low, high in gaps.to_numpy()]


def outside_table(classifier: AttnKNN) -> pd.DataFrame:
    """One line per score, one column per set from elsewhere."""
    outside = {name: classifier.predict(images) for name, images in from_elsewhere(classifier)}
    found = tell_apart(classifier.predict_items(), outside)
    gaps = write_gaps(100 * found[["gap", "low", "high"]], 1)
    is_rival = found["score"] == found["score"][0]
    cells = [
        f"{100 * area:.1f}" + ("" if rival else f" ({gap})")
        for area, rival, gap in zip(found["auroc"], is_rival, gaps, strict=True)
    ]
    table = found.assign(cell=cells).pivot_table("cell", "score", "outside", aggfunc="first", sort=False)
    return table.reset_index()


def from_elsewhere(classifier: AttnKNN) -> Iterator[tuple[str, NDArray[Any]]]:
    """Show images of other sets, test images with their pixels in another order, and noise."""
    like, rng = classifier.bundle.arrays["query_inputs"], np.random.default_rng(0)
    top = int(like.max())
    for name in ELSEWHERE:
        if name != classifier.config.dataset and is_here(name):
            dataset = load_dataset(name)
            test = dataset.where("test")
            yield dataset.title, resemble(dataset.inputs[test[spread(len(test), MOST)]], like)
    some, (height, width) = like[spread(len(like), MOST)], like.shape[1:3]
    pixels = some.reshape(len(some), height * width, *like.shape[3:])
    yield "pixels in another order", pixels[:, rng.permutation(height * width)].reshape(some.shape)
    yield "uniform noise", rng.integers(0, top, (MOST, *like.shape[1:]), endpoint=True).astype(like.dtype)


def resemble(images: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    """Bring images to the size, the colors and the range of others."""
    (height, width), mode, top = like.shape[1:3], "RGB" if like.ndim == 4 else "L", float(like.max())
    bytes_ = np.asarray(images * (255 / float(images.max()))).round().astype(np.uint8)
    pictures = [Image.fromarray(one).convert(mode).resize((width, height), Image.Resampling.BOX) for one in bytes_]
    return (np.stack([np.asarray(picture) for picture in pictures]) * (top / 255)).round().astype(like.dtype)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", nargs="?", default="digits")
    parser.add_argument("--queries", type=int, help="at most so many of test and of the held-out part; by default all")
    asked = parser.parse_args()
    classifier = load(asked.checkpoint, root_from_environment())
    n_test = len(classifier.queries)
    sizes = f"{min(n_test, asked.queries or n_test):,} test queries, {len(classifier.entries):,} entries"
    print(f"`{classifier.name}`: {sizes}, k = {classifier.config.attention.k}, noise seeds {[*SEEDS]}\n")
    with working_threads(classifier.config):
        if describe_dataset(classifier.config.dataset).kind == "image":
            print("AUROC, % (minus the rival on the first line, points)\n")
            print(write_markdown(outside_table(classifier)), flush=True)
        print(write_markdown(votes_table(classifier, asked.queries)))


if __name__ == "__main__":
    main()
