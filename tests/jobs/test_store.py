"""The table by itself: who may change what, on SQLite and PostgreSQL; no process is needed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text, update

from attnknn.errors import JobError, StorageError, UnknownJob
from attnknn.jobs import JobSettings, JobStore
from attnknn.jobs.processes import EXITS, sentence_of
from attnknn.jobs.store import LIMIT_PER_OWNER
from attnknn.jobs.table import jobs


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, make_settings) -> Iterator[JobStore]:
    one = JobStore(make_settings(request.param))
    yield one
    one.close()


def submit(store: JobStore, number: int = 0, owner: str = "somebody"):
    return store.submit("count", f"Counting to {number}", {"to": number}, owner)


def lose(store: JobStore, job) -> None:
    """Let a lease run out now."""
    with store.engine.begin() as connection:
        connection.execute(update(jobs).where(jobs.c.id == job.id).values(lease_until=time.time() - 60))


def test_identical_work_is_one_job_until_it_ends(store):
    first = submit(store)
    assert submit(store, owner="another").id == first.id
    store.claim(first.id, "one")
    assert submit(store).id == first.id
    store.end(first.id, "one", "done", result={})
    assert submit(store).id != first.id


def test_thirty_clicks_at_once_are_one_job(store):
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: submit(store).id, range(30)))
    assert len(found) == 1
    assert len(store.all()) == 1


def test_of_many_who_claim_one_gets_it(store):
    job = submit(store)
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: store.claim(job.id, f"worker {n}"), range(16)))
    assert won.count(True) == 1


def test_a_visitor_may_have_only_so_many_waiting(store):
    for number in range(LIMIT_PER_OWNER):
        submit(store, number)
    with pytest.raises(JobError, match=f"At most {LIMIT_PER_OWNER} jobs of one visitor"):
        submit(store, 99)
    submit(store, 99, "another")
    assert submit(store, 0).state == "queued"  # it is there already


def test_places_in_the_queue_are_counted_from_the_front(store):
    found = [submit(store, number) for number in range(3)]
    assert [store.place_in_queue(job) for job in found] == [0, 1, 2]
    assert store.waiting("long") == [job.id for job in found]
    assert [job.id for job in store.all()] == [job.id for job in reversed(found)]


def test_lanes_are_queues_of_their_own(store):
    long = [submit(store, number) for number in range(2)]
    quick = [store.submit("count", "Counting", {"to": number}, "visitor", lane="quick") for number in (7, 8)]
    assert [store.place_in_queue(job) for job in (*long, *quick)] == [0, 1, 0, 1]
    assert store.waiting("quick") == [job.id for job in quick]
    assert {job.lane for job in quick} == {"quick"}
    assert long[0].lane == "long"
    with pytest.raises(ValueError, match="lane must be one of"):
        store.submit("count", "Counting", {}, lane="fast")


def test_who_lost_a_job_can_change_nothing_any_more(store):
    job = submit(store)
    store.claim(job.id, "old")
    lose(store, job)
    assert store.get(job.id).state == "queued"
    assert store.claim(job.id, "new")
    assert not store.renew(job.id, "old")
    assert not store.holds(job.id, "old")
    assert not store.report(job.id, "old", [("numbers", {"epoch": 1})], progress=0.9)
    assert not store.end(job.id, "old", "done", result={})
    assert not store.release(job.id, "old")
    now = store.get(job.id)
    assert (now.state, now.progress, now.attempt) == ("running", 0.0, 2)
    assert store.events(job.id, kind="numbers") == []
    assert store.holds(job.id, "new")


@pytest.mark.parametrize(("wish", "state"), [("cancel", "cancelled"), ("pause", "paused"), (None, "queued")])
def test_a_lost_job_is_what_was_wished(store, wish, state):
    job = submit(store)
    store.claim(job.id, "one")
    if wish:
        store.wish(job.id, wish)
    lose(store, job)
    assert [one.state for one in store.all()] == [state]
    now = store.get(job.id)
    assert (now.state, now.wish, now.pid, now.ended is not None) == (state, None, None, wish == "cancel")


@pytest.mark.parametrize(("wish", "state"), [("cancel", "cancelled"), ("pause", "paused"), (None, "queued")])
def test_a_released_job_is_what_was_wished(store, wish, state):
    job = submit(store)
    store.claim(job.id, "one")
    if wish:
        store.wish(job.id, wish)
    assert store.release(job.id, "one", "It died.", died=True)
    assert store.get(job.id).state == state


def die(store: JobStore, job, progress: float) -> str:
    store.claim(job.id, "one")
    store.report(job.id, "one", progress=0.0)
    store.report(job.id, "one", progress=progress)
    store.release(job.id, "one", "It died.", died=True)
    return store.get(job.id).state


def test_dying_again_and_again_without_getting_further_is_a_failure(store):
    job = submit(store)
    assert [die(store, job, 0.5) for _ in range(3)] == ["queued", "queued", "failed"]
    job = store.get(job.id)
    assert job.state == "failed"
    assert job.error == "It was interrupted 3 times without getting further. It died."


def test_a_long_job_may_die_as_often_as_it_likes_if_it_gets_further(store):
    job = submit(store)
    assert {die(store, job, progress / 10) for progress in range(1, 10)} == {"queued"}
    assert store.get(job.id).attempt == 9


def test_being_given_back_is_no_death(store):
    job = submit(store)
    for _ in range(6):
        store.claim(job.id, "one")
        store.release(job.id, "one")
    assert store.get(job.id).state == "queued"


def test_a_resumed_job_has_all_its_tries_again(store):
    job = submit(store)
    while die(store, job, 0.5) != "failed":
        pass
    assert store.resume(job.id).error is None
    assert die(store, job, 0.5) == "queued"


def test_wishes_about_what_rests_come_true_at_once(store):
    job = submit(store)
    assert store.wish(job.id, "pause").state == "paused"
    assert store.resume(job.id).state == "queued"
    store.wish(job.id, "pause")
    assert store.wish(job.id, "cancel").state == "cancelled"
    assert store.wish(job.id, "pause").state == "cancelled"


def test_a_cancel_is_not_softened_to_a_pause(store):
    job = submit(store)
    store.claim(job.id, "one")
    store.wish(job.id, "pause")
    assert store.wish(job.id, "cancel").status == "cancelling"
    assert store.wish(job.id, "pause").status == "cancelling"


def test_what_ended_is_not_resumed(store):
    job = submit(store)
    with pytest.raises(JobError, match=r"This one is queued\. It waits already"):
        store.resume(job.id)
    store.wish(job.id, "cancel")
    with pytest.raises(JobError, match=r"This one is cancelled\. Start a new one"):
        store.resume(job.id)


def test_failed_work_that_was_started_again_is_not_resumed_beside_it(store):
    job = submit(store)
    store.claim(job.id, "one")
    store.end(job.id, "one", "failed", error="It broke.")
    submit(store)
    with pytest.raises(JobError, match="It was started again under another id"):
        store.resume(job.id)


def test_unknown_jobs_are_a_sentence(store):
    for ask in (store.get, store.resume, lambda one: store.wish(one, "cancel")):
        with pytest.raises(UnknownJob, match='There is no job "nobody"'):
            ask("nobody")


def test_words_that_are_too_long_are_cut(store):
    job = store.submit("count", "t" * 500, {}, "o" * 500)
    assert (len(job.title), len(job.owner)) == (200, 64)
    store.claim(job.id, "one")
    assert store.report(job.id, "one", stage="s" * 500)


def test_heartbeats_of_this_and_other_hosts(store):
    assert not store.has_worker()
    store.beat("one", "here", 1)
    store.beat("one", "here", 1)
    assert store.has_worker()
    assert not store.has_worker(besides="here")
    store.leave("one")
    assert not store.has_worker()


def test_a_table_of_an_older_version_gets_the_columns_it_lacks(store):
    job = submit(store)
    with store.engine.begin() as connection:
        connection.execute(text("ALTER TABLE jobs DROP COLUMN furthest"))
        connection.execute(text("ALTER TABLE jobs DROP COLUMN deaths"))
        connection.execute(text("ALTER TABLE jobs DROP COLUMN lane"))
    again = JobStore(store.settings)
    assert (again.get(job.id).lane, again.waiting("long")) == ("long", [job.id])
    assert again.claim(job.id, "one")
    assert again.report(job.id, "one", progress=0.5)
    assert again.release(job.id, "one", died=True)
    again.close()


def test_many_open_a_new_database_at_once(make_settings, tmp_path):
    for backend in ("sqlite", "postgresql"):
        settings = make_settings(backend)
        with ThreadPoolExecutor(6) as pool:
            for one in pool.map(lambda _, given=settings: JobStore(given), range(6)):
                one.close()


def test_nothing_is_pickled(store):
    submit(store)
    row = store._rows(text("SELECT spec FROM jobs"))[0]
    assert json.loads(row["spec"]) == {"to": 0}


def test_a_server_that_is_not_there_is_a_sentence(make_settings):
    from tests.jobs.services import free_port

    settings = replace(make_settings("sqlite"), database=f"postgresql://nobody:secret@127.0.0.1:{free_port()}/none")
    with pytest.raises(StorageError, match="Check that the database runs") as caught:
        JobStore(settings)
    assert "secret" not in str(caught.value)


def test_every_end_of_a_process_has_a_sentence():
    for code in (*EXITS, 1, 70):
        assert sentence_of(code).endswith(".")
    assert "code 70" in sentence_of(70)


def test_settings_come_from_the_environment(tmp_path):
    found = JobSettings.from_environment({"ATTNKNN_JOBS": str(tmp_path), "ATTNKNN_LEASE": "2.5"})
    assert found.database == f"sqlite:///{tmp_path / 'jobs.db'}"
    assert found.queue == f"sqlite:///{tmp_path / 'queue.db'}"
    assert found.lease == 2.5
    shared = JobSettings.from_environment({"ATTNKNN_DB_URL": "postgresql://host/name"})
    assert shared.queue == "postgresql://host/name"
