"""Tables that jobs make: tidy rows in a JSON file beside the drafts, read back by the id of the job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnknn.errors import StorageError
from attnknn.jobs import Job, JobSettings

LARGEST_TABLE = 64 * 2**20  # bytes


def table_path(draft: Path) -> Path:
    """Return where the table of a job lies, whose draft is that folder."""
    return draft.parents[1] / "results" / f"{draft.name}.json"


def write_table(draft: Path, rows: list[dict[str, Any]]) -> None:
    """Write the table of a job, in one step."""
    path = table_path(draft)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".half")
    half.write_text(json.dumps(rows), encoding="utf-8")
    half.replace(path)


def read_table(job: Job) -> list[dict[str, Any]]:
    """Read the table of a job that is done.

    Raises:
        StorageError: It is gone, or is no table.
    """
    path = table_path(JobSettings.from_environment().draft(job.id))
    expected = f"The table of job {job.id[:8]} must lie in {path.parent}."
    remedy = "Start the job again."
    try:
        if path.stat().st_size > LARGEST_TABLE:
            raise StorageError(expected, f"It has {path.stat().st_size:,} bytes.", remedy)
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StorageError(expected, f"It could not be read ({error}).", remedy) from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise StorageError(expected, "It holds something else than rows.", remedy)
    return rows
