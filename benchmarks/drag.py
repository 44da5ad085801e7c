"""How fast is the board while a slider is dragged, and is the server left alone? python -m benchmarks.drag.

A real server, a real browser, a real mouse: each slider of the board is dragged over its whole range and back by
two thirds. A repaint is measured in the browser, from the frame's first input event to the end of the frame that
shows what it brings. Budget: 16 ms median, 50 ms p95, and no message to the server until the button is let go. The
board shows digits with k = 64 and 8 heads (and, for comparison, k = 16 and the 2 heads that are shipped). The rival
is `st.slider` above a line of text: it tells the server, on release only, and is measured from there.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, WebSocket, expect

from benchmarks.browser import chromium, free_port, server, wait_for_health
from benchmarks.busy import BARE, another_k
from benchmarks.jobs import p95

SLIDERS = ("k", "temperature", "noise")
BOARD = """
from dataclasses import replace
import numpy as np
import streamlit as st
from attnknn import load
from attnknn.models.attention import Attention
from attnknn.ui import live, present, state
from attnknn.ui.board import draw_board

H, K = {heads}, {k}

def widen(attention):
    some = np.resize(np.arange(len(attention.heads)), H)
    arrays = {{name: array if name == "metric" else array[some] for name, array in attention.to_arrays().items()}}
    return replace(attention, heads=tuple(f"head {{h}}" for h in range(H)), **arrays)

st.set_page_config(layout="wide")
trained = load("digits")
fitted = trained.fitted
trained.fitted = replace(
    fitted, attention=widen(fitted.attention), attention_averages=widen(fitted.attention_averages)
)
walk, found = live.walk(trained, 0), trained.ask([str(trained.queries.ids[25])])
known = present.Known("0", {{f"head {{h}}": "Listens." for h in range(H)}}, np.zeros((10, 8, 8)), 16, [])
data = present.present(trained, found, walk, state.Setting(k=K), known, {{"ids": [], "finders": [], "words": ""}})
draw_board(data, "board", lambda: None)
"""
WATCH = """() => {
  window.repaints = []
  let begun = 0
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = () => { window.repaints.push(performance.now() - begun); begun = 0 }
  addEventListener("input", () => {
    if (begun) return
    begun = performance.now()
    requestAnimationFrame(() => port2.postMessage(0))
  }, { capture: true })
}"""


def drag(page: Page, name: str, end: int) -> list[float]:
    """Drag a slider over its whole range and back to a stop of 90; the milliseconds of every repaint."""
    box = page.locator(f'.controls input[name="{name}"]').bounding_box()
    assert box
    first, last, middle = box["x"] + 4, box["x"] + box["width"] - 4, box["y"] + box["height"] / 2
    stops = 90
    page.evaluate("() => { window.repaints.length = 0 }")
    page.mouse.move(first, middle)
    page.mouse.down()
    for step in (*range(stops + 1), *range(stops, end, -1)):
        page.mouse.move(first + (last - first) * step / stops, middle)
        page.wait_for_timeout(16)
    page.mouse.up()
    return list(page.evaluate("() => window.repaints"))


def measure(browser: Browser, folder: Path, heads: int, k: int) -> None:
    script, port = folder / f"board_{heads}_{k}.py", free_port()
    script.write_text(BOARD.format(heads=heads, k=k), encoding="utf-8")
    sent: list[float] = []

    def count(socket: WebSocket) -> None:
        socket.on("framesent", lambda _: sent.append(1))

    with server(script, port):
        wait_for_health(port)
        page = browser.new_context(viewport={"width": 1440, "height": 1400}).new_page()
        page.on("websocket", count)
        page.goto(f"http://127.0.0.1:{port}/")
        expect(page.locator(".board .card")).to_have_count(k, timeout=60_000)
        page.wait_for_timeout(1500)
        page.evaluate(WATCH)
        for name in SLIDERS:
            drag(page, name, 45)  # to warm up, and to end elsewhere: what is as it was is not told
            page.wait_for_timeout(1000)
            sent.clear()
            times = drag(page, name, 30)
            until_release = len(sent)
            page.wait_for_timeout(1000)
            print(
                f"| {heads} heads, k ≤ {k} | {name} | {statistics.median(times):.1f} | {p95(times):.1f} | {len(times)} "
                f"| {until_release} | {len(sent)} |",
                flush=True,
            )
        page.context.close()


def measure_rival(browser: Browser, folder: Path, repeats: int) -> None:
    script, port = folder / "bare.py", free_port()
    script.write_text(BARE, encoding="utf-8")
    with server(script, port):
        wait_for_health(port)
        page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        expect(page.locator(".board .card").first).to_be_visible(timeout=60_000)
        page.wait_for_timeout(1500)
        times = [another_k(page, number) for number in range(repeats)]
        print(
            f"| st.slider over a line of text | k | {statistics.median(times):.1f} | {p95(times):.1f} | {repeats} | | |"
        )
        page.context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    print("| board | slider | median ms | p95 ms | repaints | messages until release | messages in all |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        measure(browser, Path(folder), heads=8, k=64)
        measure(browser, Path(folder), heads=2, k=16)
        measure_rival(browser, Path(folder), repeats)


if __name__ == "__main__":
    main()
