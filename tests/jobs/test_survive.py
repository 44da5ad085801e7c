"""Whatever is killed in the middle of a job, it ends done, with nothing lost and no process left."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.jobs.bench import Bench, is_alive, kill, wait_until

LONG = {"to": 12, "rest": 0.05}


def check_nothing_is_left(bench, *pids: int) -> None:
    assert not any(map(is_alive, pids))
    assert bench.store.all(("queued", "running")) == []


def test_a_job_is_done_and_leaves_no_draft(any_bench):
    any_bench.start()
    job = any_bench.wait_for(any_bench.submit(), "done")
    assert (job.result, job.progress, job.attempt, job.error) == ({"count": 5}, 1.0, 1, None)
    assert any_bench.numbers(job) == [1, 2, 3, 4, 5]
    wait_until(lambda: not any_bench.settings.draft(job.id).exists(), "the draft is removed")


def test_a_killed_child_is_followed_by_another_that_goes_on(any_bench):
    any_bench.start()
    job = any_bench.submit(**LONG)
    pid = any_bench.wait_for_number(job, 4).pid
    kill(pid)
    job = any_bench.wait_for(job, "done")
    assert (job.result, job.attempt) == ({"count": 12}, 2)
    assert any_bench.numbers(job)[-6:] == list(range(7, 13))
    begins = [line for line in any_bench.said(job) if line.startswith("counting from")]
    assert int(begins[-1].split()[-1]) >= 4
    check_nothing_is_left(any_bench, pid)


def test_a_killed_worker_takes_its_child_along_and_the_next_goes_on_at_once(any_bench):
    worker = any_bench.start()
    job = any_bench.submit(**LONG)
    pid = any_bench.wait_for_number(job, 4).pid
    kill(worker)
    begun = time.monotonic()
    any_bench.start()
    wait_until(lambda: not is_alive(pid), "the orphan leaves")
    job = any_bench.wait_for(job, "done")
    assert job.result == {"count": 12}
    assert "Its worker died." in any_bench.said(job)
    assert time.monotonic() - begun < 10
    check_nothing_is_left(any_bench, pid, worker.pid)


def test_a_killed_worker_of_another_machine_is_replaced_when_its_lease_has_run_out(any_bench, tmp_path):
    gone = any_bench.start(folder=tmp_path / "elsewhere")
    job = any_bench.submit(**LONG)
    any_bench.wait_for_number(job, 4)
    kill(gone)
    any_bench.start()
    job = any_bench.wait_for(job, "done")
    assert job.result == {"count": 12}
    begins = [int(line.split()[-1]) for line in any_bench.said(job) if line.startswith("counting from")]
    assert begins[0] == 0
    assert begins[-1] >= 4
    check_nothing_is_left(any_bench, gone.pid)


def test_who_submitted_may_be_killed(bench):
    web = bench.start("submit")
    web.stdin.write(json.dumps(LONG).encode() + b"\n")
    web.stdin.flush()
    job = bench.store.get(web.stdout.readline().decode().strip())
    bench.start()
    bench.wait_for_number(job, 3)
    kill(web)
    assert bench.wait_for(job, "done").attempt == 1
    check_nothing_is_left(bench, web.pid)


def test_a_told_worker_gives_its_job_back_and_that_is_no_death(bench):
    worker = bench.start()
    job = bench.submit(**LONG)
    pid = bench.wait_for_number(job, 4).pid
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(10) == 0
    assert bench.store.get(job.id).state == "queued"
    assert not is_alive(pid)
    assert not bench.store.has_worker()
    bench.start()
    assert bench.wait_for(job, "done").result == {"count": 12}


@pytest.mark.parametrize(("backend", "n_jobs"), [("sqlite", 5), ("postgresql", 20), ("postgresql+redis", 5)])
def test_two_machines_share_jobs_and_killing_one_loses_none(make_settings, tmp_path, backend, n_jobs):
    ledger = tmp_path / "ledger"
    with Bench(make_settings(backend)) as bench:
        first, _ = (bench.start(folder=tmp_path / name) for name in ("one", "two"))
        spec = {"to": 4, "rest": 0.15, "ledger": str(ledger)}
        jobs = [bench.submit(**spec, owner=f"visitor {n}") for n in range(n_jobs)]
        wait_until(lambda: any(job.state == "done" for job in bench.store.all()), "one is done")
        wait_until(lambda: any(job.progress > 0 for job in bench.store.all(("running",))), "one runs")
        kill(first)
        assert [bench.wait_for(job, "done", "failed").result for job in jobs] == [{"count": 4}] * n_jobs
        written = ledger.read_text().splitlines()
        assert {line.split()[0] for line in written} == {job.id for job in jobs}
        assert len(written) <= n_jobs + 1  # the last one of the dead may have been written, and not yet ended
        check_nothing_is_left(bench, first.pid)


def test_a_paused_machine_that_wakes_up_writes_nothing_more(bench, tmp_path):
    """Its lease ran out while it slept; another did the job. Both the worker and its child notice."""
    ledger = tmp_path / "ledger"
    sleeper = bench.start(folder=tmp_path / "elsewhere")
    job = bench.submit(to=40, rest=0.05, ledger=str(ledger))
    pid = bench.wait_for_number(job, 2).pid
    stopped = [sleeper.pid, pid]
    for one in stopped:
        os.kill(one, signal.SIGSTOP)
    bench.start()
    wait_until(lambda: bench.store.get(job.id).attempt == 2, "another took it")
    for one in stopped:
        os.kill(one, signal.SIGCONT)
    wait_until(lambda: not is_alive(pid), "the first child leaves")
    assert bench.wait_for(job, "done").result == {"count": 40}
    assert ledger.read_text().count("\n") == 1
    assert sleeper.poll() is None


def test_a_lease_is_not_renewed_for_a_child_that_is_dead(bench):
    """The worker's process sleeps, but not its job's: it goes on, then notices that nobody vouches for it."""
    worker = bench.start()
    job = bench.submit(to=400, rest=0.05)
    pid = bench.wait_for_number(job, 2).pid
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: bench.store.get(job.id).state == "queued", "the lease runs out")
        wait_until(lambda: not is_alive(pid), "the child leaves: the job is no longer its own")
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    bench.wait_for_number(job, 3)


def test_a_death_now_and_then_is_nothing(bench):
    bench.start()
    assert bench.wait_for(bench.submit(8, trouble="be_killed_once", at=5), "done").attempt == 2
