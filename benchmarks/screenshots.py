"""Photograph the pages for docs/images: python -m benchmarks.screenshots."""

from __future__ import annotations

from typing import Literal

from playwright.sync_api import Browser

from benchmarks.browser import ROOT, chromium, free_port, server, wait_for_health

VIEW = "/?noise=0.6&query=digits/test/30"
SHOTS: dict[str, tuple[str, int, Literal["light", "dark"]]] = {
    "neighbors-light": (VIEW, 1440, "light"),
    "neighbors-dark": (VIEW, 1440, "dark"),
    "neighbors-narrow": (VIEW, 390, "light"),
    "neighbors-table": ("/?checkpoint=iris&noise=0.4&query=iris/test/20", 1440, "light"),
}


def photograph(browser: Browser, address: str, name: str) -> None:
    view, width, scheme = SHOTS[name]
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address + view)
    page.locator(".st-key-board .card").first.wait_for(timeout=60_000)
    height = page.evaluate("document.querySelector('[data-testid=stMainBlockContainer]').offsetHeight")
    page.set_viewport_size({"width": width, "height": int(height)})
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.screenshot(path=ROOT / "docs" / "images" / f"{name}.png")
    context.close()


def main() -> None:
    port = free_port()
    with server(ROOT / "app.py", port), chromium() as browser:
        wait_for_health(port)
        for name in SHOTS:
            photograph(browser, f"http://127.0.0.1:{port}", name)


if __name__ == "__main__":
    main()
