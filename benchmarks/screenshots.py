"""Photograph and film the pages for docs/images: python -m benchmarks.screenshots."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, Page

from benchmarks.browser import ROOT, chromium, free_port, server, wait_for_health

VIEW = "/?noise=0.6&query=digits/test/30"
SHOTS: dict[str, tuple[str, int, Literal["light", "dark"]]] = {
    "neighbors-light": (VIEW, 1440, "light"),
    "neighbors-dark": (VIEW, 1440, "dark"),
    "neighbors-narrow": (VIEW, 390, "light"),
    "neighbors-table": ("/?checkpoint=iris&noise=0.4&query=iris/test/20", 1440, "light"),
}

FILMS = {
    "noise-saved": "/?query=digits/test/4",
    "noise-sunk": "/?query=digits/test/482&k=9&seed=2",
}
"""Noise slides from 0 to 60 %: attention keeps its answer where the others lose theirs, and the other way round."""

LAST, WIDTH = 60, 900  # percent, pixels
FRAME, TURN = 1700, 5000
"""Milliseconds that a picture stays: to be read, and longer where an answer has turned; two minutes in all."""


def settle(page: Page) -> None:
    page.locator(".st-key-board .card").first.wait_for(timeout=60_000)
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def film(browser: Browser, address: str, name: str) -> None:
    """Press the arrow key of the noise slider, and take a picture before each press and after the last."""
    context = browser.new_context(viewport={"width": 1440, "height": 1500})
    page = context.new_page()
    page.goto(address + FILMS[name])
    settle(page)
    page.wait_for_timeout(1000)
    board, slider = page.locator(".board"), page.locator(".controls [name=noise]")
    frames: list[Image.Image] = []
    answers: list[list[str]] = []
    for _ in range(LAST + 1):
        settle(page)
        answers.append(board.locator(".race .chip").all_inner_texts())
        picture = Image.open(io.BytesIO(board.screenshot())).convert("RGB")
        height = round(WIDTH * picture.height / picture.width)
        frames.append(picture.resize((WIDTH, height), Image.Resampling.LANCZOS))
        slider.press("ArrowRight")
    path = ROOT / "docs" / "images" / f"{name}.webp"
    times = [FRAME if now == before else TURN for before, now in pairwise(answers)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=[TURN, *times], loop=0, quality=60, method=4)
    context.close()


def photograph(browser: Browser, address: str, name: str) -> None:
    view, width, scheme = SHOTS[name]
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address + view)
    settle(page)
    height = page.evaluate("document.querySelector('[data-testid=stMainBlockContainer]').offsetHeight")
    page.set_viewport_size({"width": width, "height": int(height)})
    settle(page)
    page.screenshot(path=ROOT / "docs" / "images" / f"{name}.png")
    context.close()


def main() -> None:
    port = free_port()
    with server(ROOT / "app.py", port), chromium() as browser:
        wait_for_health(port)
        for name in SHOTS:
            photograph(browser, f"http://127.0.0.1:{port}", name)
        for name in FILMS:
            film(browser, f"http://127.0.0.1:{port}", name)


if __name__ == "__main__":
    main()
