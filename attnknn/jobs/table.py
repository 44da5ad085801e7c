"""The tables of the job layer."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, String, Table, Text, text

ACTIVE = ("queued", "running", "paused")
ENDED = ("done", "failed", "cancelled")
IS_ACTIVE = text(f"state IN {ACTIVE!r}")

metadata = MetaData()

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("title", String(200), nullable=False),
    Column("spec", Text, nullable=False),
    Column("spec_hash", String(64), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("lane", String(16), nullable=False, server_default="long"),
    Column("state", String(16), nullable=False, index=True),
    Column("wish", String(8)),
    Column("progress", Float, nullable=False, default=0.0),
    Column("stage", String(200), nullable=False, default=""),
    Column("attempt", Integer, nullable=False, default=0),
    Column("worker", String(32)),
    Column("lease_until", Float),
    Column("pid", Integer),
    Column("created", Float, nullable=False),
    Column("started", Float),
    Column("ended", Float),
    Column("error", Text),
    Column("result", Text),
    Column("furthest", Float, server_default="0"),  # the most progress so far; `progress` goes back after a crash
    Column("deaths", Integer, server_default="0"),  # how often its process died since it last got further
)
Index("one_active_job_per_spec", jobs.c.spec_hash, unique=True, sqlite_where=IS_ACTIVE, postgresql_where=IS_ACTIVE)

events = Table(
    "events",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("job", String(32), nullable=False, index=True),
    Column("time", Float, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("data", Text, nullable=False),
)

workers = Table(
    "workers",
    metadata,
    Column("token", String(32), primary_key=True),
    Column("host", String(200), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started", Float, nullable=False),
    Column("heartbeat", Float, nullable=False),
)
