"""A kind of job that counts, and remembers how far it came; and the processes that do it.

`python -m tests.jobs.toy TOKEN LANE` is a child, `python -m tests.jobs.toy worker` a worker, and
`python -m tests.jobs.toy submit` submits what standard input says, and then sleeps, as a web server would.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnknn.errors import DataError
from attnknn.jobs import JobSettings, JobStore
from attnknn.jobs.child import Context, serve

CHILD = [sys.executable, "-m", "tests.jobs.toy"]


def count(context: Context) -> Mapping[str, Any]:
    """Count to `to`, resting `rest` seconds before each; `trouble` happens at `at`, as long as `trouble` says."""
    spec = context.job.spec
    checkpoint = context.draft / "count"
    number = int(checkpoint.read_text()) if checkpoint.exists() else 0
    context.say("log", {"line": f"counting from {number}"})
    context.report("Counting", number / spec["to"])
    while number < spec["to"]:
        time.sleep(spec.get("rest", 0.0))
        context.pause_point()
        number += 1
        if spec.get("trouble") and number == spec["at"]:
            TROUBLES[spec["trouble"]](context)
        remember(checkpoint, str(number) + "\n" * spec.get("bytes", 0))
        context.report("Counting", number / spec["to"], {"number": number})
    context.check()
    if "ledger" in spec:
        with Path(spec["ledger"]).open("a") as ledger:
            ledger.write(f"{context.job.id} {number}\n")
    return {"count": number}


def remember(place: Path, text: str) -> None:
    draft = place.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(place)


def once(context: Context) -> bool:
    """Whether this happens for the first time."""
    mark = context.draft / "happened"
    happened = mark.exists()
    mark.touch()
    return not happened


def be_killed(context: Context) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def be_killed_once(context: Context) -> None:
    if once(context):
        be_killed(context)


def abort(context: Context) -> None:
    signal.signal(signal.SIGABRT, signal.SIG_DFL)
    os.abort()


def refuse(context: Context) -> None:
    raise DataError("The data must be there.", "It cannot be downloaded.", "Connect to the network.")


def break_down(context: Context) -> None:
    raise KeyError("secret/path")


def run_out_of_memory(context: Context) -> None:
    raise MemoryError


def hear_nothing(context: Context) -> None:
    time.sleep(60)


def refuse_to_go(context: Context) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)


def limit_files(context: Context) -> None:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, before[1]))
    try:
        context.draft.joinpath("weights").write_bytes(b"0" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def lose_folder(context: Context) -> None:
    error = PermissionError(13, "Permission denied")
    error.filename = str(context.draft)
    raise error


TROUBLES = {
    trouble.__name__: trouble
    for trouble in (
        be_killed,
        be_killed_once,
        abort,
        refuse,
        break_down,
        run_out_of_memory,
        hear_nothing,
        refuse_to_go,
        limit_files,
        lose_folder,
    )
}


def warm_up() -> None:
    """Note that a child of this lane warms up, and do what WARM_UP says: die, fail, or nothing."""
    with JobSettings.from_environment().folder.joinpath("warmed").open("a") as ledger:
        ledger.write(f"{sys.argv[2]} {os.getpid()}\n")
    if os.environ["WARM_UP"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ["WARM_UP"] == "fail":
        raise KeyError


def main() -> None:
    settings = JobSettings.from_environment()
    role = sys.argv[1]
    if role == "worker":
        from attnknn.jobs.worker import Worker

        sys.exit(0 if Worker(settings, CHILD).run() else 7)
    elif role == "submit":
        from attnknn.jobs.doorbell import Doorbell

        store = JobStore(settings)
        for line in sys.stdin:
            job = store.submit("count", "Counting", json.loads(line))
            Doorbell(settings.queue).ring(job.id)
            print(job.id, flush=True)
        time.sleep(60)
    else:
        serve(settings, role, {"count": count}, warm_up)


if __name__ == "__main__":
    main()
