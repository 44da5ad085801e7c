"""The colors of classes: the same class has the same color on every page.

The ten colors were searched for so that every pair stays apart for people with full color vision
and for protanopes, deuteranopes and tritanopes (simulated after Machado et al. 2009): the closest
pair is 10 units of 100 × Euclidean distance in Oklab apart, where Tol's muted and Petroff's ten
reach 5 and 6. `tests/ui/test_palette.py` measures it again. No color is also a vote's color.

Beyond ten classes the colors repeat; a drawing adds a pattern to a repeated color, so that color
alone never has to tell two classes apart.
"""

from __future__ import annotations

CLASS_COLORS: tuple[str, ...] = (
    "#4F6CD2",
    "#E89E1D",
    "#1EA58B",
    "#A53102",
    "#B5B3E1",
    "#A54896",
    "#5CCB8C",
    "#C97029",
    "#436157",
    "#AA85E2",
)


def class_colors(n_classes: int) -> list[str]:
    """Return one color per class, repeating after ten.

    Args:
        n_classes: C, how many classes there are.

    Returns:
        C colors as `#RRGGBB`.

    Example:
        >>> class_colors(2)
        ['#4F6CD2', '#E89E1D']
        >>> class_colors(11)[10] == class_colors(11)[0]
        True
    """
    return [CLASS_COLORS[c % len(CLASS_COLORS)] for c in range(n_classes)]


def text_on(color: str) -> str:
    """Return the text color, black or white, that is easier to read on a color.

    One of the two always reaches a contrast of 4.5 : 1.

    Args:
        color: Background as `#RRGGBB`.

    Returns:
        `#000000` or `#FFFFFF`.

    Example:
        >>> text_on("#E89E1D"), text_on("#436157")
        ('#000000', '#FFFFFF')

    References:
        WCAG 2.2, relative luminance and contrast, https://www.w3.org/TR/WCAG22/#contrast-minimum
    """
    return max("#000000", "#FFFFFF", key=lambda text: contrast(text, color))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colors, from 1 (the same) to 21 (black on white).

    (L₁ + 0.05) / (L₂ + 0.05), L relative luminance, L₁ the lighter.

    Example:
        >>> round(contrast("#000000", "#FFFFFF"))
        21
    """
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
