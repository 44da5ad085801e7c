"""Classes can be told apart, and read, by everybody."""

import itertools

import numpy as np
import pytest

from attnknn.ui.palette import CLASS_COLORS, class_colors, contrast, text_on

PANELS = {"light": "#FFFFFF", "dark": "#171B24"}
VOTES = ("#888888", "#2196F3", "#E91E63")

# Machado, Oliveira, Fernandes (2009), severity 1.0, on linear RGB.
SIGHT = {
    "full color": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(color):
    channels = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    lms = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.array(lab) @ np.cbrt(np.clip(np.array(lms) @ rgb, 0, None))


@pytest.mark.parametrize("sight", SIGHT)
def test_every_pair_of_classes_stays_apart(sight):
    seen = [oklab(np.clip(np.array(SIGHT[sight]) @ linear(color), 0, 1)) for color in CLASS_COLORS]
    nearest = min(100 * np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
    assert nearest >= 10


def test_no_class_looks_like_a_vote():
    for color, vote in itertools.product(CLASS_COLORS, VOTES):
        assert 100 * np.linalg.norm(oklab(linear(color)) - oklab(linear(vote))) >= 7


def test_text_on_every_class_can_be_read():
    assert min(contrast(color, text_on(color)) for color in CLASS_COLORS) >= 4.5


@pytest.mark.parametrize("panel", PANELS.values())
def test_every_class_shows_on_both_grounds(panel):
    assert min(contrast(color, panel) for color in CLASS_COLORS) >= 1.9


def test_a_class_has_one_color_however_many_there_are():
    assert class_colors(3) == class_colors(25)[:3]
    assert len(class_colors(25)) == 25
