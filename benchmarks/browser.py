"""A server and a browser for benchmarks: real ones, on this machine alone."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ROOT = Path(__file__).resolve().parent.parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the Chromium of this machine, or Playwright's own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def server(script: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run `streamlit run script` from the root of the project, and end it."""
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    command += ["--server.address", "127.0.0.1", "--server.headless", "true"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(10)


def wait_for_health(port: int, seconds: float = 60) -> None:
    """Return as soon as the server answers.

    Raises:
        TimeoutError: If it does not within `seconds`.
    """
    give_up = time.perf_counter() + seconds
    while time.perf_counter() < give_up:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1)
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError(f"no server answered on port {port} within {seconds} s")
