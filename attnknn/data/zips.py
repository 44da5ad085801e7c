"""A zip of class folders: `train/<class>/<image>` and `test/<class>/<image>`, JPEG or PNG.

Nothing is extracted to the disk. Every name and size is checked before anything is decoded, and the
format and size of each image before its pixels are.

NOTE: threads do not help. Images this small spend their time in Python, which holds its lock; two
threads were as fast as one, and four slower.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np

from attnknn.data.kept import Decoded
from attnknn.errors import DamagedData

MEMBER = re.compile(r"(train|test)/([^/\\]+)/([^/\\]+\.(?:jpg|jpeg|png))")
MOST_MEMBERS = 200_000
MOST_BYTES = 1 << 20  # of one image

Place = tuple[bool, int, str]
"""Where an image belongs: whether it is for testing, its class, its file name."""


def read_class_folders(path: Path, class_names: Sequence[str], size: tuple[int, int]) -> Decoded:
    """Decode a zip of class folders, in the order of (train before test, class, file name).

    Args:
        path: The zip.
        class_names: C names of folders; a zip may hold no others.
        size: Width and height that each image must have, in pixels.

    Returns:
        The images as uint8 of shape (n, height, width, 3), with their labels.

    Raises:
        DamagedData: If anything in the zip is not what it should be.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(_check_members(archive, list(class_names)), key=lambda member: member[0])
            inputs = np.empty((len(members), size[1], size[0], 3), dtype=np.uint8)
            for row, (_, info) in enumerate(members):
                inputs[row] = _decode(archive, info, size)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DamagedData(str(path), "The zip must be whole, and not encrypted.", f"It is not: {error}.") from error
    labels = np.array([label for (_, label, _), _ in members], dtype=np.int64)
    n_train = sum(not is_test for (is_test, _, _), _ in members)
    return Decoded(inputs, labels, n_train, tuple(class_names))


def _check_members(archive: zipfile.ZipFile, class_names: list[str]) -> Iterator[tuple[Place, zipfile.ZipInfo]]:
    infos = [info for info in archive.infolist() if not info.is_dir()]
    if not 0 < len(infos) <= MOST_MEMBERS:
        raise _damaged(archive, f"The zip must hold 1 to {MOST_MEMBERS} images.", f"It holds {len(infos)} files.")
    if len({info.filename for info in infos}) < len(infos):
        raise _damaged(archive, "Every name in the zip must be there once.", "Some are there twice.")
    for info in infos:
        parts = MEMBER.fullmatch(info.filename)
        if parts is None or parts[2] not in class_names:
            expected = f"Names in the zip must read like train/{class_names[0]}/0000.jpg, with a known class."
            raise _damaged(archive, expected, f"One reads {info.filename!r}.")
        if info.file_size > MOST_BYTES:
            expected = f"An image must take at most {MOST_BYTES} bytes."
            raise _damaged(archive, expected, f"{info.filename!r} takes {info.file_size}.")
        yield (parts[1] == "test", class_names.index(parts[2]), parts[3]), info


def _decode(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: tuple[int, int]) -> np.ndarray:
    from PIL import Image

    content = archive.read(info)
    try:
        with Image.open(BytesIO(content), formats=("JPEG", "PNG")) as image:
            found = image.size
            pixels = np.asarray(image.convert("RGB")) if found == size else None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _damaged(archive, "Every image must be a whole JPEG or PNG.", f"{info.filename!r} is not.") from error
    if pixels is None:
        expected = f"Every image must have {size[0]} × {size[1]} pixels."
        raise _damaged(archive, expected, f"{info.filename!r} has {found[0]} × {found[1]}.")
    return pixels


def _damaged(archive: zipfile.ZipFile, expected: str, received: str) -> DamagedData:
    return DamagedData(str(archive.filename), expected, received)
