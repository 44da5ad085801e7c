"""From a visitor's own picture to the board that shows it: python -m benchmarks.encode.

A real server, a real browser and the worker that the server starts. Each picture is another one, given to the
uploader as a visitor does; the clock stops at the frame after its id is on the board. Of that, the table of jobs
says how long the worker had it: submit → done. Budgets, p95 of all but the first: repainted within 300 ms as
another query is, embedded within 300 ms. The first has to start the worker and to import the embedder.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Page, expect

from attnknn.jobs import JobSettings, JobStore
from benchmarks.browser import ROOT, chromium, free_port, server, wait_for_health
from benchmarks.busy import SHOWS_ANOTHER, milliseconds
from benchmarks.jobs import p95

PATIENCE = 120_000  # milliseconds
OPENING = 700  # milliseconds that the popover takes to unfold
BUDGET = 300


def draw_seven(folder: Path, number: int) -> Path:
    """Draw a seven with a pen, each a little slanted in its own way."""
    picture, path = Image.new("RGB", (400, 400), "white"), folder / f"{number}.png"
    ImageDraw.Draw(picture).line([(110, 80), (290, 80), (170 + 3 * number, 330)], "black", 40)
    picture.save(path)
    return path


def another_picture(page: Page, path: Path) -> float:
    """Give a picture to the uploader; its id comes onto the board."""
    shown = page.locator(".query .id")
    about = [shown.element_handle(), shown.inner_text()]
    page.get_by_role("button", name="your own").click()
    page.wait_for_timeout(OPENING)
    choose = page.locator("input[type=file]").set_input_files
    return milliseconds(page, lambda: choose(path), SHOWS_ANOTHER, about)


def end_worker(store: JobStore) -> None:
    """End the worker that the server has started."""
    import psutil
    from sqlalchemy import select

    from attnknn.jobs.table import workers

    with store.engine.connect() as connection:
        for pid in connection.execute(select(workers.c.pid)).scalars():
            worker = psutil.Process(pid)
            worker.terminate()
            worker.wait(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats, port = parser.parse_args().repeats, free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= {"ATTNKNN_JOBS": str(folder / "jobs"), "ATTNKNN_CHECKPOINTS": str(ROOT / "checkpoints")}
        store = JobStore(JobSettings.from_environment())
        with server(ROOT / "app.py", port), chromium() as browser:
            wait_for_health(port)
            page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
            page.goto(f"http://127.0.0.1:{port}/")
            expect(page.locator(".board .card").first).to_be_visible(timeout=PATIENCE)
            painted = [another_picture(page, draw_seven(folder, number)) for number in range(repeats + 1)]
            jobs = store.all()[::-1]  # oldest first
        end_worker(store)
    embedded = [1000 * ((job.ended or job.created) - job.created) for job in jobs]
    print(f"| ms, digits | first | median of {repeats} | p95 | slowest | budget of p95 |\n|---|---|---|---|---|---|")
    for what, (first, *others) in {"picture → board repainted": painted, "submit → done": embedded}.items():
        cells = [first, statistics.median(others), p95(others), max(others)]
        print("| " + " | ".join([what, *(f"{one:.0f}" for one in cells), str(BUDGET)]) + " |")


if __name__ == "__main__":
    main()
