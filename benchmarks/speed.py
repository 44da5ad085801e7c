"""Classifying, revoting, importing, memory: python -m benchmarks.speed.

Budgets: one query under 50 ms, 1,000 queries under 1 s (digits); all test items revoted when the noise
changes under 100 ms; `import attnknn` under 300 ms and without torch; the web process under 250 MB.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from attnknn.classifier import load
from attnknn.config import LabelNoise
from attnknn.data import load_dataset
from attnknn.evaluation.protocol import evaluate
from benchmarks.browser import ROOT, chromium, free_port, server, wait_for_health

REPEATS = 7


def milliseconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median over repeats, after one run to warm up."""
    work()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return 1000 * statistics.median(times)


def python_start(code: str) -> float:
    return milliseconds(lambda: subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT))


def web_process_memory() -> float:
    """Resident megabytes of the server after one visitor has seen the board."""
    port = free_port()
    with server(ROOT / "app.py", port) as process, chromium() as browser:
        wait_for_health(port)
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        page.locator(".st-key-board .card").first.wait_for(timeout=60_000)
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def main() -> None:
    classifier, dataset = load("digits"), load_dataset("digits")
    one, thousand = dataset.inputs[:1], dataset.inputs[:1000]
    seeds = iter(range(10_000))

    def revote() -> None:
        noise = LabelNoise("symmetric", 0.4, next(seeds))
        classifier.predict_items(noise=noise)

    def measure() -> None:
        evaluate(classifier, 16, [LabelNoise("symmetric", 0.4, next(seeds))])

    item = [str(classifier.queries.ids[0])]
    rows = {
        "one new input → Prediction": (milliseconds(lambda: classifier.predict(one, k=16)), "50 ms"),
        "1,000 new inputs → Prediction": (milliseconds(lambda: classifier.predict(thousand, k=16)), "1,000 ms"),
        "one test item → Prediction (the page)": (milliseconds(lambda: classifier.predict_items(item)), "–"),
        "another noise draw, 540 test items, all votes": (milliseconds(revote), "100 ms"),
        "the same, and every metric": (milliseconds(measure), "100 ms for three votes"),
        "`import attnknn`, beyond starting Python": (python_start("import attnknn") - python_start(""), "300 ms"),
        "`import attnknn.classifier`, beyond starting Python": (
            python_start("import attnknn.classifier") - python_start(""),
            "–",
        ),
    }
    print(f"| digits, median of {REPEATS} | ms | budget |\n|---|---|---|")
    for name, (median, budget) in rows.items():
        print(f"| {name} | {median:.1f} | {budget} |")
    print(f"\nThe web process with one visitor: {web_process_memory():.0f} MB (budget 250 MB before browsers).")
    assert np.isfinite([median for median, _ in rows.values()]).all()


if __name__ == "__main__":
    main()
