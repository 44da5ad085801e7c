"""The doorbell: huey carries one job id, as JSON, so that a worker need not wait for its next look at the table."""

from __future__ import annotations

import json
from typing import Any

from huey import Huey, PostgresHuey, RedisHuey, SqliteHuey
from huey.registry import Message
from huey.serializer import Serializer

from attnknn.errors import JobError

QUEUE = "attnknn"


class JsonSerializer(Serializer):
    """Messages as JSON: whoever can write the queue must not thereby run code in the worker."""

    def _serialize(self, data: Message) -> bytes:
        return json.dumps(list(data)).encode("utf-8")

    def _deserialize(self, data: bytes) -> Message:
        return Message(*json.loads(bytes(data)))


class Doorbell:
    """A queue of job ids. A ring that gets lost delays a job by a second: workers read the table as well."""

    def __init__(self, url: str) -> None:
        self._huey = _open(url)
        self._take = self._huey.task(name="take")(_never_run)

    def ring(self, job_id: str) -> None:
        """Tell some worker that a job waits."""
        self._huey.enqueue(self._take.s(job_id))

    def answer(self) -> str | None:
        """Return the id of a job that somebody rang for, or None."""
        task = self._huey.dequeue()
        return None if task is None else str(task.args[0])


def _open(url: str) -> Huey:
    """Open the queue that a URL names: `sqlite:///file`, `redis://…` or `postgresql://…`.

    Raises:
        JobError: The URL names another kind of queue.
    """
    common: dict[str, Any] = {"name": QUEUE, "serializer": JsonSerializer(), "results": False}
    kind = url.split(":", 1)[0].split("+", 1)[0]
    if kind == "sqlite":
        return SqliteHuey(filename=url.removeprefix("sqlite:///"), strict_fifo=True, **common)
    if kind in ("redis", "rediss"):
        return RedisHuey(url=url, read_timeout=1, **common)
    if kind in ("postgresql", "postgres"):
        return PostgresHuey(dsn=url.replace("postgresql+psycopg://", "postgresql://", 1), read_timeout=1, **common)
    raise JobError(
        "The queue must be SQLite, Redis or PostgreSQL.",
        f'ATTNKNN_QUEUE_URL starts with "{kind}:".',
        "Use sqlite:///file, redis://host/0 or postgresql://host/name.",
    )


def _never_run(job_id: str) -> None:
    """Stand for a job in the queue; a worker reads the id and looks the job up in the table."""
