"""Private servers of PostgreSQL and Redis on free ports, from Debian's packages."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

PATIENCE = 30.0


def program(name: str, package: str) -> str:
    """Find a program; without it, its tests fail where everything must be there, and are skipped elsewhere."""
    found = shutil.which(name) or next(map(str, sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), None)
    if found:
        return found
    why = f"{name} is not installed; apt-get install {package}"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class PostgreSQL:
    """A server of its own that can be stopped and started; as root, it runs as the user postgres."""

    def __init__(self) -> None:
        self._initdb, self._postgres = (program(name, "postgresql") for name in ("initdb", "postgres"))
        pytest.importorskip("psycopg")
        self._folder, port = Path(tempfile.mkdtemp(prefix="pg-")), free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{port}"
        options = {
            "fsync": "off",
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": self._folder,
        }
        self._options = [f"--{name}={value}" for name, value in options.items()]
        self._quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self._folder}
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
            self._quiet |= {"user": "postgres", "group": "postgres", "extra_groups": []}

    def __enter__(self) -> Self:
        choices = ["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8"]
        subprocess.run([self._initdb, "-D", self._folder / "data", *choices], check=True, **self._quiet)
        self.start()
        return self

    def __exit__(self, *facts: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        import psycopg

        command = [self._postgres, "-D", self._folder / "data", *self._options]
        self._server = subprocess.Popen(command, **self._quiet)
        wait(lambda: psycopg.connect(f"{self.url}/postgres", connect_timeout=2).close(), self._server)

    def stop(self) -> None:
        stop(self._server)


@contextmanager
def redis() -> Iterator[str]:
    """Yield the URL of a server of its own that keeps nothing."""
    server_program = program("redis-server", "redis-server")
    library = pytest.importorskip("redis")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        command = [server_program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        url = f"redis://127.0.0.1:{port}/0"
        try:
            wait(lambda: library.Redis.from_url(url).ping(), server)
            yield url
        finally:
            stop(server)


def wait(knock: Callable[[], object], server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            knock()
        except Exception as error:
            if server.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"{server.args} did not come up") from error
            time.sleep(0.05)
        else:
            return


def stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(2)
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
