"""The background from the terminal: what there is, and what may be asked of it. Nobody does the work here."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from attnknn.cli import app
from attnknn.jobs import Job, JobSettings, JobStore


@pytest.fixture
def store(tmp_path, monkeypatch) -> JobStore:
    monkeypatch.setenv("ATTNKNN_JOBS", str(tmp_path / "jobs"))
    monkeypatch.setenv("ATTNKNN_WORKER", "external")
    for variable in ("ATTNKNN_DB_URL", "ATTNKNN_QUEUE_URL", "ATTNKNN_DRAFTS"):
        monkeypatch.delenv(variable, raising=False)
    return JobStore(JobSettings.from_environment())


@pytest.fixture
def run() -> Callable[..., Result]:
    """Run the terminal in this process, without any checkpoint, and check its exit code."""

    def run_here(*arguments: object, code: int = 0) -> Result:
        result = CliRunner().invoke(app, [*map(str, arguments)])
        assert result.exit_code == code, result.output
        return result

    return run_here


@pytest.fixture
def job(store) -> Job:
    return store.submit("train", "iris → iris-2", {"name": "iris-2"})


def test_the_list_shows_the_newest_first_in_a_table_and_in_json(store, job, run, run_json):
    second = store.submit("train", "digits → digits-2", {"name": "digits-2"})
    table = run("jobs", "list").stdout
    assert table.index(second.id[:8]) < table.index(job.id[:8])
    assert "iris → iris-2" in table
    rows = run_json("jobs", "list")["jobs"]
    assert [row["id"] for row in rows] == [second.id, job.id]
    assert (rows[0]["status"], rows[0]["spec"], rows[0]["progress"]) == ("queued", {"name": "digits-2"}, 0.0)


def test_who_waits_in_vain_is_told(store, job, run):
    assert "no worker is there" in run("jobs", "list").stderr
    store.beat("one", "elsewhere", 1)
    assert run("jobs", "list").stderr == ""


def test_one_job_is_shown_with_what_it_said(store, job, run, run_json):
    store.claim(job.id, "one")
    store.report(job.id, "one", [("numbers", {"epoch": 3, "loss": 0.123456})], stage="Training", progress=0.25)
    store.say(job.id, "log", {"line": "a line of the log"})
    shown = run("jobs", "show", job.id[:6]).stdout
    assert "running, 25%  Training" in shown
    assert "epoch 3  loss 0.1235" in shown
    assert "a line of the log" in shown
    document = run_json("jobs", "show", job.id)
    assert [event["data"] for event in document["events"]] == [
        {"epoch": 3, "loss": 0.123456},
        {"line": "a line of the log"},
    ]


def test_a_job_that_failed_says_why(store, job, run):
    store.claim(job.id, "one")
    store.end(job.id, "one", "failed", error="The disk is full.")
    assert "The disk is full." in run("jobs", "show", job.id).stdout


def test_pause_resume_and_cancel(store, job, run, run_json):
    assert run("jobs", "pause", job.id[:8]).stdout == f"{job.id[:8]}  iris → iris-2: paused\n"
    assert run("jobs", "resume", job.id[:8]).stdout == f"{job.id[:8]}  iris → iris-2: queued\n"
    assert run_json("jobs", "cancel", job.id)["status"] == "cancelled"
    assert store.get(job.id).state == "cancelled"


def test_a_running_job_is_asked(store, job, run):
    store.claim(job.id, "one")
    assert run("jobs", "pause", job.id).stdout.endswith(": pausing\n")
    assert run("jobs", "cancel", job.id).stdout.endswith(": cancelling\n")


@pytest.mark.parametrize("verb", ["show", "cancel", "pause", "resume"])
def test_an_unknown_job_is_a_sentence(store, run, verb):
    result = run("jobs", verb, "f00", code=2)
    assert (result.stdout, result.stderr) == (
        "",
        'The id must name a job. There is no job "f00". List them with: python -m attnknn jobs list.\n',
    )


def test_a_beginning_that_fits_several_is_a_sentence(store, job, run):
    other = store.submit("train", "another", {})
    said = run("jobs", "cancel", "", code=2).stderr
    assert said.startswith('The beginning of an id must fit one job. "" fits 2, among them ')
    assert other.id[:8] in said
    assert {one.state for one in store.all()} == {"queued"}


def test_what_cannot_be_asked_of_a_job_is_a_sentence(store, job, run):
    store.claim(job.id, "one")
    said = run("jobs", "resume", job.id, code=2).stderr
    assert said == "Only a paused or failed job can be resumed. This one is running. It runs already.\n"
    store.end(job.id, "one", "done", result={})
    for verb, asked in (("cancel", "cancelled"), ("pause", "paused")):
        said = run("jobs", verb, job.id, code=2).stderr
        assert said == f"Only a job that has not ended can be {asked}. This one is done. There is nothing to stop.\n"
    assert "This one is done. Start a new one." in run("jobs", "resume", job.id, code=2).stderr


def test_a_damaged_table_is_a_notice_on_stderr_and_stdout_stays_one_document(store, run):
    path = store.settings.folder / "jobs.db"
    path.write_bytes(b"no database" * 1000)
    result = run("jobs", "list", "--json")
    assert json.loads(result.stdout) == {"jobs": []}
    assert "The database of jobs was damaged." in result.stderr


def test_a_folder_in_the_way_is_a_sentence(store, run, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ATTNKNN_JOBS", str(tmp_path / "file"))
    for command in (["jobs", "list"], ["worker"]):
        result = run(*command, code=2)
        assert result.stderr.startswith("Jobs need a folder that can be written.")
        assert len(result.stderr.splitlines()) == 1
