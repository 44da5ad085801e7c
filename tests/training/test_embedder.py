"""The embedder: unit vectors, its own scale, and the same weights for the same seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnknn.config import EmbedderConfig
from attnknn.data import Dataset, load_dataset
from attnknn.errors import InputError
from attnknn.models.embedders import Embedder, augment
from attnknn.training.embedder import train_embedder
from tests.conftest import QUICK_EMBEDDER

SMALL_CNN = EmbedderConfig("cnn", dimension=8, width=4, epochs=2, batch_size=64)


@pytest.fixture(scope="module")
def iris_data() -> Dataset:
    return load_dataset("iris")


@pytest.fixture(scope="module")
def digits_data() -> Dataset:
    return load_dataset("digits")


def train(dataset: Dataset, config: EmbedderConfig, seed: int = 0, rows: slice = slice(300), report=None) -> Embedder:
    more = {} if report is None else {"report": report}
    return train_embedder(dataset.inputs[rows], dataset.labels[rows], dataset.n_classes, config, seed, **more)


def same_weights(one: Embedder, two: Embedder) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True))


@pytest.mark.parametrize(("name", "config"), [("iris", replace(QUICK_EMBEDDER, epochs=2)), ("digits", SMALL_CNN)])
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(name: str, config: EmbedderConfig):
    dataset = load_dataset(name)
    first = train(dataset, config)
    torch.rand(7)  # whatever happened in between
    assert same_weights(first, train(dataset, config))
    assert not same_weights(first, train(dataset, config, seed=1))


def test_training_teaches(iris_data: Dataset):
    losses = []
    embedder = train(iris_data, QUICK_EMBEDDER, report=lambda stage, done, numbers: losses.append(numbers["loss"]))
    assert losses[-1] < 0.5 * losses[0]
    _, logits = embedder.embed(iris_data.inputs)
    assert np.mean(logits.argmax(axis=1) == iris_data.labels) > 0.9


def test_progress_is_told_after_every_epoch_and_ends_at_one(iris_data: Dataset):
    told = []
    train(iris_data, replace(QUICK_EMBEDDER, epochs=4), report=lambda *facts: told.append(facts))
    assert [stage for stage, _, _ in told] == ["embedder"] * 4
    assert [done for _, done, _ in told] == [0.25, 0.5, 0.75, 1.0]
    assert [numbers["epoch"] for _, _, numbers in told] == [1, 2, 3, 4]


@pytest.mark.parametrize("epochs", range(1, 8))
def test_the_shortest_training_works_too(iris_data: Dataset, epochs: int):
    """Five steps once divided the schedule by zero."""
    train(iris_data, replace(QUICK_EMBEDDER, epochs=epochs), rows=slice(30))


@pytest.mark.parametrize("n", [64, 65, 1])
def test_a_batch_of_one_is_left_out(digits_data: Dataset, n: int):
    """Batch normalization cannot learn from one item; 65 items in batches of 64 leave one."""
    embedder = train(digits_data, SMALL_CNN, rows=slice(n))
    assert all(torch.isfinite(tensor).all() for tensor in embedder.state_dict().values())


@pytest.mark.parametrize(("name", "config"), [("iris", replace(QUICK_EMBEDDER, epochs=1)), ("digits", SMALL_CNN)])
def test_embeddings_are_unit_vectors_whatever_the_batch(name: str, config: EmbedderConfig):
    dataset = load_dataset(name)
    embedder = train(dataset, config)
    keys, logits = embedder.embed(dataset.inputs[:50])
    assert keys.dtype == logits.dtype == np.float32
    assert (keys.shape, logits.shape) == ((50, 8), (50, dataset.n_classes))
    np.testing.assert_allclose(np.linalg.norm(keys, axis=1), 1, atol=1e-6)
    in_pieces = embedder.embed(dataset.inputs[:50], batch_size=7)
    alone = embedder.embed(dataset.inputs[3:4])
    np.testing.assert_allclose(in_pieces[0], keys, atol=1e-6)
    np.testing.assert_allclose(in_pieces[1], logits, atol=1e-4)
    np.testing.assert_allclose(alone[0], keys[3:4], atol=1e-6)
    nothing = embedder.embed(dataset.inputs[:0])
    assert (nothing[0].shape, nothing[1].shape) == ((0, 8), (0, dataset.n_classes))


def test_the_scale_is_learned_from_the_fit_part(iris_data: Dataset):
    """A row in other units is the same row: what matters is where it lies among the fit part."""
    inputs, labels = iris_data.inputs[:100], iris_data.labels[:100]
    config = replace(QUICK_EMBEDDER, epochs=1)
    one, two = (train_embedder(x, labels, 3, config, 0) for x in (inputs, 10 * inputs + 3))
    np.testing.assert_allclose(one.embed(inputs)[0], two.embed(10 * inputs + 3)[0], atol=1e-3)
    np.testing.assert_allclose(one.prepare(inputs).mean(dim=0), 0, atol=1e-5)
    np.testing.assert_allclose(one.prepare(inputs).std(dim=0, correction=0), 1, atol=1e-5)


def test_a_feature_that_never_varies_does_no_harm():
    inputs = np.random.default_rng(0).normal(size=(40, 3))
    inputs[:, 1] = 7
    embedder = train_embedder(inputs, np.arange(40) % 2, 2, replace(QUICK_EMBEDDER, epochs=1), 0)
    assert np.isfinite(embedder.embed(inputs)[0]).all()


@pytest.mark.parametrize("name", ["iris", "digits"])
def test_augmentation_keeps_shapes_and_never_rests(name: str):
    config = QUICK_EMBEDDER if name == "iris" else SMALL_CNN
    scaled = torch.as_tensor(load_dataset(name).inputs[:20].astype(np.float32))
    generator = torch.Generator().manual_seed(0)
    moved = augment(scaled, config, generator)
    assert moved.shape == scaled.shape
    assert not torch.equal(moved, scaled)
    again = augment(scaled, config, torch.Generator().manual_seed(0))
    assert torch.equal(moved, again)


def test_an_image_is_shifted_and_filled_with_its_background():
    image = torch.zeros(200, 4, 4)
    image[:, 1, 1] = 1
    moved = augment(image, replace(SMALL_CNN, shift=1), torch.Generator().manual_seed(0))
    places = moved.flatten(1).argmax(dim=1)
    assert (moved.flatten(1).sum(dim=1) == 1).all()
    assert {*places.tolist()} == {row * 4 + column for row in range(3) for column in range(3)}


@pytest.mark.parametrize("kind", [object, str, complex])
def test_inputs_that_are_no_numbers_are_refused(kind: type):
    embedder = Embedder(QUICK_EMBEDDER, (2,), 3)
    with pytest.raises(InputError, match=r"Inputs must be finite numbers\. Their type is"):
        embedder.embed(np.array([[1, 2]], dtype=kind))


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float16, ">f8", np.uint16])
def test_every_kind_of_real_number_is_taken(kind):
    embedder = Embedder(QUICK_EMBEDDER, (2,), 3).eval()
    numbers = np.array([[1, 0], [0, 1]])
    np.testing.assert_array_equal(embedder.embed(numbers.astype(kind))[0], embedder.embed(numbers * 1.0)[0])
