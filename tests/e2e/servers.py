"""The app as `streamlit run app.py` serves it, on a free port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import psutil
from sqlalchemy import select

from attnknn.jobs import JobSettings, JobStore
from attnknn.jobs.table import workers
from tests.ui.apps import REPOSITORY


@contextmanager
def serve(port: int | None = None, **variables: str) -> Iterator[str]:
    """Start a server, on a free port or a given one, wait until it says that it is well, and give its address."""
    address, port = "127.0.0.1", port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    command += ["--server.port", str(port), "--server.address", address]
    environment = os.environ | variables
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield wait_until_well(process, f"http://{address}:{port}")
        finally:
            process.terminate()
            process.wait(20)


def end_workers(variables: Mapping[str, str]) -> None:
    """End the workers that a server with these variables has started, and their children."""
    store = JobStore(JobSettings.from_environment(variables))
    with store.engine.connect() as connection:
        pids = list(connection.execute(select(workers.c.pid)).scalars())
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            worker = psutil.Process(pid)
            family = [*worker.children(recursive=True), worker]
            for process in family:
                process.terminate()
            for process in psutil.wait_procs(family, 10)[1]:
                process.kill()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until_well(process: subprocess.Popen[bytes], url: str, seconds: float = 60) -> str:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert process.poll() is None, "the server ended by itself"
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
                if answer.read() == b"ok":
                    return url
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.05)
    raise TimeoutError(f"the server was not well after {seconds} seconds")
