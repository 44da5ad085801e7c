"""A visitor's picture: checked before it is decoded, and made to look like the bank's."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageOps

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
    st.sampled_from(MODES),
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


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", uploads.FORMATS)
def test_every_orientation_is_undone_as_pillow_does_it(kind, orientation):
    values = np.zeros((1040, 1560, 3), np.uint8)
    values[:200, :200], values[900:, 1300:] = 255, (255, 0, 0)
    exif = Image.Exif()
    exif[uploads.ORIENTATION] = orientation
    content = encode(Image.fromarray(values), kind, exif=exif)
    expected = ImageOps.exif_transpose(Image.open(BytesIO(content))).convert("RGB")
    read = read_picture(content)
    assert read.size == (expected.width // 2, expected.height // 2), "what no embedder needs is left out"
    difference = np.asarray(expected.reduce(2), int) - np.asarray(read)
    assert np.abs(difference).mean() < 1


@pytest.mark.parametrize(("width", "height"), [(1, 1), (511, 9000), (1023, 1025), (5000, 1024), (3001, 2003)])
def test_a_large_picture_is_made_smaller_without_a_seam(width, height):
    ramp = np.broadcast_to(np.linspace(0, 255, height)[:, None], (height, width)).astype(np.uint8)
    read = read_picture(encode(Image.fromarray(ramp), compress_level=1))
    block = max(min(width, height) // uploads.SHORT_SIDE, 1)
    assert read.size == (-(-width // block), -(-height // block))
    assert min(read.size) >= min(width, height, uploads.SHORT_SIDE)
    expected = np.asarray(Image.fromarray(ramp).reduce(block), int)
    assert np.abs(np.asarray(read)[:, :, 1] - expected).max() <= 1


def test_sixteen_bits_of_gray_are_not_cut_off():
    """Most values lie above 255, where a plain conversion sees white only."""
    eight = draw_seven("#404040", "#c0c0c0").convert("L")
    sixteen = Image.fromarray(np.asarray(eight).astype(np.uint16) * 257)
    assert sixteen.mode == "I;16"
    np.testing.assert_array_equal(np.asarray(read_picture(encode(sixteen))), np.asarray(eight.convert("RGB")))


PEAK = """
import sys
from pathlib import Path

from attnknn.data.uploads import read_picture

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

content, before = Path(sys.argv[1]).read_bytes(), peak()
read_picture(content)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says how much memory a process took at most")
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_a_picture_of_25_million_pixels_is_held_in_memory_once(tmp_path, mode):
    (tmp_path / "large.png").write_bytes(encode(Image.new(mode, (5000, 5000)), compress_level=1))
    command = [sys.executable, "-c", PEAK, str(tmp_path / "large.png")]
    megabytes = float(subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout)
    assert megabytes < 180, "decoded it takes 100 MB; every copy takes as much again"


def test_a_large_bank_is_not_copied():
    bank = np.zeros((20_000, 28, 28), np.uint8)
    bank[:, 10:18, 10:18] = 255
    tracemalloc.start()
    fitted = fit_picture(draw_seven("black", "white"), bank)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert fitted.is_inverted
    assert peak < bank.nbytes / 2


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
