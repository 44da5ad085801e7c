"""A visitor's own picture, made to look like those of a bank; trusted in nothing before it is decoded."""

from __future__ import annotations

import struct
import warnings
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnknn.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG", "WEBP")
LARGEST_FILE = 5 * 2**20  # bytes
MOST_PIXELS = 25_000_000
EXPECTED = f"A picture must be a {', '.join(FORMATS[:-1])} or {FORMATS[-1]} file of at most 5 MB and 25 million pixels."
SHORT_SIDE = 512  # pixels; more than any embedder sees
STRIP = 64  # rows of what is left
ORIENTATION = 0x0112  # the tag of EXIF
REMEDY = "Choose another, or save it again in one of these formats."


@dataclass(frozen=True)
class Fitted:
    """A picture as the embedder will see it.

    Attributes:
        values: Bytes of shape (H, W) or (H, W, 3), in the range of the bank's pictures.
        is_inverted: Whether light and dark were exchanged, as the bank's pictures have the other background.
    """

    values: NDArray[np.uint8]
    is_inverted: bool


def read_picture(content: bytes) -> Image.Image:
    """Decode a picture, upright, without transparency and not much larger than any embedder needs it.

    Its sizes are checked before it is decoded, and it is made smaller before it is copied: 25 million pixels
    take 100 MB once, and not once per step.

    Raises:
        InputError: It is too large, of another format, or broken.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    if len(content) > LARGEST_FILE:
        raise InputError(EXPECTED, f"It has {len(content):,} bytes.", REMEDY)
    broken = (UnidentifiedImageError, OSError, SyntaxError, ValueError, struct.error, Image.DecompressionBombError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # a smaller bound stands below
            opened = Image.open(BytesIO(content), formats=FORMATS)
        if opened.width * opened.height > MOST_PIXELS:
            raise InputError(EXPECTED, f"It has {opened.width:,} × {opened.height:,} pixels.", REMEDY)
        opened.draft("RGB", (SHORT_SIDE, SHORT_SIDE))  # JPEG can be decoded at an eighth of its size
        shrunken = _shrink(opened)
        shrunken.getexif()[ORIENTATION] = opened.getexif().get(ORIENTATION, 1)
        return ImageOps.exif_transpose(shrunken)
    except broken as error:
        raise InputError(EXPECTED, "It could not be read.", REMEDY) from error


def _shrink(picture: Image.Image) -> Image.Image:
    """Average blocks of pixels, strip by strip, so that the shorter side keeps at least SHORT_SIDE; RGB on white."""
    from PIL import Image

    width, height = picture.size
    block = max(min(width, height) // SHORT_SIDE, 1)
    shrunken = Image.new("RGB", (-(-width // block), -(-height // block)))
    for top in range(0, height, STRIP * block):
        strip = _on_paper(picture.crop((0, top, width, min(top + STRIP * block, height))))
        shrunken.paste(strip.reduce(block), (0, top // block))
    return shrunken


def _on_paper(picture: Image.Image) -> Image.Image:
    """Lay a picture of any mode on white; Pillow would cut the 16 bits of gray off at 255."""
    from PIL import Image

    if picture.mode.startswith("I"):
        return Image.fromarray((np.asarray(picture) // 256).astype(np.uint8)).convert("RGB")
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    paper = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(paper, picture.convert("RGBA")).convert("RGB")


def fit_picture(picture: Image.Image, like: NDArray[Any]) -> Fitted:
    """Crop a picture to the shape of a bank's, shrink it, and give it their range of brightness.

    Gray pictures also get their background, light or dark, and the full contrast: what is drawn on white paper
    finds its neighbors among what is light on black.

    Args:
        picture: In color, of any size.
        like: (n, H, W) gray or (n, H, W, 3) color pictures of the bank.
    """
    from PIL import Image, ImageOps

    height, width = like.shape[1:3]
    is_gray, brightest = like.ndim == 3, float(like.max()) or 1.0
    shrunken = ImageOps.fit(picture, (width, height), Image.Resampling.LANCZOS)
    values = np.asarray(shrunken.convert("L" if is_gray else "RGB"), np.float64) / 255
    is_inverted = is_gray and (_border(values[None]) > 0.5) != (_border(like) / brightest > 0.5)
    if is_inverted:
        values = 1 - values
    if is_gray and np.ptp(values) > 0:
        values = (values - values.min()) / np.ptp(values)
    return Fitted((brightest * values).round().astype(np.uint8), bool(is_inverted))


def _border(images: NDArray[Any]) -> float:
    """Return the mean brightness of the outermost pixels of gray pictures."""
    inner = np.zeros(images.shape[1:], bool)
    inner[1:-1, 1:-1] = True
    return float(images[:, ~inner].mean())
