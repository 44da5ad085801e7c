"""What `streamlit run app.py` starts, and with which settings."""

import subprocess
import sys
import urllib.request

from tests.e2e.servers import serve
from tests.ui.apps import REPOSITORY

COUNT_COLLECTIONS = """
import gc
from streamlit import config
from tests.ui.apps import open_app

assert config.get_option("runner.postScriptGC") is False
assert config.get_option("client.showErrorDetails") == "none"
assert config.get_option("browser.gatherUsageStats") is False

open_app(checkpoint="iris")
calls = []
collect, gc.collect = gc.collect, lambda *generations: calls.append(generations) or 0
open_app(checkpoint="iris")
config.set_option("runner.postScriptGC", True)
before = len(calls)
open_app(checkpoint="iris")
print(before, len(calls) - before)
"""


def test_a_server_starts_and_is_well():
    with serve() as url, urllib.request.urlopen(url, timeout=20) as answer:
        assert answer.status == 200
        assert b"<title>" in answer.read()


def test_no_garbage_is_collected_after_a_run():
    """A hidden option of Streamlit's: with it on, every run holds the interpreter for about 0.1 s."""
    command = [sys.executable, "-c", COUNT_COLLECTIONS]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    collected, with_the_option = map(int, done.stdout.split())
    assert collected == 0
    assert with_the_option > 0
