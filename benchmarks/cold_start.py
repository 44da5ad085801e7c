"""From `streamlit run app.py` to the first painted board: python -m benchmarks.cold_start.

Each start is a new server process and a new browser context; the browser itself is already open. An
empty Streamlit app in the same run is the yardstick. Budget: 3 s, and 1.6 × the empty app.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.browser import ROOT, chromium, free_port, server, wait_for_health

EMPTY = 'import streamlit as st\nst.write("ready")\n'
READY = {
    "empty": "text=ready",
    "explorer": ".st-key-board [data-part=card], .st-key-board .card",
}


def start_once(browser: Browser, script: Path, ready: str) -> float:
    """Seconds from starting the server to seeing `ready`, after the next painted frame."""
    port = free_port()
    begun = time.perf_counter()
    with server(script, port):
        wait_for_health(port)
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.goto(f"http://127.0.0.1:{port}/", wait_until="commit")
        page.locator(ready).first.wait_for(timeout=60_000)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        seconds = time.perf_counter() - begun
        page.context.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.py"
        empty.write_text(EMPTY, encoding="utf-8")
        scripts = {"empty": empty, "explorer": ROOT / "app.py"}
        seconds: dict[str, list[float]] = {name: [] for name in scripts}
        for _ in range(repeats):  # taking turns, so that a busy moment hits both
            for name, script in scripts.items():
                seconds[name].append(start_once(browser, script, READY[name]))
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    print(f"| cold start, median of {repeats} | seconds | all |\n|---|---|---|")
    for name, times in seconds.items():
        print(f"| {name} | {medians[name]:.2f} | {' '.join(f'{one:.2f}' for one in times)} |")
    print(f"\nexplorer / empty = {medians['explorer'] / medians['empty']:.2f}")


if __name__ == "__main__":
    main()
