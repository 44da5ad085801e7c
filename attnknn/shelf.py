"""What a visitor does with checkpoints: rename, put aside and take back, carry away and bring in.

delete_checkpoint   checkpoints/iris-2 → checkpoints/.trash/<time>.iris-2     (nothing is erased)
export_checkpoint   a folder → one zip; the same folder always gives the same bytes
import_checkpoint   one zip, trusted in nothing → a folder, once every hash agrees
"""

from __future__ import annotations

import io
import json
import re
import shutil
import stat
import time
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from attnknn.checkpoints import ARRAY_NAME, NAME, ROOT, Checkpoint, checkpoint_names, open_checkpoint
from attnknn.errors import CheckpointError, SettingError, StorageError, UnknownCheckpoint

TRASH = ".trash"
THROWN_AWAY = re.compile(rf"(\d{{13}})\.({NAME.pattern})")
MEMBER = re.compile(rf"(?:{NAME.pattern}/)?(card\.json|weights\.safetensors|bundle/{ARRAY_NAME.pattern}\.npy)")
LARGEST_ZIP = 64 * 2**20
LARGEST_FILE = 256 * 2**20
LARGEST_WHOLE = 512 * 2**20
MOST_FILES = 64
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can name, so that the time of export leaves no trace


@dataclass(frozen=True)
class ThrownAway:
    """A deleted checkpoint that can be taken back.

    Attributes:
        entry: Its folder in the trash.
        name: Its name before.
        time: When it was deleted, seconds since 1970.
    """

    entry: str
    name: str
    time: float


def delete_checkpoint(name: str, root: Path = ROOT) -> ThrownAway:
    """Move a checkpoint into the trash of its root; `restore_checkpoint` takes it back.

    Raises:
        UnknownCheckpoint: There is none of that name.
        StorageError: The folder cannot be written.
    """
    _expect_known(name, root)
    entry = f"{time.time_ns() // 1_000_000:013d}.{name}"
    with _written(root):
        (root / TRASH).mkdir(exist_ok=True)
        (root / TRASH / ".gitignore").write_text("*\n", encoding="utf-8")
        (root / name).rename(root / TRASH / entry)
    return _read_entry(entry)


def thrown_away(root: Path = ROOT) -> list[ThrownAway]:
    """List what can be taken back, the latest first."""
    entries = [path.parent.name for path in (root / TRASH).glob("*/card.json")]
    return [_read_entry(entry) for entry in sorted(entries, reverse=True) if THROWN_AWAY.fullmatch(entry)]


def restore_checkpoint(entry: str, root: Path = ROOT) -> str:
    """Take a checkpoint back out of the trash, under a free name if its own is taken by now.

    Returns:
        The name that it has now.

    Raises:
        UnknownCheckpoint: Nothing of that kind lies in the trash.
        StorageError: The folder cannot be written.
    """
    if entry not in [one.entry for one in thrown_away(root)]:
        raise UnknownCheckpoint(entry, [one.name for one in thrown_away(root)])
    return _place(root / TRASH / entry, _read_entry(entry).name, root)


def rename_checkpoint(name: str, new: str, root: Path = ROOT) -> None:
    """Give a checkpoint another name, also in its card.

    Raises:
        UnknownCheckpoint: There is none of that name.
        SettingError: The new name is taken, or cannot be one of a folder.
        StorageError: The folder cannot be written.
    """
    _expect_known(name, root)
    if not NAME.fullmatch(new):
        raise SettingError("name", new, "lower-case letters, digits, - and _, at most 64", "Choose another name.")
    if (root / new).exists():
        raise SettingError("name", new, "one that no checkpoint has yet", "Choose another name.")
    with _written(root):
        (root / name).rename(root / new)
        _write_name(root / new, new)


def export_checkpoint(name: str, root: Path = ROOT) -> bytes:
    """Pack a checkpoint into one zip; the same content gives the same bytes, whenever and wherever.

    Raises:
        UnknownCheckpoint: There is none of that name.
        DamagedCheckpoint: Its files are not what its card says.
    """
    checkpoint = open_checkpoint(name, root)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        for file in ["card.json", *sorted(checkpoint.card["files"])]:
            facts = zipfile.ZipInfo(f"{name}/{file}", EPOCH)
            facts.compress_type, facts.create_system, facts.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            packed.writestr(facts, (checkpoint.folder / file).read_bytes())
    return buffer.getvalue()


def import_checkpoint(
    content: bytes, root: Path = ROOT, check: Callable[[Checkpoint], object] = lambda checkpoint: None
) -> Checkpoint:
    """Unpack a zip from a stranger beside its place, and move it there once it has been checked.

    Names are checked before anything is read, sizes before anything is decoded, and every hash before
    it counts as a checkpoint.

    Args:
        content: The bytes of the zip: the files of one checkpoint, in one folder or in none.
        root: The folder of checkpoints.
        check: Looks closer at the unpacked checkpoint, before it is moved; what it raises refuses it.

    Returns:
        The checkpoint, under its own name or, where that is taken, a free one.

    Raises:
        CheckpointError: It is no zip of a checkpoint, too large, damaged, or written for another version.
        StorageError: The folder cannot be written, or the disk is full.
    """
    draft = root / f".import-{uuid.uuid4().hex}"
    try:
        with _written(root):
            (draft / "unpacked").mkdir(parents=True)
            _unpack(content, draft / "unpacked")
        unpacked = open_checkpoint("unpacked", draft)
        _expect_no_more(unpacked)
        check(unpacked)
        return open_checkpoint(_place(unpacked.folder, _own_name(unpacked.folder), root), root)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _unpack(content: bytes, folder: Path) -> None:
    if len(content) > LARGEST_ZIP:
        raise _refusal(f"It has {len(content):,} bytes; {LARGEST_ZIP:,} are allowed.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for file, facts in _members(packed.infolist()).items():
                (folder / file).parent.mkdir(exist_ok=True)
                with packed.open(facts) as source:
                    (folder / file).write_bytes(source.read(facts.file_size + 1))
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, ValueError) as error:
        raise _refusal(f"It could not be unpacked ({error}).") from error


def _members(listed: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Return the files by their place in the folder, after looking at names, kinds and declared sizes."""
    files = [facts for facts in listed if not facts.is_dir()]
    if len(files) > MOST_FILES or sum(facts.file_size for facts in files) > LARGEST_WHOLE:
        raise _refusal(f"It holds more than {MOST_FILES} files or {LARGEST_WHOLE:,} bytes.")
    found: dict[str, zipfile.ZipInfo] = {}
    for facts in files:
        match = MEMBER.fullmatch(facts.filename)
        kind = stat.S_IFMT(facts.external_attr >> 16)
        if match is None or kind not in (0, stat.S_IFREG) or facts.flag_bits & 1 or facts.file_size > LARGEST_FILE:
            raise _refusal(f"It holds {facts.filename[:80]!r}, which does not belong into one.")
        if match[1] in found:
            raise _refusal(f"It holds {match[1]} more than once.")
        found[match[1]] = facts
    if "card.json" not in found:
        raise _refusal("It holds no card.json.")
    return found


def _expect_no_more(checkpoint: Checkpoint) -> None:
    """Refuse files that no hash vouches for."""
    files = {path.relative_to(checkpoint.folder).as_posix() for path in checkpoint.folder.rglob("*") if path.is_file()}
    more = sorted(files - {*checkpoint.card["files"], "card.json"})
    if more:
        raise _refusal(f"It holds {more[0]}, which its card does not list.")


def _own_name(folder: Path) -> str:
    own = json.loads((folder / "card.json").read_text(encoding="utf-8")).get("name")
    return own if isinstance(own, str) and NAME.fullmatch(own) else "imported"


def _refusal(received: str) -> CheckpointError:
    expected = "The file must be one checkpoint, as a zip: a card, weights and a bundle of arrays."
    return CheckpointError(expected, received, "Choose a file that was exported here or with the same version.")


def _place(folder: Path, name: str, root: Path) -> str:
    """Move a folder to the first free name, and write that name into its card."""
    with _written(root):
        place = root / name
        number = 2
        while place.exists():
            tail = f"-{number}"
            place = root / (name[: 64 - len(tail)] + tail)
            number += 1
        _write_name(folder, place.name)
        folder.rename(place)
    return place.name


def _write_name(folder: Path, name: str) -> None:
    """Write a name into a card, if it can be read: the folder's name counts, and the hashes are of other files."""
    with suppress(ValueError):
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        draft = folder / ".card.json"
        draft.write_text(json.dumps(card | {"name": name}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(folder / "card.json")


def _expect_known(name: str, root: Path) -> None:
    if name not in checkpoint_names(root):
        raise UnknownCheckpoint(name, checkpoint_names(root))


def _read_entry(entry: str) -> ThrownAway:
    match = THROWN_AWAY.fullmatch(entry)
    assert match is not None
    return ThrownAway(entry, match[2], int(match[1]) / 1000)


@contextmanager
def _written(root: Path) -> Iterator[None]:
    """Explain that a folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            "The folder of checkpoints must be one that can be written.",
            f"{root.name}: {error.strerror}.",
            "Make room, or allow writing there; nothing was lost.",
        ) from error
