"""A visitor's picture: checked before it is decoded, and made to look like the bank's."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from attnknn.data import load_dataset, uploads
from attnknn.data.uploads import LARGEST_FILE, fit_picture, read_picture
from attnknn.errors import InputError

DIGITS = load_dataset("digits").inputs[:200]
COLORED = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), np.uint8)

MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16", "CMYK")


def encode(picture: Image.Image, kind: str = "PNG", **options) -> bytes:
    buffer = BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 90),
    st.integers(1, 90),
    st.sampled_from(("1", "L", "LA", "P", "RGB", "RGBA", "I;16", "CMYK")),
    st.data(),
)
def test_any_picture_gets_the_shape_and_range_of_the_bank(width, height, mode, data):
    kind = "JPEG" if mode == "CMYK" else "PNG"
    picture = Image.new(mode, (width, height), data.draw(st.integers(0, 255)) if len(mode) == 1 else None)
    read = read_picture(encode(picture, kind))
    assert read.size == (width, height)
    for like in (DIGITS, COLORED):
        values = fit_picture(read, like).values
        assert values.shape == like.shape[1:]
        assert values.dtype == np.uint8
        assert values.max() <= like.max()


def draw_seven(ink: str, paper: str) -> Image.Image:
    picture = Image.new("RGB", (200, 200), paper)
    ImageDraw.Draw(picture).line([(50, 40), (150, 40), (90, 170)], ink, 22)
    return picture


def test_ink_on_paper_becomes_light_on_dark_as_the_digits_are():
    dark = fit_picture(draw_seven("black", "white"), DIGITS)
    light = fit_picture(draw_seven("white", "black"), DIGITS)
    assert (dark.is_inverted, light.is_inverted) == (True, False)
    assert np.abs(dark.values.astype(int) - light.values).max() <= 1
    assert (dark.values.min(), dark.values.max()) == (0, 16)
    assert not fit_picture(draw_seven("black", "white"), COLORED).is_inverted, "colors stay as they are"


def test_what_is_transparent_is_paper():
    picture = Image.new("RGBA", (10, 10), (0, 0, 0, 0))
    assert np.asarray(read_picture(encode(picture))).min() == 255


def test_a_photograph_is_turned_upright():
    picture = Image.new("RGB", (20, 10), "white")
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    assert read_picture(encode(picture, "JPEG", exif=exif)).size == (10, 20)


@pytest.mark.parametrize(
    ("content", "came"),
    [
        (b"", "could not be read"),
        (b"GIF89a", "could not be read"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "could not be read"),
        (b"\0" * (LARGEST_FILE + 1), "5,242,881 bytes"),
        (encode(Image.new("1", (6000, 5000))), "6,000 × 5,000 pixels"),
        (encode(Image.new("L", (200, 200)), "TIFF"), "could not be read"),
        (encode(draw_seven("black", "white"))[:-60], "could not be read"),
    ],
    ids=["empty", "gif", "broken", "large", "bomb", "tiff", "cut short"],
)
def test_what_is_no_picture_is_a_sentence(content, came):
    with pytest.raises(InputError, match="PNG, JPEG or WEBP") as caught:
        read_picture(content)
    assert came in str(caught.value)


def test_a_bomb_is_refused_before_it_is_decoded(monkeypatch):
    """A small file that would become 400 million pixels."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    bomb = encode(Image.new("1", (20_000, 20_000)))
    monkeypatch.undo()
    assert len(bomb) < uploads.LARGEST_FILE
    with pytest.raises(InputError):
        read_picture(bomb)
