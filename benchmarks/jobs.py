"""From a click to a running job, and from a click to a stopped one: python -m benchmarks.jobs.

Real training runs (iris, with more epochs than anybody waits for), submitted and cancelled as the page does,
by the worker that the product starts. Budgets, p95 of 20: submit → running 3 s, cancel → stopped 2 s. A job
runs when a worker has taken it up; it trains when its process has written the first point of the curve; it
has stopped when the table says so and its process is gone. A worker that waits has had the time to start the
next job's process ahead. A picture is embedded in the quick lane, whose process is kept: 300 ms after the first.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import psutil

from attnknn.checkpoints import ROOT
from attnknn.config import EmbedderConfig, TrainingConfig
from attnknn.data import load_dataset
from attnknn.jobs import Job, JobSettings, JobStore
from attnknn.work import submit

LONG = TrainingConfig("iris", embedder=EmbedderConfig("mlp", dimension=8, width=16, epochs=500, batch_size=4))
MOMENT = 0.02
PATIENCE = 60.0
QUIET = 1.0  # seconds without work, after which the next job's process is warm
BUDGETS = {"submit → running": 3.0, "submit → first epoch": None, "cancel → stopped": 2.0}
ENCODING = {"picture → embedded": 0.3}


Round = Callable[[JobStore, int], dict[str, float]]
"""One try: what it measured, in seconds."""


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


def wait_until_warm() -> None:
    """Wait until no process of the worker computes, which the next job's does while it imports."""
    seconds_until(is_quiet)


def is_quiet() -> bool:
    """Whether the processes of the worker sleep, and have done so for a while."""
    before = seconds_of_children()
    time.sleep(QUIET)
    return before is not None and before == seconds_of_children()


def seconds_of_children() -> float | None:
    """Processor time of the worker's children, to a tenth; None if one computes now, or has just ended."""
    (worker, _), *_ = submit._started.values()
    try:
        family = psutil.Process(worker.pid).children()
        if any(child.status() != psutil.STATUS_SLEEPING for child in family):
            return None
        return round(sum(sum(child.cpu_times()[:2]) for child in family), 1)
    except psutil.NoSuchProcess:
        return None


def one_picture(store: JobStore, number: int) -> dict[str, float]:
    """Embed one picture, as the page does with a drawing."""
    picture = load_dataset("digits").inputs[number]
    begun = time.perf_counter()
    job = submit.submit_encoding(store, "digits", picture)
    seconds_until(lambda: store.get(job.id).state == "done")
    return {"picture → embedded": time.perf_counter() - begun}


def stop_worker() -> None:
    for process, _ in submit._started.values():
        process.terminate()
        process.wait()
    submit._started.clear()


def measure(folder: Path, repeats: int, is_cold: bool, one: Round) -> list[dict[str, float]]:
    """Rounds with one worker for all of them, or with one that has to be started first."""
    shutil.copytree(ROOT / "digits", folder / "checkpoints" / "digits")
    os.environ["ATTNKNN_CHECKPOINTS"] = str(folder / "checkpoints")
    settings = JobSettings.from_environment({"ATTNKNN_JOBS": str(folder)})
    store, rounds = JobStore(settings), []
    try:
        if not is_cold:
            one(store, 1000)
        for number in range(repeats):
            if not is_cold:
                wait_until_warm()
            rounds.append(one(store, number))
            if is_cold:
                stop_worker()
    finally:
        stop_worker()
    return rounds


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


def rows(rounds: list[dict[str, float]], budgets: Mapping[str, float | None], worker: str) -> Iterator[str]:
    """Write a line of the table for each thing that was measured."""
    for name, budget in budgets.items():
        times = sorted(one[name] for one in rounds)
        cells = [name, worker, *(f"{value:.2f}" for value in (statistics.median(times), p95(times), times[-1]))]
        yield "| " + " | ".join([*cells, f"{budget:g}" if budget else "–"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    print(f"| seconds, of {repeats} | worker | median | p95 | slowest | budget of p95 |\n|---|---|---|---|---|---|")
    kinds: list[tuple[bool, Round, Mapping[str, float | None], str]] = [
        (False, one_round, BUDGETS, "waits"),
        (True, one_round, BUDGETS, "still to be started"),
        (False, one_picture, ENCODING, "has embedded one"),
        (True, one_picture, dict.fromkeys(ENCODING), "still to be started"),
    ]
    for is_cold, one, budgets, worker in kinds:
        with tempfile.TemporaryDirectory() as folder:
            print(*rows(measure(Path(folder), repeats, is_cold, one), budgets, worker), sep="\n", flush=True)


if __name__ == "__main__":
    main()
