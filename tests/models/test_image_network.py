"""The network for small images: whitened patches, identity convolutions, and what happens to training images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from attnknn.checks.card import config_problems
from attnknn.config import EmbedderConfig
from attnknn.models.embedders import Embedder
from attnknn.models.image_network import (
    ImageNetwork,
    Whitening,
    channels_first,
    cut_out,
    identity_convolution,
    shift_and_flip,
)

SMALL = EmbedderConfig("fast_cnn", dimension=8, width=4)


def smooth_images(*shape: int) -> torch.Tensor:
    """Neighboring pixels alike, as in photographs."""
    noise = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    return F.avg_pool2d(noise, 3, stride=1)


@pytest.mark.parametrize(("channels", "directions"), [(1, 9), (3, 12)])
def test_whitened_patches_are_uncorrelated_and_of_one_size(channels: int, directions: int):
    images = smooth_images(200, channels, 12, 12)
    whitening = Whitening(channels)
    whitening.learn(images)
    seen = F.conv2d(images, whitening.filters).transpose(0, 1).flatten(1)
    assert len(seen) == 2 * directions
    torch.testing.assert_close(seen[directions:], -seen[:directions])
    covariance = torch.cov(seen[:directions])
    torch.testing.assert_close(covariance, torch.eye(directions), atol=0.15, rtol=0)
    patches = F.unfold(images, whitening.filters.shape[-1]).transpose(1, 2).flatten(0, 1)
    plain = torch.corrcoef(patches.T)
    assert (plain - torch.eye(len(plain))).abs().max() > 0.3  # there was something to do


def test_directions_without_content_are_not_blown_up():
    whitening = Whitening(1)
    whitening.learn(torch.ones(5, 1, 12, 12))
    assert torch.isfinite(whitening.filters).all()
    assert whitening(torch.ones(1, 1, 12, 12)).abs().max() < 1000


@pytest.mark.parametrize(("before", "after"), [(4, 4), (4, 7), (7, 4)])
def test_convolutions_start_as_copies_of_their_input(before: int, after: int):
    images = torch.randn(2, before, 6, 6)
    same = min(before, after)
    torch.testing.assert_close(identity_convolution(before, after)(images)[:, :same], images[:, :same])


@pytest.mark.parametrize("shape", [(28, 28), (32, 32, 3), (10, 14), (10, 10, 3)])
def test_gray_and_colored_images_become_vectors(shape: tuple[int, ...]):
    network = ImageNetwork(SMALL, shape).eval()
    images = torch.randn(3, *shape)
    assert network(images).shape == (3, 8)


@pytest.mark.parametrize("shape", [(9, 28), (9, 9, 3), (32, 32, 2), (32, 32, 4), (28, 28, 1)])
def test_images_that_cannot_be_halved_or_have_other_channels_are_refused(shape: tuple[int, ...]):
    with pytest.raises(ValueError, match="gray or RGB, and halved three times"):
        ImageNetwork(SMALL, shape)


SHAPES = [
    (28, 28),
    (32, 32, 3),
    (10, 10),
    (9, 28),
    (9, 9, 3),
    (32, 32, 2),
    (32, 32, 4),
    (28, 28, 1),
    (4,),
    (3, 2, 1, 1),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_card_may_say_what_the_network_takes_and_nothing_else(shape: tuple[int, ...]):
    card = {"dataset": {"input_shape": list(shape)}, "config": {"embedder": {"kind": "fast_cnn"}}}
    try:
        ImageNetwork(SMALL, shape)
    except ValueError:
        assert [says for _, says in config_problems(card)] == [f"It says {list(shape)}."]
    else:
        assert list(config_problems(card)) == []


@pytest.mark.parametrize("shape", [28, "28", [28.0, 28.0], [28, None], [True, True], []])
def test_a_card_whose_image_shape_is_none_is_refused(shape: object):
    card = {"dataset": {"input_shape": shape}, "config": {"embedder": {"kind": "fast_cnn"}}}
    ((expected, says),) = config_problems(card)
    assert expected == "fast_cnn takes images, [height, width] or [height, width, 3], of 10 pixels or more."
    assert says == f"It says {shape!r}."


def test_norms_learn_no_scale_and_the_first_layer_only_its_bias():
    network = ImageNetwork(SMALL, (28, 28))
    learned = {name for name, weight in network.named_parameters() if weight.requires_grad}
    assert {name for name in learned if "whitening" in name} == {"whitening.bias"}
    assert {name for name, weight in network.named_parameters() if not weight.requires_grad} == {
        f"layers.{layer}.2.weight" for layer in range(1, 7)
    }
    assert "whitening.filters" in network.state_dict()


def test_the_scale_is_one_number_for_gray_and_three_for_color():
    colored = np.random.default_rng(0).integers(0, 256, (2500, 12, 12, 3), dtype=np.uint8)
    colored[..., 1] //= 4
    for images in (colored, colored[..., 0]):
        embedder = Embedder(SMALL, images.shape[1:], 2)
        embedder.learn_scale(images)
        axes = (0, 1, 2)
        np.testing.assert_allclose(embedder.mean.numpy(), images.mean(axis=axes), rtol=1e-6)
        np.testing.assert_allclose(embedder.scale.numpy(), images.std(axis=axes), rtol=1e-6)
        assert embedder.mean.shape == images.shape[3:]


# ---- What happens to training images


def moved_one_by_one(image: np.ndarray, down: int, right: int) -> np.ndarray:
    """The slow, obvious twin: NumPy's own mirroring, and a cut."""
    margins = [(2, 2), (2, 2), (0, 0)][: image.ndim]
    padded = np.pad(image, margins, mode="reflect")
    height, width = image.shape[:2]
    return padded[2 + down : 2 + down + height, 2 + right : 2 + right + width]


@pytest.mark.parametrize("shape", [(6, 7), (6, 7, 3)])
def test_moved_images_are_mirrored_at_their_border(shape: tuple[int, ...]):
    images = torch.arange(float(np.prod(shape))).reshape(shape).expand(400, *shape)
    is_flipped = torch.arange(400) % 2 == 1
    moved = shift_and_flip(images, is_flipped, 2, torch.Generator().manual_seed(0)).numpy()
    image = images[0].numpy()
    steps = [(down, right) for down in range(-2, 3) for right in range(-2, 3)]
    expected = {moved_one_by_one(image, *step).tobytes() for step in steps}
    assert {one.tobytes() for one in moved[::2]} == expected
    assert {np.ascontiguousarray(one[:, ::-1]).tobytes() for one in moved[1::2]} == expected


def test_no_shift_and_no_flip_change_nothing():
    images = torch.randn(5, 6, 6, 3)
    generator = torch.Generator().manual_seed(0)
    assert torch.equal(shift_and_flip(images, torch.zeros(5, dtype=torch.bool), 0, generator), images)


@pytest.mark.parametrize("shape", [(9, 12), (9, 12, 3)])
def test_a_square_is_blanked_somewhere_and_nothing_else_changes(shape: tuple[int, ...]):
    images = torch.rand(300, *shape) + 1
    cut = cut_out(images, 4, torch.Generator().manual_seed(0))
    is_blank = (cut == 0).reshape(300, 9, 12, -1).any(dim=3)
    rows, columns = is_blank.any(dim=2).sum(dim=1), is_blank.any(dim=1).sum(dim=1)
    assert torch.equal(is_blank.sum(dim=(1, 2)), rows * columns)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (2, 4, 2, 4)  # half of it, at a border
    assert is_blank.any(dim=0).all()
    assert torch.equal(cut[cut > 0], images[cut > 0])


def test_no_square_is_no_copy():
    images = torch.rand(5, 6, 6, 3)
    assert cut_out(images, 0, torch.Generator()) is images


def test_channels_come_first_without_a_copy():
    images = torch.randn(2, 5, 6, 3)
    viewed = channels_first(images)
    assert viewed.shape == (2, 3, 5, 6)
    assert viewed.data_ptr() == images.data_ptr()
    assert viewed.is_contiguous(memory_format=torch.channels_last)
