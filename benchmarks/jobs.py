"""From a click to a running job, and from a click to a stopped one: python -m benchmarks.jobs.

Real training runs (iris, with more epochs than anybody waits for), submitted and cancelled as the page does,
by the worker that the product starts. Budgets, p95 of 20: submit → running 3 s, cancel → stopped 2 s. A job
runs when a worker has taken it up; it trains when its process has written the first point of the curve; it
has stopped when the table says so and its process is gone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil

from attnknn.config import EmbedderConfig, TrainingConfig
from attnknn.jobs import Job, JobSettings, JobStore
from attnknn.work import submit

LONG = TrainingConfig("iris", embedder=EmbedderConfig("mlp", dimension=8, width=16, epochs=500, batch_size=4))
MOMENT = 0.02
PATIENCE = 60.0
BUDGETS = {"submit → running": 3.0, "submit → first epoch": None, "cancel → stopped": 2.0}


def seconds_until(condition: Callable[[], bool]) -> float:
    begun = time.perf_counter()
    while not condition():
        if time.perf_counter() - begun > PATIENCE:
            raise TimeoutError("nothing happened for a minute")
        time.sleep(MOMENT)
    return time.perf_counter() - begun


def is_gone(pid: int | None) -> bool:
    try:
        return pid is None or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def one_round(store: JobStore, number: int) -> dict[str, float]:
    """Submit, wait for the first epoch, cancel; the clock starts before each call."""
    begun = time.perf_counter()
    job = submit.submit_training(store, replace(LONG, seed=number))
    seconds_until(lambda: store.get(job.id).state == "running")
    running = time.perf_counter() - begun
    seconds_until(lambda: bool(store.events(job.id, kind="numbers")))
    training = time.perf_counter() - begun
    return {"submit → running": running, "submit → first epoch": training, "cancel → stopped": cancel(store, job)}


def cancel(store: JobStore, job: Job) -> float:
    pid = store.get(job.id).pid
    begun = time.perf_counter()
    store.wish(job.id, "cancel")
    seconds_until(lambda: store.get(job.id).state == "cancelled" and is_gone(pid))
    return time.perf_counter() - begun


def stop_worker() -> None:
    for process, _ in submit._started.values():
        process.terminate()
        process.wait()


def measure(folder: Path, repeats: int, is_cold: bool) -> list[dict[str, float]]:
    """Rounds with one worker for all of them, or with one that has to be started first."""
    os.environ["ATTNKNN_CHECKPOINTS"] = str(folder / "checkpoints")
    settings = JobSettings.from_environment({"ATTNKNN_JOBS": str(folder)})
    store, rounds = JobStore(settings), []
    try:
        if not is_cold:
            one_round(store, 1000)
        for number in range(repeats):
            rounds.append(one_round(store, number))
            if is_cold:
                stop_worker()
    finally:
        stop_worker()
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    print(f"| seconds, of {repeats} | worker | median | p95 | slowest | budget of p95 |\n|---|---|---|---|---|---|")
    for is_cold in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            rounds = measure(Path(folder), repeats, is_cold)
        for name, budget in BUDGETS.items():
            times = sorted(one[name] for one in rounds)
            p95 = statistics.quantiles(times, n=20, method="inclusive")[-1]
            worker = "still to be started" if is_cold else "waits"
            cells = [name, worker, *(f"{value:.2f}" for value in (statistics.median(times), p95, times[-1]))]
            print("| " + " | ".join([*cells, f"{budget:g}" if budget else "–"]) + " |")


if __name__ == "__main__":
    main()
