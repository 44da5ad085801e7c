"""One file from the network: in steps that can be watched and stopped, and taken up where they ended."""

from __future__ import annotations

import re
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

CHUNK = 1 << 18
PATIENCE = 30  # seconds without an answer


class Interrupted(Exception):
    """The network, or the other side, did not give the whole file; says why."""


def download(address: str, path: Path, see: Callable[[int], None]) -> None:
    """Add what is missing to a file, from an address.

    Args:
        address: Where the whole file is.
        path: A file for what comes; what it holds already is not asked for again, where the other side allows that.
        see: Called with the bytes the file has, between chunks; whatever it raises ends the download.

    Raises:
        Interrupted: If not all of it came.
        OSError: If it cannot be written.
    """
    had = path.stat().st_size if path.exists() else 0
    with _open(address, had) as answer:
        continues = answer.status == 206 and _first_byte(answer) == had
        if answer.status == 206 and not continues:
            raise Interrupted("The server sent another part than the one that was asked for.")
        left = answer.length
        with path.open("ab" if continues else "wb") as file:
            got = had if continues else 0
            see(got)
            while chunk := _read(answer):
                file.write(chunk)
                got += len(chunk)
                see(got)
    whole = None if left is None else (had if continues else 0) + left
    if whole is not None and got < whole:
        raise Interrupted(f"The connection ended after {got} of {whole} bytes.")


def _open(address: str, had: int) -> HTTPResponse:
    headers = {"User-Agent": "attnknn"} | ({"Range": f"bytes={had}-"} if had else {})
    try:
        answer: HTTPResponse = urlopen(Request(address, headers=headers), timeout=PATIENCE)
    except HTTPError as error:
        error.close()
        if error.code == 416 and had:  # it has no byte so late: what we hold is not a part of it
            return _open(address, 0)
        raise Interrupted(f"The server answered {error.code} {error.reason}.") from error
    except (OSError, HTTPException) as error:
        raise Interrupted(f"There was no answer: {getattr(error, 'reason', error)}.") from error
    return answer


def _read(answer: HTTPResponse) -> bytes:
    try:
        return answer.read1(CHUNK)
    except (OSError, HTTPException) as error:
        raise Interrupted(f"The connection broke: {error}.") from error


def _first_byte(answer: HTTPResponse) -> int | None:
    found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return int(found[1]) if found else None
