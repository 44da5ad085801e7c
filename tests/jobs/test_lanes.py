"""Two lanes side by side: what is quick does not wait for what is long, and children are there when jobs come."""

from __future__ import annotations

import os
import signal
import statistics
import time

import pytest

from attnknn.jobs.claims import LOST
from tests.jobs.bench import Bench, is_alive, kill, wait_until

LONG = {"to": 400, "rest": 0.05}


def spare_of(bench: Bench) -> int:
    """Wait for the one child of the long lane that has warmed up, while no long job runs."""
    wait_until(lambda: len(bench.children("long")) == 1, "the next long job has its child")
    (pid,) = bench.children("long")
    wait_until(lambda: ("long", pid) in warmed(bench), "it has warmed up")
    return pid


def warmed(bench: Bench) -> list[tuple[str, int]]:
    """Lane and process of every child that began to warm up."""
    place = bench.settings.folder / "warmed"
    lines = place.read_text().splitlines() if place.exists() else []
    return [(lane, int(pid)) for lane, pid in map(str.split, lines)]


def quick_pid(bench: Bench, **spec) -> int:
    """Do a quick job, and return the process that did it."""
    job = bench.submit(lane="quick", rest=0.15, **spec)
    pid = bench.wait_for_number(job, 1).pid
    assert bench.wait_for(job, "done").attempt == 1
    return pid


def test_a_quick_job_is_done_while_a_long_one_runs(any_bench):
    any_bench.start()
    long = any_bench.submit(**LONG)
    any_bench.wait_for_number(long, 2)
    quick = any_bench.submit(lane="quick")
    assert any_bench.wait_for(quick, "done").result == {"count": 5}
    assert any_bench.store.get(long.id).state == "running"
    wait_until(lambda: not any_bench.settings.draft(quick.id).exists(), "the draft is removed")


def test_the_quick_child_comes_with_the_first_job_does_many_and_leaves_after_a_rest(bench):
    bench.start(rest=1.5)
    spare_of(bench)
    assert bench.children("quick") == []
    first = quick_pid(bench, owner="one")
    assert quick_pid(bench, owner="two") == first
    assert bench.children("quick") == [first]
    wait_until(lambda: bench.children("quick") == [], "it leaves")
    wait_until(lambda: bench.children("long") == [], "so does the spare of the long lane")
    assert quick_pid(bench, owner="three") != first


def test_a_killed_quick_child_is_followed_by_another_that_goes_on(any_bench):
    any_bench.start()
    job = any_bench.submit(lane="quick", to=12, rest=0.05)
    pid = any_bench.wait_for_number(job, 4).pid
    kill(pid)
    job = any_bench.wait_for(job, "done")
    assert (job.result, job.attempt) == ({"count": 12}, 2)
    assert any("counting from" in line and int(line.split()[-1]) >= 4 for line in any_bench.said(job))


def test_a_quick_child_that_dies_between_two_jobs_is_no_jobs_death(busy):
    kill(pid := quick_pid(busy, owner="before"))
    wait_until(lambda: not is_alive(pid), "it is gone")
    assert quick_pid(busy, owner="after") != pid


@pytest.mark.parametrize("trouble", ["hear_nothing", "refuse_to_go"])
def test_a_quick_child_that_does_not_listen_is_ended_and_the_next_job_gets_another(busy, trouble):
    job = busy.submit(10, lane="quick", trouble=trouble, at=3)
    pid = busy.wait_for_number(job, 2).pid
    busy.store.wish(job.id, "cancel")
    busy.wait_for(job, "cancelled")
    assert not is_alive(pid)
    assert quick_pid(busy, owner=f"after {trouble}") != pid


def test_a_quick_child_that_listens_is_kept_after_a_cancel_and_a_failure(busy):
    pid = quick_pid(busy, owner="first")
    job = busy.submit(lane="quick", **LONG)
    busy.wait_for_number(job, 1)
    busy.store.wish(job.id, "cancel")
    busy.wait_for(job, "cancelled")
    busy.wait_for(busy.submit(lane="quick", trouble="refuse", at=2), "failed")
    assert quick_pid(busy, owner="last") == pid


def test_a_long_job_gets_the_child_that_was_started_ahead_and_the_next_gets_another(bench):
    bench.start()
    pid = spare_of(bench)
    job = bench.submit(rest=0.1)
    assert bench.wait_for_number(job, 1).pid == pid
    assert bench.wait_for(job, "done").attempt == 1
    wait_until(lambda: not is_alive(pid), "it does one job only")
    following = spare_of(bench)
    job = bench.submit(rest=0.1, owner="another")
    assert bench.wait_for_number(job, 1).pid == following
    bench.wait_for(job, "done")


def test_children_that_die_while_they_warm_up_are_started_once_a_job_and_the_job_says_why(bench):
    worker = bench.start(warm_up="die")
    wait_until(lambda: len(warmed(bench)) == 1, "the first one dies")
    time.sleep(1.0)
    assert len(warmed(bench)) == 1
    for lane in ("quick", "long"):
        job = bench.wait_for(bench.submit(lane=lane), "failed")
        assert "interrupted 3 times" in job.error
        assert "was killed" in job.error
    time.sleep(0.5)
    assert len([lane for lane, _ in warmed(bench) if lane == "quick"]) == 3
    assert len(warmed(bench)) <= 3 + 7  # two at most for each try: the job's, and the next one's
    assert worker.poll() is None


def test_a_warm_up_that_fails_stops_no_job(bench):
    bench.start(warm_up="fail")
    for lane in ("quick", "long"):
        assert bench.wait_for(bench.submit(lane=lane), "done").attempt == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("is_busy", [False, True])
def test_a_worker_that_ends_leaves_no_child_in_either_lane_and_the_jobs_go_on(bench, number, is_busy):
    worker = bench.start()
    spare_of(bench)
    quick_pid(bench)
    jobs = [bench.submit(lane=lane, to=15, rest=0.1) for lane in ("long", "quick")] if is_busy else []
    for job in jobs:
        bench.wait_for_number(job, 2)
    assert len(bench.children("quick")) == len(bench.children("long")) == 1
    os.kill(worker.pid, number)
    worker.wait(10)
    wait_until(lambda: bench.children("quick") + bench.children("long") == [], "every child leaves")
    bench.start()
    for job in jobs:
        assert bench.wait_for(job, "done").result == {"count": 15}
        was_told = not {"Its worker died.", LOST} & {*bench.said(job)}
        assert was_told == (number == signal.SIGTERM)


def test_both_leases_are_renewed(bench):
    bench.start()
    jobs = [bench.submit(lane=lane, to=12, rest=0.3) for lane in ("long", "quick")]  # more than two leases
    assert [bench.wait_for(job, "done").attempt for job in jobs] == [1, 1]


def test_a_quick_job_takes_a_moment(bench):
    """A ring is heard at once: the next look at the table would come after a second. Benchmarks have the budget."""
    bench.start()
    bench.wait_for(bench.submit(1, lane="quick", rest=0.005), "done")
    took = []
    for number in range(15):
        begun = time.monotonic()
        bench.wait_for(bench.submit(1, lane="quick", rest=0.005, owner=f"visitor {number}"), "done")
        took.append(time.monotonic() - begun)
        time.sleep(0.05)
    assert statistics.median(took) < 0.6
