"""What a run said, as curves, neighbors, sentences and a log. Pure: events in, plain data out."""

from __future__ import annotations

import base64
import binascii
import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from attnknn.config import TrainingConfig
from attnknn.jobs import Event, Job
from attnknn.ui.atlas import pack_atlas
from attnknn.ui.labels import is_round, write_round
from attnknn.ui.palette import class_colors
from attnknn.ui.strip import Look, Shown, StripData

COLUMNS = ("epoch", "loss", "held_out_accuracy")
RECENT = 20  # epochs that the speed is taken from
PAUSE = 30.0  # seconds between two epochs after which the earlier ones say nothing about the speed
TRAINING = "Training the embedder"


def curve_table(events: Iterable[Event]) -> dict[str, list[float]]:
    """Lay out numbers by epoch; an epoch that was done again after an interruption counts once, as it was last."""
    rows = _by_epoch(events)
    complete = [row for row in rows if all(isinstance(row.get(name), int | float) for name in COLUMNS)]
    return {name: [float(row[name]) for row in complete] for name in COLUMNS}


def cleanings(events: Iterable[Event]) -> dict[int, dict[str, Any]]:
    """Collect what each round of cleaning did, by its number; one done again counts as it was last."""
    return {event.data["round"]: event.data for event in events if is_round(event.data)}


def n_epochs(job: Job) -> int:
    """Return how many epochs a job will have, over all rounds; 0 if its spec does not say."""
    config = config_of(job)
    return config.n_epochs if config else 0


def config_of(job: Job) -> TrainingConfig | None:
    """Return what a job trains; None if its spec does not say."""
    try:
        return TrainingConfig.from_dict(job.spec["config"])
    except (KeyError, TypeError, ValueError):
        return None


def time_left(job: Job, events: Sequence[Event]) -> float | None:
    """Estimate seconds to go from the pace of the latest epochs; None before two of them ended, or after the last.

    The epochs are the only part whose pace is known; what follows takes the share of the bar that it takes.
    """
    ended = [event for event in events if isinstance(event.data.get("epoch"), int)]
    if job.state != "running" or job.stage != TRAINING or len(ended) < 2:
        return None
    recent = [ended[-1]]
    for event in reversed(ended[-RECENT - 1 : -1]):
        if recent[0].time - event.time > PAUSE or event.data["epoch"] >= recent[0].data["epoch"]:
            break
        recent.insert(0, event)
    epochs = recent[-1].data["epoch"] - recent[0].data["epoch"]
    if epochs < 1 or not 0 < job.progress < 1:
        return None
    per_epoch = (recent[-1].time - recent[0].time) / epochs
    done = ended[-1].data["epoch"]
    return per_epoch * done * (1 - job.progress) / job.progress


def write_duration(seconds: float) -> str:
    """Write a duration in words, no finer than it is known.

    Example:
        >>> [write_duration(seconds) for seconds in (0.4, 12, 75, 4000)]
        ['1 s', '12 s', '1 min 15 s', '1 h 6 min']
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def write_left(seconds: float) -> str:
    """Write what is left, in steps that do not flicker.

    Example:
        >>> [write_left(seconds) for seconds in (3, 13, 100)]
        ['a few seconds left', 'about 15 s left', 'about 2 min left']
    """
    if seconds < 8:
        return "a few seconds left"
    if seconds < 60:
        return f"about {5 * math.ceil(seconds / 5)} s left"
    return f"about {write_duration(60 * math.ceil(seconds / 60))} left"


def log_lines(job: Job, events: Iterable[Event]) -> str:
    """Write what a job said, a line each, with the time of the server."""
    lines = [(job.created, "asked for")]
    lines += [(event.time, _line(event.data)) for event in events]
    if job.ended:
        lines.append((job.ended, job.state))
    return "\n".join(f"{time.strftime('%H:%M:%S', time.localtime(when))}  {line}" for when, line in lines)


def strip(events: Iterable[Event]) -> StripData | None:
    """Lay out one query's neighbors over the epochs; None before the first look."""
    rows = [row for row in _by_epoch(events) if "query" in row and "neighbors" in row]
    if not rows:
        return None
    pictures: dict[str, np.ndarray] = {}
    looks = [_look(row, pictures) for row in rows]
    tile_of = {item: tile for tile, item in enumerate(pictures)}
    for shown in (one for look in looks for one in look["shown"]):
        shown["tile"] = tile_of.get(shown["id"])
    atlas = pack_atlas(np.stack(list(pictures.values()))) if pictures else None
    n_classes = 1 + max((one["class"] for look in looks for one in look["shown"]), default=0)
    return {"looks": looks, "atlas": atlas, "colors": class_colors(n_classes)}


def _look(row: dict[str, Any], pictures: dict[str, np.ndarray]) -> Look:
    ids = [str(row["query"]), *map(str, row["neighbors"])]
    pictures.update(zip(ids, _tiles(row, len(ids)), strict=False))
    labels, classes = row.get("labels", ids), row.get("classes", [0] * len(ids))
    names, values = row.get("features", []), row.get("values", [[]] * len(ids))
    shown: list[Shown] = [
        {
            "id": ids[i],
            "label": str(labels[i]),
            "class": int(classes[i]),
            "tile": None,
            "values": _pairs(names, values[i]),
        }
        for i in range(len(ids))
    ]
    return {"epoch": int(row["epoch"]), "shown": shown}


def _pairs(names: list[str], values: list[str]) -> list[tuple[str, str]]:
    return [(str(name), str(value)) for name, value in zip(names, values, strict=False)]


def _tiles(row: dict[str, Any], n: int) -> list[np.ndarray]:
    """Decode pixels; none, where they are not what they say."""
    shape, tiles = tuple(row.get("tile_shape", ())), row.get("tiles", [])
    try:
        return [np.frombuffer(base64.b64decode(tile, validate=True), np.uint8).reshape(shape) for tile in tiles[:n]]
    except (binascii.Error, ValueError, TypeError):
        return []


def _by_epoch(events: Iterable[Event]) -> list[dict[str, Any]]:
    rows = {event.data["epoch"]: event.data for event in events if isinstance(event.data.get("epoch"), int)}
    return [rows[epoch] for epoch in sorted(rows)]


def _line(data: dict[str, Any]) -> str:
    """Write the plain parts of an event."""
    words = [str(data[name]) for name in ("stage", "line") if name in data]
    if "epoch" in data:
        words.append(f"epoch {data['epoch']}")
        words += [f"round {data['round']} of {data['rounds']}"] if "rounds" in data else []
    if isinstance(data.get("loss"), float):
        words.append(f"loss {data['loss']:.4f}")
    if isinstance(data.get("held_out_accuracy"), float):
        words.append(f"held-out accuracy {data['held_out_accuracy']:.1%}")
    if is_round(data):
        words.append(write_round(data))
    return " · ".join(words)
