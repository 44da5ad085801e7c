"""huey as a queue of job ids: which kind a URL names, and messages in JSON."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

from huey import Huey, PostgresHuey, RedisHuey, SqliteHuey
from huey.registry import Message
from huey.serializer import Serializer

from attnknn.jobs.opening import sqlite_path

log = logging.getLogger("attnknn.jobs")


class JsonSerializer(Serializer):
    """Messages as JSON: whoever can write the queue must not thereby run code in the worker."""

    def _serialize(self, data: Message) -> bytes:
        return json.dumps(list(data)).encode("utf-8")

    def _deserialize(self, data: bytes) -> Message:
        return Message(*json.loads(bytes(data)))


def open_queue(url: str, lane: str) -> Huey:
    """Open the queue of a lane where a URL says: `sqlite:///file`, `redis://…` or `postgresql://…`."""
    common: dict[str, Any] = {"name": f"attnknn-{lane}", "serializer": JsonSerializer(), "results": False}
    if url.startswith("sqlite"):
        return SqliteHuey(filename=str(sqlite_path(url)), strict_fifo=True, **common)
    if url.startswith("redis"):
        return RedisHuey(url=url, read_timeout=1, **common)
    return PostgresHuey(dsn=re.sub(r"^postgres[^:]*:", "postgresql:", url), read_timeout=1, **common)


def put(huey: Huey, job_id: str) -> None:
    """Put a job id into the queue."""
    huey.enqueue(huey.task(name="take")(_never_run).s(job_id))


def take(huey: Huey) -> str | None:
    """Take the next job id out of the queue; whoever wrote nonsense into it is ignored."""
    data = huey.storage.dequeue()
    if data is None:
        return None
    try:
        job_id = huey.serializer.deserialize(bytes(data)).args[0]
    except (ValueError, TypeError, IndexError, KeyError, AttributeError):
        log.warning("a message in the queue of jobs was not understood")
        return None
    return job_id if isinstance(job_id, str) else None


def _never_run(job_id: str) -> None:
    """Stand for a job in the queue; a worker reads the id and looks the job up in the table."""
