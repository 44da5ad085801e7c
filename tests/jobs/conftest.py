"""A bench of its own for every test: tables, a queue, a folder, and workers that count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from attnknn.jobs import JobSettings
from attnknn.work import submit
from tests.jobs import services
from tests.jobs.bench import Bench

BACKENDS = ("sqlite", "postgresql", "postgresql+redis")
QUICK = {"lease": 1.5, "heartbeat": 0.2, "grace": 0.4, "idle": 30.0, "attempts": 3}


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    with services.PostgreSQL() as server:
        yield server.url


@pytest.fixture(scope="session")
def redis() -> Iterator[str]:
    with services.redis() as url:
        yield url


@pytest.fixture
def make_settings(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], JobSettings]:
    """Settings with little patience, on one of BACKENDS."""

    def make(backend: str) -> JobSettings:
        folder = tmp_path / "jobs"
        if backend == "sqlite":
            return JobSettings(folder, f"sqlite:///{folder / 'jobs.db'}", f"sqlite:///{folder / 'queue.db'}", **QUICK)
        server = request.getfixturevalue("postgresql")
        database = f"{server}/{new_database(server)}"
        queue = empty(request.getfixturevalue("redis")) if backend.endswith("redis") else database
        return JobSettings(folder, database, queue, **QUICK)

    return make


@pytest.fixture
def bench(make_settings) -> Iterator[Bench]:
    """A bench on SQLite files, as they are by default."""
    with Bench(make_settings("sqlite")) as one:
        yield one


@pytest.fixture(scope="module")
def busy(tmp_path_factory) -> Iterator[Bench]:
    """A bench whose worker is there already, for tests that do it no harm."""
    folder = tmp_path_factory.mktemp("busy")
    with Bench(
        JobSettings(folder, f"sqlite:///{folder / 'jobs.db'}", f"sqlite:///{folder / 'queue.db'}", **QUICK)
    ) as one:
        one.start()
        yield one


@pytest.fixture(params=BACKENDS)
def any_bench(request, make_settings) -> Iterator[Bench]:
    """A bench on each kind of table and queue in turn."""
    with Bench(make_settings(request.param)) as one:
        yield one


@pytest.fixture
def shop(make_settings, tmp_path, monkeypatch) -> Iterator[Bench]:
    """The real thing: the worker that the product starts, and a folder of checkpoints."""
    monkeypatch.setenv("ATTNKNN_CHECKPOINTS", str(tmp_path / "checkpoints"))
    (tmp_path / "checkpoints").mkdir()
    settings = replace(make_settings("sqlite"), lease=5.0, idle=3.0)
    monkeypatch.setattr(submit, "_started", {})
    with Bench(settings) as bench:
        yield bench
        for process, _ in submit._started.values():
            process.terminate()
            process.wait(20)


def new_database(server: str) -> str:
    """Empty the one database of the tests, which is quicker than making another."""
    import psycopg

    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return "postgres"


def empty(url: str) -> str:
    import redis

    redis.Redis.from_url(url).flushall()
    return url


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that kill processes and start database servers take minutes: `make test-slow`."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
