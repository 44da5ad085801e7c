"""Refusals: what is wrong in a checkpoint is named in a sentence, before a number of it is believed.

Every folder here has hashes that agree: it is what its author wrote, and it makes no sense.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from attnknn.bundle import open_bundle
from attnknn.checkpoints import open_checkpoint
from attnknn.checks import refuse
from attnknn.classifier import load
from attnknn.errors import CheckpointError, DamagedCheckpoint
from attnknn.votes import COMPARED
from tests.damage import change_arrays, change_tensors, edit_card

RESTORE = "Restore the folder of checkpoint"


def put(place: object, value: object) -> Callable[[np.ndarray], np.ndarray]:
    """Change one number, or one row."""

    def change(array: np.ndarray) -> np.ndarray:
        changed = array.copy()
        changed[place] = value
        return changed

    return change


def all_of(start: str, change: Callable[[np.ndarray], np.ndarray]) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    names = ("ids", "keys", "labels", "neighbors", "distances", "logits", "inputs")
    return {f"{start}_{name}": change for name in names}


def too_many(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, array], axis=1)


def assert_refused(root: Path, sentence: str) -> None:
    with pytest.raises(DamagedCheckpoint) as caught:
        load("iris", root)
    assert re.search(sentence, str(caught.value)), str(caught.value)
    assert RESTORE in str(caught.value)
    assert len(str(caught.value)) < 500


def test_the_first_problem_is_raised_and_no_more_are_looked_for():
    def problems():
        yield "This was expected.", "That came."
        raise AssertionError

    with pytest.raises(DamagedCheckpoint, match=r"This was expected. That came. Restore .*some"):
        refuse("some", problems())
    refuse("some", iter([]))


# ---- Arrays


FLOATS = ("entry_keys", "entry_logits", "entry_inputs", "query_keys", "query_logits", "query_inputs")
FLOATS += ("query_distances", "class_confusion")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", FLOATS)
def test_numbers_that_are_none_are_refused(name: str, value: float, bench: Path):
    change_arrays(bench, {name: put((1, 2), value)})
    assert_refused(bench, f"{name} must hold finite numbers. It holds NaN or infinity 1 times.")


def lengthen(array: np.ndarray) -> np.ndarray:
    return array * np.float32(1.002)


def reverse(array: np.ndarray) -> np.ndarray:
    return array[:, ::-1]


def same_as(place: object, other: object) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: put(place, array[other])(array)


ARRAYS = [
    ({"entry_keys": lengthen}, r"Every row of entry_keys must have length one. Lengths reach from 1.002 to 1.002"),
    ({"query_keys": put(3, 0)}, "Every row of query_keys must have length one. Lengths reach from 0 to 1"),
    ({"query_distances": reverse}, "query_distances must ascend from the nearest on. Those of query 0 do not"),
    ({"query_distances": put((5, -1), 2.1)}, "query_distances must lie between 0 and 2.* They reach from .* to 2.1"),
    ({"query_distances": put((5, 0), -0.1)}, r"query_distances must lie between 0 and 2.* They reach from -0.1 to"),
    (
        {"query_neighbors": same_as((2, 4), (2, 7))},
        "A row of query_neighbors must name every .* query 2",
    ),
    (
        {"query_neighbors": too_many, "query_distances": too_many},
        "query_neighbors must hold at most 78, the number of entries. It holds 128",
    ),
    (
        {"query_neighbors": lambda a: a[:, :0], "query_distances": lambda a: a[:, :0]},
        r"query_neighbors must not be empty. It has shape \(45, 0\)",
    ),
    (all_of("query", lambda a: a[:0]), r"query_ids must not be empty. It has shape \(0,\)"),
    ({"entry_neighborhoods": lambda a: a[:, :0]}, r"entry_neighborhoods must not be empty. It has shape \(78, 0\)"),
    ({"entry_neighborhoods": put((9, 3), 9)}, "must leave out each entry itself and its duplicates. .* entry 9 holds"),
    ({"entry_neighborhoods": put((6, 2), -1)}, "must be filled up with −1 at the end only. That of entry 6 goes on"),
    ({"entry_neighborhoods": same_as((7, 0), (7, 9))}, "A row of entry_neighborhoods must name .* entry 7 repeats"),
    ({"entry_groups": put(4, -1)}, "entry_groups must be numbered from 0. They reach from -1 to"),
    ({"entry_ids": same_as(3, 8)}, 'An id must name one item. "iris/train/.*" names more'),
    ({"query_ids": same_as(3, 8)}, 'An id must name one item. "iris/test/8" names more'),
    ({"entry_ids": put(2, b"\xff/1")}, r"Ids must be texts in UTF-8. b'\\xff' is not"),
    ({"query_ids": put(2, b"caf\xc3")}, "Ids must be texts in UTF-8"),
    ({"query_ids": put(2, b"")}, "Ids must not be empty. One is"),
    ({"class_confusion": put((0, 1), -0.5)}, "class_confusion must not be negative. It reaches down to -0.5"),
    ({"query_inputs": lambda a: a[:, :3]}, r"Inputs of entries and queries must have one shape. .*\(4,\) and \(3,\)"),
]


@pytest.mark.parametrize(("changes", "sentence"), ARRAYS, ids=lambda value: value if isinstance(value, str) else "")
def test_arrays_that_cannot_be_are_refused(changes: dict, sentence: str, bench: Path):
    change_arrays(bench, changes)
    assert_refused(bench, sentence)
    with pytest.raises(DamagedCheckpoint):
        open_bundle(open_checkpoint("iris", bench))


def test_a_duplicate_in_an_entrys_own_neighborhood_is_refused(bench: Path):
    groups = np.load(bench / "iris" / "bundle" / "entry_groups.npy")
    one, other = np.flatnonzero(np.bincount(groups)[groups] > 1)[:2]
    change_arrays(bench, {"entry_neighborhoods": put((one, 0), other)})
    assert_refused(bench, f"must leave out each entry itself and its duplicates. That of entry {one} holds one")


def test_a_query_that_is_an_entry_is_refused(bench: Path):
    taken = np.load(bench / "iris" / "bundle" / "entry_ids.npy")[3]
    change_arrays(bench, {"query_ids": lambda array: put(1, taken)(array.astype("S20"))})
    assert_refused(bench, f'Queries must not be entries. "{taken.decode()}" is both')


def test_what_is_odd_and_sound_is_accepted(bench: Path):
    """Padding at the end, one group number far away, and numbers of other sizes and byte orders."""
    changes = {
        "entry_neighborhoods": put((3, slice(20, None)), -1),
        "entry_groups": put(5, 10**6),
        "query_logits": lambda array: array.astype(np.float16),
        "query_labels": lambda array: array.astype(">i8"),
        "query_keys": lambda array: array.astype(">f8"),
        "entry_keys": lambda array: array.astype(np.longdouble),
    }
    change_arrays(bench, changes)
    assert len(load("iris", bench).predict_items()) == 45


# ---- Card


def at(path: str, value: object) -> Callable[[dict], None]:
    """Set one field of a card."""

    def change(card: dict) -> None:
        *parents, last = path.split(" / ")
        for parent in parents:
            card = card[parent]
        card[last] = value

    return change


KEYS = "bundle/entry_keys.npy"

CARDS = [
    (at("dataset", []), "The card must describe its dataset. It has no object of that name"),
    (at("dataset / class_names", "abc"), "dataset.class_names must list two or more different names. It says 'abc'"),
    (at("dataset / class_names", ["a", "b", "b"]), "two or more different names"),
    (at("dataset / class_names", ["a", "b", 3]), "two or more different names"),
    (at("dataset / class_names", ["a"]), "two or more different names"),
    (at("dataset / class_names", [["a"], ["b"], ["c"]]), "two or more different names"),
    (at("dataset / class_names", ["x" * 1000] * 2), "two or more different names"),
    (at("dataset / kind", "sound"), "dataset.kind must be one of image, table, points. It says 'sound'"),
    (at("dataset / kind", ["table"]), "dataset.kind must be one of"),
    (at("dataset / input_shape", [5]), r"dataset.input_shape must be \[4\], as elsewhere in the checkpoint. .* \[5\]"),
    (at("dataset / input_shape", 4), r"dataset.input_shape must be \[4\]"),
    (at("dataset / feature_names", ["one", "two"]), r"feature_names must name inputs of shape \(4,\). It has 2 names"),
    (at("dataset / feature_names", "abcd"), "dataset.feature_names must be a list of names"),
    (at("dataset / feature_names", [1, 2, 3, 4]), "dataset.feature_names must be a list of names"),
    (at("dataset / name", "wine"), "config.dataset must be 'wine', as elsewhere in the checkpoint. It says 'iris'"),
    (at("config / dataset", "wine"), "config.dataset must be 'iris', as elsewhere in the checkpoint. It says 'wine'"),
    (
        at("config / attention / heads", ["nearest"]),
        r"config.attention.heads must be \['nearest', 'trusted'",
    ),
    (at("config / embedder / dimension", 64), "config.embedder.dimension must be 8, as elsewhere .* It says 64"),
    (at("config / embedder / dimension", 8.0), "config.embedder.dimension must be 8, as elsewhere .* It says 8.0"),
    (
        at("config / embedder / members", 0),
        "embedder.members must be a whole number from 1 to 8, the dimension. It says 0",
    ),
    (at("config / embedder / kind", "resnet"), "embedder.kind must be one of cnn, mlp, fast_cnn. It says 'resnet'"),
    (at("config / attention / k", 8.0), "config.attention.k must be a whole number from 1. It says 8.0"),
    (at("config / attention / k", True), "config.attention.k must be a whole number from 1. It says True"),
    (at("config / attention / k", "8"), "config.attention.k must be a whole number from 1"),
    (at("config / attention / k", 0), "config.attention.k must be a whole number from 1. It says 0"),
    (at("sizes / fit", 77), "sizes.fit must be 78, as elsewhere in the checkpoint. It says 77"),
    (at("sizes / test", "45"), "sizes.test must be 45, as elsewhere in the checkpoint. It says '45'"),
    (at(f"files / {KEYS} / dtype", "<f8"), "The card must say dtype <f4 of entry_keys, as the file does"),
    (at(f"files / {KEYS} / shape", [78, 9]), r"The card must say shape \[78, 8\] of entry_keys, .* 9\]"),
    (at("attention / terms", []), r"attention.terms must be a list of different names. It says \[\]"),
    (at("attention / terms", None), "attention.terms must be a list of different names. It says None"),
    (at("attention / terms", ["rank"] * 5), "attention.terms must be a list of different names"),
    (at("attention / terms", ["rank"]), r"attention.terms must have the distance among them. It says \['rank'\]"),
]


@pytest.mark.parametrize(("change", "sentence"), CARDS, ids=lambda value: value if isinstance(value, str) else "")
def test_cards_that_cannot_be_are_refused(change: Callable[[dict], None], sentence: str, bench: Path):
    edit_card(bench, change)
    assert_refused(bench, sentence)


@pytest.mark.parametrize("heads", ["nearest", [], ["nearest", "nearest", "typical"], ["nearest", 2]])
def test_heads_that_are_no_list_of_names_are_refused(heads: object, bench: Path):
    edit_card(bench, at("attention / heads", heads))
    edit_card(bench, at("config / attention / heads", heads))
    assert_refused(bench, "attention.heads must be a list of different names")


@pytest.mark.parametrize(("kind", "known"), [("head", "nearest, trusted"), ("term", "distance, rank")])
def test_a_head_or_term_of_tomorrow_asks_for_an_update(kind: str, known: str, bench: Path):
    edit_card(bench, lambda card: card["attention"][f"{kind}s"].append("wise"))
    edit_card(bench, lambda card: card["config"]["attention"].update(heads=card["attention"]["heads"]))
    with pytest.raises(CheckpointError) as caught:
        load("iris", bench)
    assert type(caught.value) is CheckpointError
    assert str(caught.value).startswith(f"Every {kind} must be one that this version knows: {known}")
    assert str(caught.value).endswith("Checkpoint \"iris\" has 'wise'. Update Attn-KNN Explorer.")


# ---- Weights

H, T = 3, 5  # of the trained iris

FINITE = "weights.safetensors must hold {}: finite numbers of shape {}."
SHAPED = {
    "sharpness": (2,),
    "attention.coefficients": (H, T),
    "attention.sink": (H, 4),
    "attention_averages.coefficients": (H, T),
    "attention_averages.sink": (H, 4),
    "attention_averages.seat": (H, 2),
    "attention_averages.pull": (H, 2),
} | {f"calibration.{vote}": (2, 8) for vote in COMPARED}


@pytest.mark.parametrize("name", SHAPED)
def test_tensors_that_are_missing_or_misshapen_or_no_numbers_are_refused(name: str, bench: Path):
    expected, shape = re.escape(FINITE.format(name, SHAPED[name])), SHAPED[name]
    nan = np.full(shape, np.nan)
    for wrong, came in (
        (None, "It is missing"),
        (np.ones((*shape[:-1], shape[-1] + 1)), "It is float64 of shape"),
        (np.ones(()), "It is float64 of shape"),
        (np.ones(shape, bool), "It is bool of shape"),
        (nan, "Some are NaN or infinite"),
    ):
        change_tensors(bench, {name: wrong})
        assert_refused(bench, f"{expected} {came}")


def unseen(coefficients: np.ndarray) -> np.ndarray:
    return put((0, 2), 0.5)(coefficients)  # nearest sees no trust


SEEN = np.array([[1, 1, 0, 0, 0], [1, 0, 1, 1, 0], [1, 0, 0, 0, 1]], float)

WEIGHTS = [
    (
        {"attention.seat": np.zeros((H, 2))},
        "at the table of attention_averages only. There is a tensor attention.seat",
    ),
    ({"sharpness": np.array([1.0, -1.0])}, r"sharpness must not be negative. It is \[1.0, -1.0\]"),
    ({"attention.coefficients": unseen(SEEN)}, 'attention.coefficients must be zero .* "nearest" does not see "trust"'),
    ({"attention_averages.coefficients": unseen(SEEN)}, "attention_averages.coefficients must be zero where a head"),
]


@pytest.mark.parametrize(("changes", "sentence"), WEIGHTS, ids=lambda value: value if isinstance(value, str) else "")
def test_weights_that_cannot_be_are_refused(changes: dict, sentence: str, bench: Path):
    change_tensors(bench, {"attention.coefficients": SEEN})
    assert load("iris", bench)
    change_tensors(bench, changes)
    assert_refused(bench, sentence)


@pytest.mark.parametrize("metric", [None, np.ones((2, 7)), np.ones((0, 8)), np.ones(8), np.full((2, 8), np.nan)])
def test_content_needs_a_metric_of_the_keys(metric: np.ndarray | None, bench: Path):
    heads, terms = ["nearest", "familiar"], ["distance", "rank", "content", "fellows"]
    edit_card(bench, at("attention", {"heads": heads, "terms": terms}))
    edit_card(bench, at("config / attention / heads", heads))
    seen = np.array([[1, 1, 0, 0], [1, 0, 1, 1]], float)
    for vote in ("attention", "attention_averages"):
        change_tensors(bench, {f"{vote}.coefficients": seen, f"{vote}.sink": np.zeros((2, 4))})
        change_tensors(bench, {f"{vote}.metric": np.ones((3, 8))})
    change_tensors(bench, {f"attention_averages.{name}": np.zeros((2, 2)) for name in ("seat", "pull")})
    assert len(load("iris", bench).predict_items(k=3)) == 45
    change_tensors(bench, {"attention_averages.metric": metric})
    assert_refused(bench, re.escape(FINITE.format("attention_averages.metric", "(R, 8)")))
