"""Every registered dataset keeps its promises, and nothing in it moves from one version to the next."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from attnknn.data import (
    Dataset,
    DatasetDescription,
    dataset_names,
    describe_datasets,
    is_here,
    load_dataset,
    make_dataset,
    register_dataset,
)
from attnknn.errors import UnknownDataset, UnknownItem

HASHES = {
    "digits": "c631f15cc653dbd59fefe9a668b2b629b907f83a7ce74869cb431644904361a2",
    "iris": "ac082e492bdac6caf4706923001d1a4fef8fec8edbab2a028291d9842b5c416c",
    "wine": "cdd858104f47ede5fd4f2cf8ca08abbb33e17b392b9bd20c16097b42eda8943f",
    "breast_cancer": "91bdcc5ccab80e6cbe52c263544a6590bb4ec5e33addb8aa2ebd5a745141b078",
    "moons": "75e24ff19aca6974c3ecb166c534c38aef0be12ed2098a865148359f2fa8610c",
    "spirals": "125e99d5d6b387a9e987199621227b1cd6779fca06938b0d1b04800e9a55cead",
    "circles": "5e1c6a48a8d7798f867ed1e68221011015d25793498ec9edbe778cdce2f577a0",
    "blobs": "3dd7a7ad61f001fb55717df2b1dc461289c28710accf0a4947c0c793fd19ed24",
    "fashion_mnist": "29d199e3a128dac8a0ea3c236ad363c1141e76ddf7969964cd936d7f4f98e59b",
    "wine_red": "6ce98cccc163ec22c4fe7f12e15ec5ddf811ad791996c06ab3200c3ff263fd6d",
    "adult": "31217a7f90fef67de9246f103fb005cd1023f5135ed6c0f84bd259b5ef8ee40d",
}
OFFICIAL_SPLIT = ("cifar10", "cifar100", "mnist", "fashion_mnist", "adult")


@pytest.fixture(params=dataset_names())
def dataset(request) -> Dataset:
    if not is_here(request.param):
        pytest.skip(f"{request.param} is not on this machine")
    return load_dataset(request.param)


def tiny(**changes) -> Dataset:
    parts = {
        "name": "tiny",
        "title": "Tiny",
        "kind": "points",
        "inputs": np.zeros((2, 2)),
        "labels": np.array([0, 1]),
        "class_names": ("a", "b"),
        "ids": np.array(["tiny/train/0", "tiny/test/0"]),
        "splits": np.array(["train", "test"]),
        "groups": np.array([0, 0]),
        "feature_names": ("x", "y"),
        "licence": "none",
        "source": "here",
    }
    return Dataset(**(parts | changes))


def run(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def test_the_catalogue_says_what_loading_shows(dataset):
    facts = {row.name: row for row in describe_datasets()}[dataset.name]
    shown = DatasetDescription(
        dataset.name,
        dataset.title.removesuffix(" (JPEG)"),
        dataset.kind,
        len(dataset.inputs),
        dataset.n_classes,
        dataset.inputs.shape[1:],
        dataset.licence,
        dataset.source,
        facts.download,
        facts.by_hand,
    )
    assert shown == facts
    assert len(np.unique(dataset.labels)) == facts.n_classes


def test_the_catalogue_needs_no_scikit_learn():
    script = "import sys, attnknn.data as data; data.describe_datasets(); print('sklearn' in sys.modules)"
    assert run(script) == "False"


def test_without_scikit_learn_a_bundled_dataset_says_what_to_install_and_spirals_still_load():
    script = """
import sys
sys.modules["sklearn"] = None
from attnknn.data import load_dataset
from attnknn.errors import MissingLibrary
assert len(load_dataset("spirals").inputs) == 600
try:
    load_dataset("digits")
except MissingLibrary as error:
    print(error)
"""
    assert run(script).startswith("Loading a bundled dataset needs scikit-learn.")


def test_inputs_labels_and_names_are_what_they_were(dataset):
    if dataset.name not in HASHES:
        pytest.skip("pixels of a JPEG are up to the library that decodes them")
    assert dataset.hash == HASHES[dataset.name]


def test_ids_count_each_split_in_the_order_of_the_source(dataset):
    for split in ("train", "test"):
        rows = dataset.where(split)
        assert dataset.ids[rows].tolist() == [f"{dataset.name}/{split}/{i}" for i in range(len(rows))]
    assert len(set(dataset.ids)) == len(dataset.ids)


def test_an_id_finds_its_row(dataset):
    assert [dataset.index_of(item_id) for item_id in dataset.ids] == list(range(len(dataset.ids)))


def test_the_digits_have_540_test_items_at_known_places():
    digits = load_dataset("digits")
    assert len(digits.where("test")) == 540
    rows = [digits.index_of(item_id) for item_id in ("digits/test/0", "digits/test/539", "digits/train/0")]
    assert rows == [0, 1796, 2]
    assert digits.labels[rows].tolist() == [0, 8, 2]
    assert (digits.inputs.dtype, digits.inputs.min(), digits.inputs.max()) == (np.uint8, 0, 16)


def test_rows_are_those_of_scikit_learn():
    from sklearn.datasets import load_breast_cancer, load_digits

    assert (load_dataset("digits").inputs.reshape(1797, 64) == load_digits().data).all()
    cells, theirs = load_dataset("breast_cancer"), load_breast_cancer()
    assert (cells.inputs == theirs.data).all()
    assert (cells.labels == theirs.target).all()
    assert cells.feature_names[0] == "mean radius"
    assert cells.class_names == ("malignant", "benign")


def test_the_one_pair_of_equal_irises_is_on_one_side():
    iris = load_dataset("iris")
    numbers, counts = np.unique(iris.groups, return_counts=True)
    twins = np.flatnonzero(iris.groups == numbers[counts == 2])
    assert (counts > 1).sum() == 1
    assert twins.tolist() == [101, 142]
    assert iris.splits[twins[0]] == iris.splits[twins[1]]


def test_no_duplicate_straddles_the_split(dataset):
    if dataset.name in OFFICIAL_SPLIT:
        pytest.skip("the official split is kept as it is")
    groups = [set(dataset.groups[dataset.where(split)]) for split in ("train", "test")]
    assert not groups[0] & groups[1]


def test_nothing_can_be_written(dataset):
    for name in ("inputs", "labels", "ids", "splits", "groups"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(dataset, name)[0] = getattr(dataset, name)[1]
    with pytest.raises(AttributeError):
        dataset.labels = dataset.labels


def test_a_dataset_keeps_its_own_copy():
    inputs = np.zeros((2, 2))
    dataset = tiny(inputs=inputs)
    inputs[0, 0] = 7
    assert dataset.inputs[0, 0] == 0


def test_points_are_small_and_have_names():
    for name in ("moons", "spirals", "circles", "blobs"):
        points = load_dataset(name)
        assert (points.inputs.shape, points.inputs.dtype) == ((600, 2), np.float32)
        assert (points.kind, points.feature_names) == ("points", ("x", "y"))
        assert np.bincount(points.labels).min() == 600 // points.n_classes


def test_neighbors_of_points_mostly_share_their_label():
    """A toy is a puzzle, not noise: its nearest neighbors answer for 85 % of the points or more."""
    for name in ("moons", "spirals", "circles", "blobs"):
        points = load_dataset(name)
        squared = ((points.inputs[:, None] - points.inputs[None]) ** 2).sum(axis=-1)
        np.fill_diagonal(squared, np.inf)
        agree = points.labels[squared.argmin(axis=1)] == points.labels
        assert 0.85 < agree.mean() < 1, name


def test_loading_again_gives_the_same_object():
    assert load_dataset("moons") is load_dataset("moons")


def test_the_hash_sees_name_inputs_labels_and_shape():
    changes = [
        {"name": "other"},
        {"inputs": np.ones((2, 2))},
        {"inputs": np.zeros((2, 2), dtype=np.float32)},
        {"inputs": np.zeros((2, 1, 2)), "feature_names": ()},
        {"labels": np.array([1, 1])},
    ]
    assert len({tiny().hash, *(tiny(**change).hash for change in changes)}) == 1 + len(changes)


def test_an_unknown_dataset_names_the_nearest_one():
    with pytest.raises(UnknownDataset) as caught:
        load_dataset("digit")
    assert 'There is no dataset "digit". Did you mean "digits"? Choose from: digits, iris,' in str(caught.value)


def test_an_unknown_item_shows_what_ids_look_like():
    with pytest.raises(UnknownItem) as caught:
        load_dataset("digits").index_of("digits/test/540")
    assert str(caught.value) == (
        'The id must name an item of the dataset "digits". There is no "digits/test/540". Ids look like digits/test/0.'
    )


def test_an_unknown_split_is_our_own_mistake():
    with pytest.raises(ValueError, match="however: split='validation'"):
        tiny().where("validation")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"labels": np.array([0])}, "each of 2 items needs a label"),
        ({"labels": np.array([0, 2])}, "labels must be in 0..1"),
        ({"ids": np.array(["a", "a"])}, "ids must be unique, however: 2 items have 1 ids"),
        ({"feature_names": ("x",)}, "1 feature names cannot name"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        tiny(**changes)


def test_a_dataset_is_added_with_one_function(monkeypatch):
    from attnknn.data import registry

    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))

    @register_dataset(
        "coins", title="Coins", kind="points", n_items=4, n_classes=2, shape=(2,), licence="none", source="here"
    )
    def build_coins(description: DatasetDescription) -> Dataset:
        return make_dataset(description, np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1]), ("heads", "tails"))

    assert dataset_names()[-1] == describe_datasets()[-1].name == "coins"
    assert build_coins(describe_datasets()[-1]).class_names == ("heads", "tails")
    with pytest.raises(ValueError, match="'coins' is taken"):
        register_dataset("coins", title="", kind="table", n_items=1, n_classes=1, shape=(1,), licence="", source="")(
            build_coins
        )
