"""Every image is where the atlas says it is, unchanged but for the ink."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from attnknn.errors import InputError
from attnknn.ui.atlas import pack_atlas


def tile(atlas, i):
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(atlas["url"].split(",")[1]))))
    height, width = pixels.shape[0] // atlas["rows"], pixels.shape[1] // atlas["columns"]
    row, column = divmod(i, atlas["columns"])
    return pixels[row * height : (row + 1) * height, column * width : (column + 1) * width]


@pytest.mark.parametrize("n", [1, 2, 5, 17, 65])
def test_gray_images_are_drawn_as_dark_ink_in_their_order(n):
    images = np.random.default_rng(0).integers(0, 256, (n, 8, 6), dtype=np.uint8)
    atlas = pack_atlas(images)
    for i in range(n):
        np.testing.assert_array_equal(tile(atlas, i), 255 - images[i])


def test_color_images_are_drawn_as_the_eye_sees_them_and_in_little_room():
    ramps = np.linspace(0, 200, 32)
    corners = np.random.default_rng(0).uniform(0, 50, (65, 1, 1, 3))
    images = (
        corners + np.stack([np.tile(ramps, (32, 1)), np.tile(ramps[:, None], 32), np.full((32, 32), 90)], -1)
    ).astype(np.uint8)
    atlas = pack_atlas(images)
    assert atlas["url"].startswith("data:image/webp;base64,")
    assert len(atlas["url"]) < images.size / 4
    for i in range(65):
        apart = np.abs(tile(atlas, i).astype(int) - images[i])
        assert apart.mean() < 6
        assert apart[2:-2, 2:-2].max() < 40  # colors blend a little with those of the tile beside it


def test_gray_photographs_keep_their_light():
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 4), dtype=np.uint8)
    np.testing.assert_array_equal(tile(pack_atlas(images, is_ink=False), 2), images[2])


def test_tiles_beyond_the_last_image_are_white():
    atlas = pack_atlas(np.full((3, 4, 4), 255, dtype=np.uint8))
    assert (atlas["columns"], atlas["rows"]) == (2, 2)
    assert (tile(atlas, 3) == 255).all()


def test_the_images_given_are_not_changed():
    images = np.full((2, 4, 4), 9, dtype=np.uint8)
    pack_atlas(images)
    assert (images == 9).all()


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((2, 8, 8)),
        np.zeros((8, 8), dtype=np.uint8),
        np.zeros((2, 8, 8, 4), dtype=np.uint8),
        np.zeros((0, 8, 8), dtype=np.uint8),
    ],
)
def test_other_shapes_and_types_are_refused_with_a_remedy(images):
    with pytest.raises(InputError, match="Scale the pixels"):
        pack_atlas(images)
