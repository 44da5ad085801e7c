"""Full disks, folders that cannot be written, damaged files, lost queues: a sentence each, and nothing lost."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from attnknn.errors import JobError, StorageError
from attnknn.jobs import JobStore
from attnknn.jobs.damage import notice_of
from attnknn.jobs.doorbell import Doorbell
from attnknn.jobs.huey_queue import open_queue
from attnknn.jobs.processes import has_worker_here
from tests.jobs.bench import REPOSITORY, Bench
from tests.jobs.services import PostgreSQL, free_port

ASK_AS_ANOTHER = """
import os, pwd, sys, tempfile
from pathlib import Path
from attnknn.errors import StorageError
from attnknn.jobs import JobSettings, JobStore
from attnknn.jobs.processes import has_worker_here

settings = JobSettings.from_environment()
JobStore(settings).close()
Path(settings.folder, "worker.lock").unlink(missing_ok=True)
for path in settings.folder.iterdir():
    path.chmod(0o444)
settings.folder.chmod(0o555)
if os.geteuid() == 0:
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
for ask in (lambda: JobStore(settings).submit("count", "", {}), lambda: has_worker_here(settings)):
    try:
        ask()
    except StorageError as error:
        print(error)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"0" * 512)
    return filler


# ---- Full disks


def test_a_full_disk_of_drafts_fails_with_a_sentence_and_the_job_goes_on_when_there_is_room(bench, small_disk):
    bench.settings = replace(bench.settings, drafts=small_disk)
    bench.start()
    job = bench.submit(40, rest=0.05, bytes=5000)
    bench.wait_for_number(job, 3)
    filler = fill(small_disk)
    job = bench.wait_for(job, "failed")
    assert job.error == "The disk is full. What was done is kept. Make room, and resume the job."
    reached = int((small_disk / job.id / "count").read_text())
    assert reached >= 3
    filler.unlink()
    bench.store.resume(job.id)
    assert bench.wait_for(job, "done").result == {"count": 40}
    assert bench.said(job)[-1] == f"counting from {reached}"


def test_a_full_disk_of_tables_is_waited_out(make_settings, small_disk):
    """Neither the job nor the worker dies of it, and who submits is told."""
    settings = make_settings("sqlite")
    settings = replace(
        settings,
        folder=small_disk,
        database=f"sqlite:///{small_disk / 'jobs.db'}",
        queue=f"sqlite:///{small_disk / 'queue.db'}",
        drafts=small_disk.parent / "drafts",
        lease=5.0,
    )
    with Bench(settings) as bench:
        worker = bench.start()
        job = bench.submit(60, rest=0.05)
        bench.wait_for_number(job, 3)
        filler = fill(small_disk)
        with pytest.raises(StorageError, match=r"Its disk is full\. Make room; nothing was lost"):
            submit_many(bench)
        time.sleep(0.5)  # the job and the worker meet it, too
        filler.unlink()
        assert bench.wait_for(job, "done").result == {"count": 60}
        assert worker.poll() is None


def submit_many(bench: Bench) -> None:
    for number in range(200):  # until the journal has no room left
        bench.submit(to=1, owner=f"visitor {number}", text="x" * 5000)


# ---- Folders


def test_a_folder_that_cannot_be_made_is_a_sentence(make_settings, tmp_path):
    (tmp_path / "jobs").write_text("a file is in the way")
    settings = make_settings("sqlite")
    for ask in (lambda: JobStore(settings), lambda: has_worker_here(settings)):
        with pytest.raises(StorageError, match="Jobs need a folder that can be written"):
            ask()


def test_a_folder_that_cannot_be_written_is_a_sentence(make_settings):
    """As another user, where this is root, who may write everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        jobs = Path(folder) / "jobs"
        settings = replace(make_settings("sqlite"), folder=jobs, database=f"sqlite:///{jobs / 'jobs.db'}")
        done = subprocess.run(
            [sys.executable, "-c", ASK_AS_ANOTHER],
            env={**os.environ, **settings.to_environment(), "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=False,
        )
        jobs.chmod(0o755)
    assert "The table of jobs must be readable and writable. It cannot be written" in done.stdout, done.stderr
    assert "Jobs need a folder that can be written." in done.stdout


# ---- Damaged files


@pytest.mark.parametrize("where", [0, 5000])
def test_a_damaged_table_is_moved_aside_and_its_unfinished_runs_come_back(bench, where):
    worker = bench.start()
    job = bench.submit(40, rest=0.05, lane="quick")
    reached = bench.wait_for_number(job, 3)
    worker.terminate()
    worker.wait(10)
    done = bench.store.submit("count", "Counting", {"to": 1, "never": "started"})
    bench.store.close()
    path = bench.settings.folder / "jobs.db"
    damage(path, where)
    again = JobStore(bench.settings)
    aside = [one for one in path.parent.glob("jobs.db.damaged-*") if not one.name.endswith(("-wal", "-shm"))]
    assert len(aside) == 1
    assert aside[0].stat().st_size > 0
    assert aside[0].name in again.notice
    assert "nothing was deleted" in again.notice
    assert JobStore(bench.settings).notice == again.notice  # whoever asks, not only who moved it
    (row,) = again.all()
    assert (row.id, row.state, row.title, row.spec, row.lane) == (job.id, "paused", "Counting", job.spec, "quick")
    assert done.id not in {row.id}
    again.resume(job.id)
    bench.start()
    assert bench.wait_for(job, "done").result == {"count": 40}
    assert int(bench.said(job)[0].split()[-1]) >= reached.progress * 40


def damage(path: Path, where: int) -> None:
    for side in ("-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)
    content = bytearray(path.read_bytes())
    content[where : where + 3000] = b"\xa5" * min(3000, len(content) - where)
    path.write_bytes(content)


def test_an_old_notice_is_no_longer_shown(tmp_path):
    (tmp_path / "jobs.db.damaged-20200101-000000").touch()
    assert notice_of(tmp_path / "jobs.db") is None


def test_a_damaged_queue_is_moved_aside_and_the_job_is_done(bench):
    bench.settings.folder.mkdir()
    (bench.settings.folder / "queue.db").write_bytes(b"this is no database" * 500)
    bench.start()
    assert bench.wait_for(bench.submit(2), "done")
    assert list(bench.settings.folder.glob("queue.db.damaged-*"))


# ---- The queue


@pytest.fixture(params=["sqlite", "postgresql", "postgresql+redis"])
def queue(request, make_settings) -> str:
    settings = make_settings(request.param)
    settings.folder.mkdir(exist_ok=True)
    return settings.queue


def test_rings_are_heard_once_and_in_order(queue):
    bell, worker = Doorbell(queue), Doorbell(queue)
    for name in ("one", "two"):
        bell.ring(name)
    assert [worker.answer(), worker.answer(), worker.answer()] == ["one", "two", None]
    worker.close()


def test_a_ring_is_heard_in_its_lane_only(queue):
    bell = Doorbell(queue)
    bell.ring("one", "quick")
    bell.ring("two", "long")
    assert [bell.answer("long"), bell.answer("long"), bell.answer("quick")] == ["two", None, "one"]
    bell.close()


def test_messages_are_json_and_nonsense_is_ignored(queue, caplog):
    huey, bell = open_queue(queue, "long"), Doorbell(queue)
    bell.ring("one")
    assert b'"one"' in bytes(huey.storage.enqueued_items()[0])
    bell.answer()
    for nonsense in (b"\x80\x04\x95", b"[]", b'{"a": 1}', b'["id", "take", null, 0, 0, null, [7]]'):
        huey.storage.enqueue(nonsense)
    bell.ring("two")
    with caplog.at_level(logging.ERROR):
        assert [bell.answer() for _ in range(5)] == [None] * 4 + ["two"]
    bell.close()
    huey.storage.close()


def test_a_queue_that_is_not_there_delays_a_job_and_is_nobodys_error(bench):
    bench.settings = replace(bench.settings, queue=f"redis://127.0.0.1:{free_port()}/0")
    bench.start()
    assert bench.wait_for(bench.submit(2), "done")


def test_a_queue_of_another_kind_is_a_sentence():
    with pytest.raises(
        JobError, match=r'The queue must be SQLite, Redis or PostgreSQL\. ATTNKNN_QUEUE_URL starts with "amqp:"'
    ):
        Doorbell("amqp://host")


def test_a_database_that_goes_away_for_a_while_is_waited_for(make_settings):
    """Neither the job nor its worker dies of it."""
    with PostgreSQL() as server:
        url = f"{server.url}/postgres"
        with Bench(replace(make_settings("sqlite"), database=url, queue=url, lease=20.0)) as bench:
            worker = bench.start()
            job = bench.submit(100, rest=0.03)
            bench.wait_for_number(job, 3)
            server.stop()
            with pytest.raises(StorageError, match="Check that the database runs"):
                bench.store.get(job.id)
            server.start()
            job = bench.wait_for(job, "done")
            assert (job.result, job.attempt) == ({"count": 100}, 1)
            assert bench.numbers(job) == list(range(1, 101))
            assert worker.poll() is None
