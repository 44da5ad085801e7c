"""A real server, a real browser, and what no page may ever do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Playwright, expect

from tests.e2e.servers import serve

PATIENCE = 30_000  # milliseconds
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync"
NO_BROWSER = "BROWSER TESTS DID NOT RUN: install Chromium (apt install chromium), or `playwright install chromium`."

expect.set_options(timeout=PATIENCE)
skipped: list[str] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in set(skipped):
        terminalreporter.write_line(line, red=True, bold=True)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, object], playwright: Playwright) -> dict[str, object]:
    """Debian's Chromium, or else the one Playwright brings."""
    found = shutil.which("chromium") or playwright.chromium.executable_path
    if not Path(found).exists():
        skipped.append(NO_BROWSER)
        pytest.skip(NO_BROWSER)
    return {**browser_type_launch_args, "executable_path": found, "args": FLAGS.split()}


@pytest.fixture(scope="session")
def base_url(browser_type_launch_args: dict[str, object]) -> Iterator[str]:
    with serve() as url:
        yield url


@pytest.fixture(scope="session")
def visitor(browser: Browser, base_url: str) -> Iterator[BrowserContext]:
    """One browser for all tests, so that Streamlit's own scripts are fetched once."""
    context = browser.new_context(base_url=base_url, viewport={"width": 1500, "height": 1000}, accept_downloads=True)
    yield context
    context.close()


@pytest.fixture
def page(visitor: BrowserContext) -> Iterator[Page]:
    """A new tab, watched: it must stay with its own server and say nothing is wrong."""
    tab = visitor.new_page()
    problems = watch(tab)
    yield tab
    exceptions = tab.get_by_test_id("stException").count()
    tab.close()
    assert exceptions == 0
    assert not problems


def watch(tab: Page) -> list[str]:
    """Collect what goes wrong in a tab: errors of scripts, and requests to anybody else."""
    problems: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(f"console: {message.text}")

    def fail(error: Error) -> None:
        problems.append(f"script: {error}")

    tab.on("console", hear)
    tab.on("pageerror", fail)
    tab.on("request", lambda request: problems.extend(strangers(request.url)))
    return problems


def strangers(url: str) -> list[str]:
    host = urlsplit(url.removeprefix("blob:")).hostname
    return [f"request: {url}"] if host not in (None, "127.0.0.1") else []
