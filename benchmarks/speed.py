"""Classifying, revoting, importing, memory: python -m benchmarks.speed.

Budgets: one query under 50 ms, 1,000 queries under 1 s (digits); all test items revoted when the noise
changes under 100 ms; `import attnknn` under 300 ms and without torch; the web process under 250 MB.
The rival is scikit-learn's KNeighborsClassifier on the pixels: one vote, and no embedder to run.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sklearn.neighbors import KNeighborsClassifier

from attnknn.classifier import load
from attnknn.config import LabelNoise
from attnknn.data import load_dataset
from attnknn.evaluation.protocol import evaluate
from benchmarks.browser import ROOT, chromium, free_port, server, wait_for_health
from benchmarks.clock import milliseconds

REPEATS, K = 7, 16


def median(work: Callable[[], object]) -> float:
    return statistics.median(milliseconds(work, REPEATS))


def python_start(code: str) -> float:
    return median(lambda: subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT))


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
    pixels = {part: classifier.bundle.arrays[f"{part}_inputs"] for part in ("entry", "query")}
    entries, queries = (inputs.reshape(len(inputs), -1) for inputs in pixels.values())
    one, thousand = dataset.inputs[:1], dataset.inputs[:1000]
    rival = KNeighborsClassifier(K).fit(entries, classifier.entries.labels)
    seeds = iter(range(10_000))

    def another() -> LabelNoise:
        return LabelNoise("symmetric", 0.4, next(seeds))

    def rival_revotes() -> None:
        KNeighborsClassifier(K).fit(entries, classifier.observe(another()).labels).predict_proba(queries)

    item, start = [str(classifier.queries.ids[0])], python_start("")
    rows: dict[str, tuple[float, float | None, str]] = {
        "one new input → Prediction": (
            median(lambda: classifier.predict(one, k=K)),
            median(lambda: rival.predict_proba(one.reshape(1, -1))),
            "50 ms",
        ),
        "1,000 new inputs → Prediction": (
            median(lambda: classifier.predict(thousand, k=K)),
            median(lambda: rival.predict_proba(thousand.reshape(1000, -1))),
            "1,000 ms",
        ),
        "one test item → Prediction (the page)": (median(lambda: classifier.predict_items(item)), None, "–"),
        "another noise draw, 540 test items, all votes": (
            median(lambda: classifier.predict_items(noise=another())),
            median(rival_revotes),
            "100 ms",
        ),
        "the same, and every metric": (
            median(lambda: evaluate(classifier, K, [another()])),
            None,
            "100 ms for three votes",
        ),
        "`import attnknn`, beyond starting Python": (python_start("import attnknn") - start, None, "300 ms"),
        "`import attnknn.classifier`, likewise": (python_start("import attnknn.classifier") - start, None, "–"),
    }
    print(f"| digits, median of {REPEATS} | ms | scikit-learn, ms | budget |\n|---|---|---|---|")
    for name, (ours, theirs, budget) in rows.items():
        print(f"| {name} | {ours:.1f} | {f'{theirs:.1f}' if theirs else '–'} | {budget} |")
    print(f"\nThe web process with one visitor: {web_process_memory():.0f} MB (budget 250 MB before browsers).")


if __name__ == "__main__":
    main()
