"""Does the page keep its budgets while a run trains? python -m benchmarks.busy.

A real server and a real browser; the same interactions first with an idle worker, then while a digits run
trains in the background. Budgets: another query repainted within 300 ms, a page switch within 500 ms (p95 unless
said; a ratio near 1 says that training costs the page nothing). The yardstick is a bare Streamlit app in the same
browser: the same controls over a line of text, with nothing computed. What it takes, no page of ours can undercut,
and by how much training slows it is the machine's price, not the page's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from attnknn.config import TrainingConfig
from attnknn.jobs import JobSettings, JobStore
from attnknn.work import submit
from benchmarks.browser import ROOT, chromium, free_port, server, wait_for_health
from benchmarks.jobs import p95, seconds_until, stop_worker

ENDLESS = TrainingConfig("digits", seed=9)
ENDLESS = replace(ENDLESS, embedder=replace(ENDLESS.embedder, epochs=500))
BUDGETS = {"another query → repainted": 300, "another k → repainted": None, "page switch": 500}
BARE = """
import streamlit as st

def neighbors():
    shown = st.session_state.get("shown", 0) + st.button("Random", key="find_random")
    st.session_state.shown = shown
    k = st.slider("k", 1, 50, 16, key="k")
    cards = '<b class="card">1</b>' * k
    st.markdown(f'<p class="query"><b class="id">{shown}</b></p>', unsafe_allow_html=True)
    st.markdown(f'<p class="board"><span class="cards">{cards}</span></p>', unsafe_allow_html=True)

def training():
    st.button("Start", key="start")

pages = [st.Page(neighbors, title="Neighbors"), st.Page(training, title="Training")]
st.navigation(pages, position="top").run()
"""
START = """([condition, about]) => {
  const holds = eval(condition)
  window.repainted = new Promise((done) => {
    let begun
    const begin = (event) => { begun = event.timeStamp }
    for (const kind of ["click", "keydown", "change"]) addEventListener(kind, begin, { capture: true, once: true })
    const look = () => {
      if (begun === undefined || !holds(about)) return requestAnimationFrame(look)
      requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)))
    }
    look()
  })
}"""
SHOWS_ANOTHER = "([element, old]) => element.textContent !== old"
HAS_CARDS = "([element, n]) => element.querySelectorAll('.card').length === n"
HOLDS = """(sign) => {
  const below = (root) => [...root.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean)
  const look = (root) => root.querySelector(sign) || below(root).some(look)
  return Boolean(look(document))
}"""


def milliseconds(page: Page, act: Callable[[], None], condition: str, about: object) -> float:
    """From the browser's own event (a click, a key, a chosen file) to the end of the frame that shows what it brings.

    The page looks at every frame by itself: Playwright's way to an event, and its way back, cost a visitor nothing.
    """
    page.evaluate(START, [condition, about])
    act()
    return float(page.evaluate("() => window.repainted"))


def another_query(page: Page, number: int) -> float:
    """Press a finder; the id on the board changes."""
    shown = page.locator(".query .id")
    button = page.locator(".finders button").first.or_(page.locator(".st-key-find_random button"))
    return milliseconds(page, button.click, SHOWS_ANOTHER, [shown.element_handle(), shown.inner_text()])


def another_k(page: Page, number: int) -> float:
    """Move the slider by a key; one card more, or one less."""
    ours, bare = page.locator(".controls [name=k]"), page.locator(".st-key-k").get_by_role("slider")
    slider, cards = ours.or_(bare), page.locator(".board .cards")
    before = page.locator(".board .card").count()
    key, after = ("ArrowRight", before + 1) if number % 2 else ("ArrowLeft", before - 1)
    return milliseconds(page, lambda: slider.press(key), HAS_CARDS, [cards.element_handle(), after])


def page_switch(page: Page, number: int) -> float:
    """Follow a link of the top navigation, and see the page's own content; curves of a run follow a moment later."""
    name, sign = (("Training", ".st-key-start button"), ("Neighbors", ".board .card"))[number % 2]
    return milliseconds(page, page.get_by_role("link", name=name, exact=True).click, HOLDS, sign)


def measure(browser: Browser, port: int, repeats: int) -> dict[str, list[float]]:
    """Each interaction `repeats` times, after two to warm up."""
    page, address = (
        browser.new_context(viewport={"width": 1440, "height": 1000}).new_page(),
        f"http://127.0.0.1:{port}/",
    )
    times: dict[str, list[float]] = {}
    for name, act in zip(BUDGETS, (another_query, another_k, page_switch), strict=True):
        page.goto(address)
        expect(page.locator(".board .card").first).to_be_visible(timeout=60_000)
        page.wait_for_timeout(1500)
        times[name] = [act(page, number) for number in range(repeats + 2)][2:]
    page.context.close()
    return times


def measure_bare(browser: Browser, folder: Path, repeats: int) -> dict[str, list[float]]:
    """The same interactions with a bare Streamlit app."""
    script, port = folder / "bare.py", free_port()
    script.write_text(BARE, encoding="utf-8")
    with server(script, port):
        wait_for_health(port)
        return measure(browser, port, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"ATTNKNN_JOBS": folder, "ATTNKNN_CHECKPOINTS": str(ROOT / "checkpoints")}
        store = JobStore(JobSettings.from_environment())
        with chromium() as browser:
            bare = measure_bare(browser, Path(folder), repeats)
            with server(ROOT / "app.py", port):
                wait_for_health(port)
                idle = measure(browser, port, repeats)
                job = submit.submit_training(store, ENDLESS, "endless")
                seconds_until(lambda: len(store.events(job.id, kind="numbers")) > 1)
                busy = measure(browser, port, repeats)
                bare_busy = measure_bare(browser, Path(folder), repeats)
                assert store.get(job.id).state == "running", "it trained all the while"
                store.wish(job.id, "cancel")
                seconds_until(lambda: store.get(job.id).state == "cancelled")
        stop_worker()
    columns = {"bare app": bare, "bare app, training": bare_busy, "idle": idle, "training": busy}
    heads = " | ".join(f"{name}: median | p95" for name in columns)
    print(f"| ms, of {repeats} | {heads} | training / idle | the same, bare | budget of p95 |")
    print("|---" * 12 + "|")
    for name, budget in BUDGETS.items():
        medians = {column: statistics.median(times[name]) for column, times in columns.items()}
        cells = [f"{medians[column]:.0f} | {p95(times[name]):.0f}" for column, times in columns.items()]
        cells.append(f"{medians['training'] / medians['idle']:.2f}")
        cells.append(f"{medians['bare app, training'] / medians['bare app']:.2f}")
        print("| " + " | ".join([name, *cells, str(budget or "–")]) + " |")


if __name__ == "__main__":
    main()
