"""Renamed, put aside, carried away and brought in: nothing is lost, and a stranger's file is trusted in nothing."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from attnknn import shelf as shelves
from attnknn.bundle import open_bundle
from attnknn.checkpoints import checkpoint_names, open_checkpoint
from attnknn.errors import CheckpointError, SchemaMismatch, SettingError, UnknownCheckpoint
from attnknn.shelf import (
    delete_checkpoint,
    export_checkpoint,
    import_checkpoint,
    rename_checkpoint,
    restore_checkpoint,
    thrown_away,
)


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "card.json"]
    return {path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest() for path in files}


# Deleting


def test_what_is_deleted_can_be_taken_back(bench: Path):
    before = contents(bench / "iris")
    thrown = delete_checkpoint("iris", bench)
    assert checkpoint_names(bench) == ()
    assert thrown_away(bench) == [thrown]
    assert (thrown.name, restore_checkpoint(thrown.entry, bench)) == ("iris", "iris")
    assert contents(bench / "iris") == before
    assert thrown_away(bench) == []
    assert open_checkpoint("iris", bench)


def test_what_is_taken_back_finds_its_name_taken_and_gets_another(bench: Path):
    shutil.copytree(bench / "iris", bench / "spare")
    thrown = delete_checkpoint("iris", bench)
    rename_checkpoint("spare", "iris", bench)
    assert restore_checkpoint(thrown.entry, bench) == "iris-2"
    assert checkpoint_names(bench) == ("iris", "iris-2")
    assert json.loads((bench / "iris-2" / "card.json").read_text())["name"] == "iris-2"


def test_a_damaged_checkpoint_can_be_deleted_and_taken_back(bench: Path):
    (bench / "iris" / "card.json").write_text("{")
    assert restore_checkpoint(delete_checkpoint("iris", bench).entry, bench) == "iris"


@pytest.mark.parametrize("name", ["", "..", ".trash", "nobody", "../iris", "/etc"])
def test_only_what_exists_can_be_deleted_renamed_or_exported(bench: Path, name: str):
    for act in (delete_checkpoint, export_checkpoint, restore_checkpoint):
        with pytest.raises(UnknownCheckpoint):
            act(name, bench)
    with pytest.raises(UnknownCheckpoint):
        rename_checkpoint(name, "new", bench)
    assert checkpoint_names(bench) == ("iris",)


# Renaming


def test_a_renamed_checkpoint_says_its_new_name(bench: Path):
    before = contents(bench / "iris")
    rename_checkpoint("iris", "flowers_2", bench)
    assert checkpoint_names(bench) == ("flowers_2",)
    assert json.loads((bench / "flowers_2" / "card.json").read_text())["name"] == "flowers_2"
    assert contents(bench / "flowers_2") == before
    assert open_checkpoint("flowers_2", bench)


@pytest.mark.parametrize("new", ["", "iris", "Iris", "a/b", "..", ".hidden", "a" * 65, "x\n"])
def test_a_name_that_is_taken_or_no_name_is_refused(bench: Path, new: str):
    with pytest.raises(SettingError):
        rename_checkpoint("iris", new, bench)
    assert checkpoint_names(bench) == ("iris",)


# Export and import


def test_an_export_is_the_same_whenever_and_wherever_it_is_made(bench: Path, tmp_path: Path):
    first = export_checkpoint("iris", bench)
    shutil.copytree(bench, tmp_path / "elsewhere")
    for path in (tmp_path / "elsewhere").rglob("*"):
        os.utime(path, (1, 1))
    assert export_checkpoint("iris", tmp_path / "elsewhere") == first


def test_what_is_imported_is_what_was_exported(bench: Path, tmp_path: Path):
    content = export_checkpoint("iris", bench)
    (tmp_path / "new").mkdir()
    assert import_checkpoint(content, tmp_path / "new", open_bundle).name == "iris"
    assert contents(tmp_path / "new" / "iris") == contents(bench / "iris")
    assert export_checkpoint("iris", tmp_path / "new") == content
    assert import_checkpoint(content, bench).name == "iris-2"
    assert checkpoint_names(bench) == ("iris", "iris-2")


def repack(content: bytes, change: Callable[[dict[str, bytes]], object], **attributes: int) -> bytes:
    """Take a zip apart, change its files, and pack it again."""
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        files = {facts.filename: packed.read(facts) for facts in packed.infolist()}
    change(files)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            facts = zipfile.ZipInfo(name)
            facts.compress_type = zipfile.ZIP_DEFLATED
            facts.external_attr = attributes.get(name.rsplit("/", 1)[-1].split(".")[0], 0)
            packed.writestr(facts, data)
    return buffer.getvalue()


def change_byte(files: dict[str, bytes]) -> None:
    data = files["iris/weights.safetensors"]
    files["iris/weights.safetensors"] = data[:-1] + bytes([data[-1] ^ 1])


def change_card(**values: object) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        files["iris/card.json"] = json.dumps(json.loads(files["iris/card.json"]) | values).encode()

    return change


CHANGES: dict[str, Callable[[dict[str, bytes]], object]] = {
    "climbs out": lambda files: files.update({"../evil.txt": b"x"}),
    "climbs out of a bundle": lambda files: files.update({"iris/bundle/../../evil.npy": b"x"}),
    "absolute": lambda files: files.update({"/etc/passwd": b"x"}),
    "backslashes": lambda files: files.update({"iris\\..\\evil.npy": b"x"}),
    "a pickle": lambda files: files.update({"iris/model.pkl": b"x"}),
    "a script": lambda files: files.update({"iris/bundle/run.py": b"x"}),
    "the same twice": lambda files: files.update({"card.json": files["iris/card.json"]}),
    "unlisted": lambda files: files.update({"iris/bundle/more.npy": b"x"}),
    "no card": lambda files: files.pop("iris/card.json"),
    "no weights": lambda files: files.pop("iris/weights.safetensors"),
    "a card that is no JSON": lambda files: files.update({"iris/card.json": b"\xff{"}),
    "a byte changed": change_byte,
    "another file listed": change_card(files={"../../x": {"bytes": 1, "sha256": ""}, "weights.safetensors": {}}),
    "many files": lambda files: files.update(
        {f"iris/bundle/{chr(97 + i // 26)}{chr(97 + i % 26)}.npy": b"" for i in range(70)}
    ),
}


def assert_refused(content: bytes, root: Path) -> str:
    before = sorted(path for path in root.parent.rglob("*"))
    with pytest.raises(CheckpointError) as refused:
        import_checkpoint(content, root, open_bundle)
    assert sorted(path for path in root.parent.rglob("*")) == before
    return str(refused.value)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_file_that_is_not_a_sound_checkpoint_leaves_no_trace(
    bench: Path, change: Callable[[dict[str, bytes]], object]
):
    assert_refused(repack(export_checkpoint("iris", bench), change), bench)


def test_a_link_in_a_zip_is_refused(bench: Path):
    content = repack(export_checkpoint("iris", bench), lambda files: None, weights=(stat.S_IFLNK | 0o777) << 16)
    assert "weights.safetensors" in assert_refused(content, bench)


def test_a_zip_of_another_schema_says_so(bench: Path):
    content = repack(export_checkpoint("iris", bench), change_card(schema=99))
    with pytest.raises(SchemaMismatch):
        import_checkpoint(content, bench)


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all" * 100, b"PK\x05\x06" + bytes(18)])
def test_what_is_no_zip_is_refused(bench: Path, content: bytes):
    assert_refused(content, bench)


def test_every_way_of_cutting_or_changing_a_zip_is_refused_or_harmless(bench: Path):
    content = export_checkpoint("iris", bench)
    sound = contents(bench / "iris")
    for step in range(1, 40):
        place = step * len(content) // 40
        for broken in (content[:place], content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]):
            try:
                found = import_checkpoint(broken, bench)
            except CheckpointError:
                continue
            assert contents(found.folder) == sound
            shutil.rmtree(found.folder)
    assert sorted(path.name for path in bench.iterdir()) == ["iris"]


def test_sizes_are_looked_at_before_anything_is_decoded(bench: Path, monkeypatch: pytest.MonkeyPatch):
    content = export_checkpoint("iris", bench)
    for limit in ("LARGEST_ZIP", "LARGEST_FILE", "LARGEST_WHOLE"):
        with monkeypatch.context() as small:
            small.setattr(shelves, limit, 1000)
            small.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("decoded"))
            assert_refused(content, bench)


@pytest.mark.parametrize("name", ["../evil", 7, None, "", "UPPER"])
def test_a_name_in_a_card_that_is_none_is_replaced(bench: Path, name: object):
    content = repack(export_checkpoint("iris", bench), change_card(name=name))
    assert import_checkpoint(content, bench).name == "imported"


def test_what_the_caller_refuses_is_not_imported(bench: Path):
    def refuse(checkpoint: object) -> None:
        raise SettingError("heads", "7", "fewer", "Choose fewer.")

    with pytest.raises(SettingError):
        import_checkpoint(export_checkpoint("iris", bench), bench, refuse)
    assert sorted(path.name for path in bench.iterdir()) == ["iris"]
