"""Cancel, pause, resume; what a job that fails says; and workers that come and go."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from attnknn.errors import JobError
from tests.jobs.bench import is_alive, kill, wait_until

LONG = {"to": 200, "rest": 0.03}


def test_a_running_job_is_paused_and_goes_on_in_a_new_child(any_bench):
    any_bench.start()
    job = any_bench.submit(to=25, rest=0.05)
    pid = any_bench.wait_for_number(job, 3).pid
    any_bench.store.wish(job.id, "pause")
    job = any_bench.wait_for(job, "paused")
    reached = int((any_bench.settings.draft(job.id) / "count").read_text())
    assert 3 <= reached < 25
    assert (job.wish, job.pid, job.ended) == (None, None, None)
    wait_until(lambda: not is_alive(pid), "its process leaves")
    any_bench.store.resume(job.id)
    assert any_bench.wait_for(job, "done").result == {"count": 25}
    assert any_bench.said(job) == ["counting from 0", f"counting from {reached}"]


def test_a_running_job_is_cancelled_and_its_draft_is_dropped(any_bench):
    any_bench.start()
    job = any_bench.submit(**LONG)
    any_bench.wait_for_number(job, 2)
    assert any_bench.store.wish(job.id, "cancel").status == "cancelling"
    job = any_bench.wait_for(job, "cancelled")
    assert job.ended is not None
    wait_until(lambda: not any_bench.settings.draft(job.id).exists(), "the draft is removed")


@pytest.mark.parametrize("trouble", ["hear_nothing", "refuse_to_go"])
def test_a_child_that_does_not_listen_is_terminated_and_then_killed(busy, trouble):
    job = busy.submit(10, trouble=trouble, at=3)
    pid = busy.wait_for_number(job, 2).pid
    time.sleep(0.3)
    begun = time.monotonic()
    busy.store.wish(job.id, "cancel")
    busy.wait_for(job, "cancelled")
    assert time.monotonic() - begun < 5 * busy.settings.grace + 1
    assert not is_alive(pid)


@pytest.mark.parametrize(("wish", "state"), [("cancel", "cancelled"), ("pause", "paused")])
def test_a_wish_about_a_job_whose_worker_is_dead_comes_true(bench, wish, state):
    """Nobody starts another worker: whoever looks sees what is true."""
    worker = bench.start()
    job = bench.submit(**LONG)
    bench.wait_for_number(job, 2)
    kill(worker)
    bench.store.wish(job.id, wish)
    bench.wait_for(job, state)
    assert bench.store.all(("running",)) == []


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        ("be_killed", "interrupted 3 times without getting further. Its process was killed, most likely for want of"),
        ("abort", "without getting further. A library crashed (abort)"),
        ("refuse", "The data must be there. It cannot be downloaded. Connect to the network."),
        ("break_down", "The job broke, and the fault is ours. The worker's log has the details under"),
        ("run_out_of_memory", "The job needed more memory than there is."),
        ("limit_files", "The disk is full. What was done is kept. Make room, and resume the job."),
        ("lose_folder", "cannot be written. What was done is kept."),
    ],
)
def test_a_job_that_fails_says_why_and_keeps_what_it_did(busy, trouble, sentence):
    job = busy.submit(10, trouble=trouble, at=4)
    job = busy.wait_for(job, "failed")
    assert sentence in job.error
    assert "secret" not in job.error
    assert (busy.settings.draft(job.id) / "count").read_text() == "3"
    assert job.attempt == (3 if "interrupted" in job.error else 1)


def test_a_job_that_failed_is_resumed_where_it_was(busy):
    job = busy.wait_for(busy.submit(8, trouble="refuse", at=4), "failed")
    (busy.settings.draft(job.id) / "count").write_text("4")  # past the trouble
    busy.store.resume(job.id)
    job = busy.wait_for(job, "done")
    assert (job.result, job.error) == ({"count": 8}, None)


def test_a_kind_that_nobody_knows_is_a_sentence(busy):
    job = busy.store.submit("dance", "Dancing", {})
    assert "A job must be one of: count. This one is dance." in busy.wait_for(job, "failed").error


def test_one_worker_per_machine(busy):
    job = busy.submit(to=30, rest=0.05)
    busy.wait_for_number(job, 1)
    second = busy.start()
    assert second.wait(20) == 7
    assert busy.store.get(job.id).attempt == 1


def test_a_worker_without_work_leaves(bench):
    worker = bench.start(idle=0.5)
    assert worker.wait(20) == 0
    assert not bench.store.has_worker()


def test_a_job_is_done_without_a_ring(busy):
    job = busy.store.submit("count", "Counting", {"to": 3})
    busy.wait_for(job, "done")


def test_a_child_is_nicer_than_its_worker_and_has_one_thread(busy):
    job = busy.submit(**LONG)
    child = psutil.Process(busy.wait_for_number(job, 1).pid)
    assert child.nice() > psutil.Process(busy.processes[0].pid).nice()
    assert child.environ()["OMP_NUM_THREADS"] == "1"
    busy.store.wish(job.id, "cancel")


def test_progress_is_written_at_most_four_times_a_second(busy):
    job = busy.submit(to=300, rest=0.005)
    busy.wait_for_number(job, 1)
    seen, begun = set(), time.monotonic()
    while (now := busy.store.get(job.id)).state == "running":
        seen.add(now.progress)
        time.sleep(0.01)
    assert len(seen) <= 4 * (time.monotonic() - begun) + 3
    assert busy.numbers(job) == list(range(1, 301))


def test_resuming_what_runs_is_refused_and_takes_a_pause_back(busy):
    job = busy.submit(10, trouble="hear_nothing", at=3)
    busy.wait_for_number(job, 2)
    with pytest.raises(JobError, match=r"This one is running\. It runs already"):
        busy.store.resume(job.id)
    assert busy.store.wish(job.id, "pause").status == "pausing"
    assert busy.store.resume(job.id).status == "running"
    busy.store.wish(job.id, "cancel")


def test_the_drafts_of_what_ended_are_swept_and_unknown_ones_are_kept(bench):
    job = bench.submit()
    kept = bench.settings.draft("unknown")
    for draft in (bench.settings.draft(job.id), kept):
        Path(draft).mkdir(parents=True)
    bench.store.wish(job.id, "cancel")
    bench.start()
    wait_until(lambda: not bench.settings.draft(job.id).exists(), "the draft is removed")
    assert kept.exists()
