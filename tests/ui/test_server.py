"""What `streamlit run app.py` starts, and with which settings."""

import inspect
import json
import subprocess
import sys
import urllib.request

import pytest
from streamlit.runtime.scriptrunner import script_runner

from tests.e2e.servers import serve
from tests.ui.apps import REPOSITORY

SETTINGS = {
    "runner.postScriptGC": False,
    "global.minCachedMessageSize": 1e9,
    "runner.magicEnabled": False,
    "client.showErrorDetails": "none",
    "client.toolbarMode": "minimal",
    "browser.gatherUsageStats": False,
    "server.fileWatcherType": "none",
}
ASK = """
import json, sys
import streamlit as st
print(json.dumps({name: st.get_option(name) for name in sys.argv[1:]}))
"""


def test_a_server_starts_and_is_well():
    with serve() as url, urllib.request.urlopen(url, timeout=20) as answer:
        assert answer.status == 200
        assert b"<title>" in answer.read()


@pytest.fixture(scope="module")
def in_force():
    """The options that a page sees when it is served from the repository."""
    command = [sys.executable, "-c", ASK, *SETTINGS]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_of_the_repository_are_in_force(in_force, name):
    assert in_force[name] == SETTINGS[name]


def test_the_hidden_option_still_decides_whether_garbage_is_collected_after_a_run():
    """With it on, every run holds the interpreter for about 0.1 s, and the next visitor waits."""
    source = inspect.getsource(script_runner)
    assert source.count("gc.collect") == 1
    assert 'if config.get_option("runner.postScriptGC"):\n            gc.collect' in source
