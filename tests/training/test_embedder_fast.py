"""The embedder of larger images: it learns, goes on exactly, keeps memory small, and is saved in half the room."""

from __future__ import annotations

import platform
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from attnknn.config import EmbedderConfig
from attnknn.errors import InputError
from attnknn.models.embedders import Embedder, threads_for
from attnknn.training import embedder as training
from attnknn.training import fast
from attnknn.training.embedder import Batches, train_embedder
from attnknn.training.fast import kept_memory, make_muon, orthogonal, still_statistics, triangle, uphill

FAST = EmbedderConfig("fast_cnn", dimension=8, width=4, epochs=4, batch_size=40, learning_rate=0.02, shift=2, flip=True)
SHAPES = {"gray": (16, 16), "color": (16, 16, 3)}


def stripes(n: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of noisy images: flat, striped across, striped down."""
    random = np.random.default_rng(0)
    labels = np.arange(n) % 3
    wave = 60 * np.sin(np.arange(16) * 2)
    patterns = np.stack([np.zeros((16, 16)), wave[:, None] + np.zeros((16, 16)), wave + np.zeros((16, 16))])
    images = patterns[labels].reshape(n, 16, 16, *[1] * (len(shape) - 2))
    noisy = 128 + images + random.normal(0, 30, (n, *shape))
    return noisy.clip(0, 255).astype(np.uint8), labels


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setenv("ATTNKNN_THREADS", "1")


class Paused(Exception):
    """Somebody pressed pause."""


def train(kind: str, config: EmbedderConfig = FAST, remember: Path | None = None, stop_at: int = 0, **more) -> Embedder:
    images, labels = stripes(130, SHAPES[kind])
    count = 0

    def pause_point() -> None:
        nonlocal count
        count += 1
        if count == stop_at:
            raise Paused

    return train_embedder(images, labels, 3, config, 0, remember=remember, pause_point=pause_point, **more)


def same_weights(one: Embedder, two: Embedder) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True))


@pytest.mark.parametrize("kind", SHAPES)
def test_training_teaches(kind: str):
    embedder = train(kind, replace(FAST, epochs=8))
    images, labels = stripes(90, SHAPES[kind])
    keys, logits = embedder.embed(images)
    assert np.mean(logits.argmax(axis=1) == labels) > 0.9
    assert (keys.shape, keys.dtype) == ((90, 8), np.float32)
    np.testing.assert_allclose(np.linalg.norm(keys, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(embedder.embed(images[7:8])[0], keys[7:8], atol=1e-5)


def test_the_same_seed_gives_the_same_weights():
    assert same_weights(train("gray"), train("gray"))


@pytest.mark.parametrize(("kind", "more"), [("gray", {}), ("color", {}), ("color", {"ascent": 0.3, "members": 2})])
@pytest.mark.parametrize("stops", [[1], [6], [7, 5], [16]])
def test_an_interrupted_run_ends_with_the_same_weights_bit_for_bit(kind, more, stops, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "REMEMBER", 0.0)
    config = replace(FAST, **more)
    whole = train(kind, config)
    for stop_at in stops:
        with pytest.raises(Paused):
            train(kind, config, remember=tmp_path, stop_at=stop_at)
        torch.rand(3)  # whatever happens in between
    assert same_weights(train(kind, config, remember=tmp_path), whole)


def test_members_learn_apart_and_vote_together(tmp_path):
    config = replace(FAST, dimension=9, members=2, epochs=12)
    embedder = train("gray", config)
    images, labels = stripes(60, SHAPES["gray"])
    embeddings, logits = embedder.embed(images)
    each = embedder.member_logits(torch.as_tensor(embeddings))
    np.testing.assert_allclose(each.mean(dim=0).detach(), logits, atol=1e-4)
    assert np.mean(each.argmax(dim=2).numpy() == labels) > 0.6, "each by itself, where chance is a third"
    np.testing.assert_allclose(
        [np.linalg.norm(part, axis=1) for part in (embeddings[:, :5], embeddings[:, 5:])], 0.5**0.5, rtol=1e-5
    )
    with pytest.raises(Paused):
        train("gray", config, tmp_path, stop_at=9)
    assert same_weights(embedder, train("gray", config, tmp_path))


def test_what_one_member_gets_wrong_teaches_no_other():
    embedder = Embedder(replace(FAST, members=2), SHAPES["gray"], 3)
    images, labels = stripes(12, SHAPES["gray"])
    said = embedder.member_logits(embedder(embedder.prepare(images)))
    torch.nn.functional.cross_entropy(said[0], torch.as_tensor(labels)).backward()
    moved = [
        any(one.grad is not None and one.grad.any() for one in network.parameters())
        for network in embedder.body.networks
    ]
    assert moved == [True, False]


def test_the_first_layer_learns_its_biases_in_the_first_epochs_alone():
    seen: list[torch.Tensor] = []

    def look(embedder: Embedder, epoch: int) -> dict[str, float]:
        seen.append(embedder.body.whitening.bias.detach().clone())
        return {}

    train("color", replace(FAST, epochs=training.BIAS_EPOCHS + 3), look=look)
    early, late = seen[: training.BIAS_EPOCHS], seen[training.BIAS_EPOCHS : -1]
    assert not any(torch.equal(one, two) for one, two in pairwise(early))
    assert all(torch.equal(early[-1], one) for one in late)


def test_there_are_no_more_members_than_dimensions():
    with pytest.raises(ValueError, match="members must be 1 to 2, the dimension, however: 3"):
        Embedder(replace(FAST, dimension=2, members=3), SHAPES["gray"], 3)


def test_every_image_is_seen_both_ways_within_two_epochs():
    images, labels = stripes(50, (16, 16))
    batches = Batches(images, labels, replace(FAST, shift=0), seed=0)
    moving = training._start(Embedder(FAST, (16, 16), 3), 50, 0)
    rows = torch.arange(50)
    (even, _), (odd, _), (again, _) = (batches.take(rows, epoch, moving) for epoch in range(3))
    assert torch.equal(even, odd.flip(2))
    assert torch.equal(even, again)
    is_flipped = (even != torch.as_tensor(images)).flatten(1).any(dim=1)
    assert 10 < is_flipped.sum() < 40


def test_digits_are_never_flipped_unless_asked():
    images, labels = stripes(50, (16, 16))
    batches = Batches(images, labels, replace(FAST, shift=0, flip=False), seed=0)
    moving = training._start(Embedder(FAST, (16, 16), 3), 50, 0)
    for epoch in range(2):
        assert torch.equal(batches.take(torch.arange(50), epoch, moving)[0], torch.as_tensor(images).float())


def test_smoothing_keeps_the_head_from_certainty():
    config = replace(FAST, epochs=12)
    sure, unsure = (train("gray", replace(config, smoothing=share)) for share in (0.0, 0.4))
    images, _ = stripes(90, (16, 16))
    chances = [torch.softmax(torch.as_tensor(one.embed(images)[1]), dim=1).amax(dim=1).mean() for one in (sure, unsure)]
    assert chances[1] < chances[0] - 0.1


def test_scaled_images_are_never_in_memory_all_at_once():
    """Float32 copies of these would take four times the room of the images themselves."""
    images, labels = np.zeros((4000, 16, 16, 3), np.uint8), np.arange(4000) % 3
    images[:, ::2] = 200
    train("color")  # what the first training imports does not count
    tracemalloc.start()
    try:
        train_embedder(images, labels, 3, replace(FAST, epochs=1, batch_size=500), 0)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 * 1000 * images[0].size * 3  # what the statistics of a thousand take, in float64


def test_a_trained_network_is_saved_in_half_the_room_and_comes_back_the_same():
    embedder = train("color")
    arrays = embedder.arrays()
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float16), np.dtype(np.int64)}
    other = Embedder(FAST, (16, 16, 3), 3).eval()
    other.load_state_dict({name: torch.as_tensor(array) for name, array in arrays.items()})
    assert same_weights(other, embedder)
    images, _ = stripes(20, (16, 16, 3))
    np.testing.assert_array_equal(other.embed(images)[0], embedder.embed(images)[0])


def test_what_float16_cannot_hold_is_saved_as_it_is():
    untrained = Embedder(FAST, (16, 16), 3)
    arrays = untrained.arrays()
    assert arrays["body.projection.weight"].dtype == np.float32
    rounded = Embedder(EmbedderConfig("cnn", dimension=8, width=4), (8, 8), 3)
    before = {name: tensor.clone() for name, tensor in rounded.state_dict().items()}
    rounded.round_weights()
    assert all(torch.equal(before[name], tensor) for name, tensor in rounded.state_dict().items())


def test_images_of_another_shape_are_refused():
    with pytest.raises(InputError, match=r"The embedder takes items of shape \(16, 16, 3\)"):
        Embedder(FAST, (16, 16, 3), 3).embed(np.zeros((2, 16, 16), np.uint8))


# ---- Cores and numbers


@pytest.mark.parametrize(("asked", "count"), [("1", 1), ("2", 2), ("900", 4), ("0", 1), ("", 4), ("many", 4)])
def test_the_environment_says_how_many_cores_are_used(asked: str, count: int, monkeypatch):
    monkeypatch.setenv("ATTNKNN_THREADS", asked)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert threads_for(FAST) == count


def test_small_networks_stay_on_one_core(monkeypatch):
    monkeypatch.setenv("ATTNKNN_THREADS", "2")
    assert threads_for(EmbedderConfig("cnn")) == 1


def test_training_leaves_the_number_of_threads_as_it_was(monkeypatch):
    monkeypatch.setenv("ATTNKNN_THREADS", "2")
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    seen = []
    train("gray", replace(FAST, epochs=1), look=lambda *_: seen.append(torch.get_num_threads()) or {})
    assert (seen, torch.get_num_threads()) == ([2], 1)


def test_bfloat16_learns_too(monkeypatch):
    """It is slow here, and right: what a processor with matrix units does."""
    monkeypatch.setattr(fast, "has_fast_bfloat16", lambda device: True)
    embedder = train("gray", replace(FAST, epochs=8))
    images, labels = stripes(90, (16, 16))
    assert np.mean(embedder.embed(images)[1].argmax(axis=1) == labels) > 0.9
    assert all(tensor.dtype != torch.bfloat16 for tensor in embedder.state_dict().values())


# ---- Steps


@pytest.mark.parametrize("shape", [(6, 20), (20, 6), (8, 8)])
def test_steps_have_the_directions_of_the_gradient_and_about_one_size(shape: tuple[int, int]):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    left, singular, right = torch.linalg.svd(matrix, full_matrices=False)
    turned = left.T @ orthogonal(matrix) @ right.T
    torch.testing.assert_close(turned, torch.diag(turned.diag()), atol=1e-4, rtol=0)
    large = singular > 0.2 * singular.max()
    assert ((turned.diag() > 0.5) & (turned.diag() < 1.5))[large].all()


def test_every_weight_that_learns_has_one_kind_of_step():
    embedder = Embedder(FAST, (16, 16, 3), 3)
    groups = make_muon(embedder, 100).param_groups
    counted = [id(weight) for group in groups for weight in group["params"]]
    assert sorted(counted) == sorted(id(weight) for weight in embedder.parameters() if weight.requires_grad)
    assert all(weight.ndim > 1 for weight in groups[0]["params"])
    assert id(embedder.classifier.weight) in {id(weight) for weight in groups[1]["params"]}


def test_adams_steps_are_those_of_torch():
    ours, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 5)) for _ in range(2))
    muon = fast.Muon([], [ours], lr=0.01, steps=5, weight_decay=0.1)
    betas = (fast.FIRST, fast.SECOND)
    adam = torch.optim.AdamW([theirs], lr=0.01, betas=betas, eps=fast.TINY, weight_decay=0.1)
    for step in range(5):
        for weight, optimizer in ((ours, muon), (theirs, adam)):
            weight.grad = torch.cos(weight.detach() * (step + 1))
            optimizer.step()
    torch.testing.assert_close(ours, theirs)


def test_the_learning_rate_rises_once_and_falls_to_nothing():
    shares = [triangle(step, 50) for step in range(51)]
    peak = int(np.argmax(shares))
    assert shares[: peak + 1] == sorted(shares[: peak + 1])
    assert shares[peak:] == sorted(shares[peak:], reverse=True)
    assert max(shares) <= 1
    assert shares[50] == 0


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators are left as they are")
def test_memory_is_kept_between_batches_and_given_back_at_the_end():
    def held() -> int:
        return psutil.Process().memory_info().rss

    before, batch = held(), 2**28
    torch.ones(batch, dtype=torch.uint8)
    assert held() - before < batch / 2
    with kept_memory():
        torch.ones(batch, dtype=torch.uint8)
        assert held() - before > batch / 2
    assert held() - before < batch / 2
    torch.ones(batch, dtype=torch.uint8)
    assert held() - before < batch / 2


def test_uphill_is_where_the_loss_is_larger_and_the_way_back_is_exact():
    embedder = Embedder(replace(FAST, members=2), SHAPES["color"], 3)
    images, labels = stripes(60, SHAPES["color"])
    embedder.learn_scale(images)
    scaled, targets = embedder.prepare(images), torch.as_tensor(labels)

    def loss() -> torch.Tensor:
        said = embedder.member_logits(embedder(scaled))
        return torch.nn.functional.cross_entropy(said.flatten(0, 1), targets.repeat(2))

    with still_statistics(embedder):
        first = loss()
        first.backward()
        before = {name: weight.detach().clone() for name, weight in embedder.named_parameters()}
        with uphill(embedder, 0.2):
            assert loss() > first
            moved = {name: weight.detach() - before[name] for name, weight in embedder.named_parameters()}
            for member in range(2):
                of_one = [d.norm() for name, d in moved.items() if f"networks.{member}." in name]
                assert torch.stack(of_one).norm() == pytest.approx(0.2, rel=1e-4)
            assert not any(moved[name].any() for name in moved if name.endswith("bias") or "classifier" in name)
    assert all(torch.equal(weight, before[name]) for name, weight in embedder.named_parameters())
    untouched = [module.running_mean for module in embedder.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert not any(mean.any() for mean in untouched)


def test_going_uphill_changes_the_last_epochs_alone():
    config = replace(FAST, epochs=8)
    seen: dict[float, list[float]] = {0.0: [], 0.5: []}
    for length, losses in seen.items():
        train(
            "color", replace(config, ascent=length), report=lambda stage, share, n, into=losses: into.append(n["loss"])
        )
    assert seen[0.0][:5] == seen[0.5][:5]
    assert seen[0.0][5:] != seen[0.5][5:]
