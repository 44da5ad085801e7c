"""What `docs/formats.md` says is enough to write a checkpoint, is true, and leaves nothing out.

`tests/foreign.py` knows the document only; here it meets the product.
"""

import copy
import hashlib
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import attnknn
from attnknn.bundle import SHAPES
from attnknn.checkpoints import ROOT, checkpoint_names, open_checkpoint
from attnknn.cli import app
from attnknn.config import NOISE_KINDS, EmbedderConfig, LabelNoise, TrainingConfig
from attnknn.errors import AttnKNNError, CheckpointError
from attnknn.models.attention import HEADS
from attnknn.models.embedders import Embedder
from attnknn.models.terms import TERMS
from attnknn.prepared import has_bundle
from attnknn.votes import COMPARED
from tests import foreign

FORMATS = (Path(__file__).parent.parent / "docs" / "formats.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([^`\n]+)`", FORMATS))
EXAMPLE = json.loads(re.search(r"```json\n(.*?)```", FORMATS, re.S)[1])
MEGABYTES_SHIPPED = 12
COMPLETE = [name for name in checkpoint_names() if has_bundle(open_checkpoint(name))]
"""Shipped with their bank. Of the others only weights and card travel."""

# ---- The document, read as tables ----------------------------------------------------------------


def rows_of(heading):
    """Cells of the tables below a heading, whose first cell is code, without their headers."""
    section = re.split(rf"^#+ {re.escape(heading)}$", FORMATS, flags=re.M)[1]
    section = re.split(r"^#+ ", section, flags=re.M)[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def paths_of(value, path=""):
    """Dotted paths of a JSON document, the items of a list collapsed to one."""
    if isinstance(value, dict) and value:
        return {deep for key, part in value.items() for deep in paths_of(part, f"{path}.{key}".lstrip("."))}
    if isinstance(value, list) and any(isinstance(part, dict) for part in value):
        return {deep for part in value for deep in paths_of(part, f"{path}[]")}
    return {path}


def run_json(*arguments, root=ROOT):
    result = CliRunner().invoke(app, ["--checkpoints", str(root), *arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    tensors = foreign.draw_tensors(rng)
    return tensors, foreign.draw_arrays(rng, tensors)


@pytest.fixture
def tiny(parts, tmp_path):
    """The folder of a foreign checkpoint; its parent is the root."""
    return foreign.write_checkpoint(tmp_path, EXAMPLE, *parts)


# ---- The writer's checkpoint is read -------------------------------------------------------------


def test_foreign_checkpoint_predicts_test_queries_and_entries(tiny):
    classifier = attnknn.load("tiny", tiny.parent)
    assert classifier.class_names == ("left", "right")
    prediction = classifier.predict_items(["tiny/test/0", "tiny/train/0é"])
    query, entry = prediction.to_dict(0), prediction.to_dict(1)
    assert (query["k"], query["label"], entry["label"]) == (3, "left", "left")
    assert not {"tiny/train/0é", "tiny/train/2é"} & {neighbor["id"] for neighbor in entry["neighbors"]}
    for vote in (*query["votes"].values(), *entry["votes"].values()):
        assert sum(vote["calibrated"].values()) == pytest.approx(1)


def test_foreign_embedder_finds_the_keys_that_were_written(tiny, parts):
    classifier, (_, arrays) = attnknn.load("tiny", tiny.parent), parts
    by_id, new = classifier.predict_items(), classifier.predict(arrays["query_inputs"])
    np.testing.assert_allclose(new.queries.keys, by_id.queries.keys, atol=1e-5)
    np.testing.assert_allclose(new.queries.logits, by_id.queries.logits, atol=1e-4)
    np.testing.assert_array_equal(new.neighbors, by_id.neighbors)


def test_foreign_checkpoint_is_listed_and_measured(tiny):
    listed = run_json("checkpoints", root=tiny.parent)["checkpoints"]
    assert [(row["name"], row["entries"], row["problem"]) for row in listed] == [("tiny", 12, None)]
    assert len(run_json("evaluate", "tiny", root=tiny.parent)["results"]) == len(COMPARED)


def test_foreign_checkpoint_can_be_shown(tiny):
    from attnknn.evaluation.listening import listen_on_test
    from attnknn.ui import live
    from attnknn.ui.present import know, present
    from attnknn.ui.state import Setting

    classifier = attnknn.load("tiny", tiny.parent)
    query, setting = classifier.ask(["tiny/test/0"], 3), Setting(3)
    walk, picker = live.walk(classifier, setting.noise.seed), {"ids": [], "finders": [], "words": ""}
    data = present(classifier, query, walk, setting, know(classifier, "0"), picker)
    assert [head["why"] for head in data["heads"]] == [one.sentence for one in listen_on_test(classifier)]
    assert [name for name, _ in data["query"]["values"]] == EXAMPLE["dataset"]["feature_names"]
    assert data["live"]["ids"] == classifier.entries.ids[query.pool.entries[0]].tolist()


# ---- What it says is needed is needed, and no more -----------------------------------------------


def without(card, path):
    """The card without one field; without it in every file or row, where there are several."""
    card = copy.deepcopy(card)
    *parents, last = path.replace("[]", "").split(".")
    places = [card]
    for parent in parents:
        places = list(places[0].values()) if parent == "{path}" else [place[parent] for place in places]
    for place in places:
        for item in place if isinstance(place, list) else [place]:
            item.pop(last, None)
    return card


@pytest.mark.parametrize(("path", "needed"), [(row[0].strip("`"), row[2]) for row in rows_of("Fields")])
def test_fields_are_needed_as_the_document_says(path, needed, tiny, parts):
    card = json.loads((tiny / "card.json").read_text(encoding="utf-8"))
    (tiny / "card.json").write_text(json.dumps(without(card, path)), encoding="utf-8")
    if needed == "to load":
        with pytest.raises(CheckpointError):
            attnknn.load("tiny", tiny.parent)
        return
    classifier = attnknn.load("tiny", tiny.parent)
    assert len(classifier.predict_items(k=3)) == 5
    if needed == "for new inputs":
        with pytest.raises((AttnKNNError, KeyError, ValueError)):
            classifier.predict(parts[1]["query_inputs"])
    else:
        assert needed in ("no", "for the page")
        assert len(classifier.predict(parts[1]["query_inputs"], k=3)) == 5


@pytest.mark.parametrize("name", SHAPES)
def test_every_array_is_needed(name, parts, tmp_path):
    tensors, arrays = parts
    foreign.write_checkpoint(tmp_path, EXAMPLE, tensors, {key: array for key, array in arrays.items() if key != name})
    with pytest.raises(CheckpointError, match=name):
        attnknn.load("tiny", tmp_path)


@pytest.mark.parametrize("name", sorted(foreign.draw_tensors(np.random.default_rng(0))))
def test_tensors_are_needed_as_the_document_says(name, parts, tmp_path):
    tensors, arrays = parts
    foreign.write_checkpoint(tmp_path, EXAMPLE, {key: tensor for key, tensor in tensors.items() if key != name}, arrays)
    if name.startswith("embedder."):
        with pytest.raises(CheckpointError):
            attnknn.load("tiny", tmp_path).predict(arrays["query_inputs"])
    else:
        with pytest.raises(CheckpointError):
            attnknn.load("tiny", tmp_path)


# ---- What it says of the numbers is true of shipped checkpoints ----------------------------------


@cache
def read_shipped(name):
    return foreign.read_checkpoint(ROOT / name)


def assert_votes(classifier, card, tensors, arrays, noise):
    k = card["config"]["attention"]["k"]
    y = foreign.flip(card, arrays, noise.kind, noise.rate, noise.seed)
    for kind, row in (("query", 0), ("query", 3), ("entry", 0), ("entry", 5)):
        item = arrays[f"{kind}_ids"][row].decode()
        said = classifier.predict_items([item], noise=noise).to_dict()["votes"]
        hand = foreign.ByHand(card, tensors, arrays, y, k, kind, row)
        for vote in COMPARED:
            np.testing.assert_allclose(list(said[vote]["probabilities"].values()), hand.probabilities(vote), atol=1e-5)
            np.testing.assert_allclose(list(said[vote]["calibrated"].values()), hand.calibrated(vote), atol=1e-5)


NOISES = (LabelNoise(), *(LabelNoise(kind, 0.5, seed=1) for kind in NOISE_KINDS))


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: f"{noise.kind}-{noise.rate}")
@pytest.mark.parametrize("name", COMPLETE)
def test_shipped_votes_follow_from_the_document(name, noise):
    assert_votes(attnknn.load(name), *read_shipped(name), noise)


@pytest.mark.parametrize("variant", ["trusted and typical", "nearest and familiar", "a class without entries"])
def test_foreign_votes_follow_from_the_document(variant, parts, tmp_path):
    (tensors, arrays), card = parts, EXAMPLE
    if variant == "nearest and familiar":
        more, numbers = foreign.draw_familiar(np.random.default_rng(1))
        card, tensors = copy.deepcopy(card | more), tensors | numbers
        card["config"]["attention"]["heads"] = card["attention"]["heads"]
    if variant == "a class without entries":
        arrays = arrays | {"entry_labels": 0 * arrays["entry_labels"]}
    foreign.write_checkpoint(tmp_path, card, tensors, arrays)
    for noise in NOISES if variant != "a class without entries" else NOISES[:1]:
        assert_votes(attnknn.load("tiny", tmp_path), card, tensors, arrays, noise)


@pytest.mark.parametrize("name", COMPLETE)
def test_hash_follows_from_the_dataset(name):
    dataset = attnknn.load_dataset(name)
    content = name.encode()
    for array in (dataset.inputs, dataset.labels.astype("<i8")):
        content += f"|{array.dtype.str}{array.shape}|".encode() + array.tobytes()
    assert read_shipped(name)[0]["dataset"]["hash"] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("name", COMPLETE)
def test_keys_follow_from_the_inputs(name):
    card, tensors, arrays = read_shipped(name)
    embed = {"cnn": foreign.embed_images, "mlp": foreign.embed_rows}[card["config"]["embedder"]["kind"]]
    keys, logits = embed(arrays["query_inputs"][:6].astype(np.float64), tensors)
    np.testing.assert_allclose(keys, arrays["query_keys"][:6], atol=1e-4)
    np.testing.assert_allclose(logits, arrays["query_logits"][:6], atol=1e-3)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("shape", [(28, 28), (32, 32, 3), (11, 14, 3)])
def test_keys_of_larger_images_follow_from_their_pixels(shape, members):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3, *shape), dtype=np.uint8)
    torch.manual_seed(0)
    embedder = Embedder(EmbedderConfig("fast_cnn", dimension=8, width=4, members=members), shape, 5)
    embedder.learn_scale(images)
    for tensor in embedder.state_dict().values():
        if tensor.ndim == 1 and tensor.is_floating_point():  # biases, and what norms remember
            tensor.uniform_(0.5, 1.5)
    keys, logits = embedder.embed(images)
    tensors = {f"embedder.{name}": array for name, array in embedder.arrays().items()}
    found = foreign.embed_pictures(images.astype(np.float64), tensors)
    np.testing.assert_allclose(keys, found[0], atol=1e-5)
    np.testing.assert_allclose(logits, found[1], atol=1e-4)
    assert np.ptp(keys, axis=0).max() > 0.01


@pytest.mark.parametrize("name", COMPLETE)
def test_bundles_keep_what_the_document_promises(name):
    card, _, arrays = read_shipped(name)
    keys, groups = arrays["entry_keys"], arrays["entry_groups"]
    entries, queries = arrays["entry_ids"].tolist(), arrays["query_ids"].tolist()
    assert len({*entries, *queries}) == len(entries) + len(queries) == card["sizes"]["fit"] + card["sizes"]["test"]
    np.testing.assert_allclose(np.linalg.norm([*keys, *arrays["query_keys"]], axis=1), 1, atol=1e-6)
    assert groups.min() >= 0
    size, duplicates = arrays["entry_neighborhoods"].shape[1], np.bincount(groups).max()
    assert size == 24 >= 20 + duplicates
    for row in range(0, len(queries), 40):
        rows, distances = foreign.nearest(arrays["query_keys"][row], keys, entries, groups >= 0)
        assert arrays["query_neighbors"][row].tolist() == rows[:64]
        np.testing.assert_array_equal(arrays["query_distances"][row], distances[:64].astype("f4"))
    for row in range(0, len(entries), 40):
        rows, _ = foreign.nearest(keys[row], keys, entries, groups != groups[row])
        assert arrays["entry_neighborhoods"][row].tolist() == rows[:24]
    np.testing.assert_allclose(arrays["class_confusion"].sum(axis=1), 1, atol=1e-5)
    assert not np.diag(arrays["class_confusion"]).any()


# ---- It names everything -------------------------------------------------------------------------


def first_cells(heading):
    return {row[0].strip("`") for row in rows_of(heading)}


def test_every_array_is_named():
    assert first_cells("4. The bundle") == set(SHAPES)


@pytest.mark.parametrize("name", checkpoint_names())
def test_every_tensor_is_named(name):
    # Members, layers, and the numbers of a norm are described together.
    alike = [(r"networks\.\d+\.", ""), (r"layers\.\d+", "layers.{n}"), (r"(layers\.{n}\.2)\.\w+", r"\1.*")]
    names = set(read_shipped(name)[1])
    for pattern, one in alike:
        names = {re.sub(pattern, one, tensor) for tensor in names}
    assert names <= NAMED


def test_every_term_and_vote_is_named():
    assert first_cells("Terms") == set(TERMS)
    assert first_cells("Votes") == set(COMPARED)
    for name, _, said in rows_of("Terms"):
        seen_by = {head for head in HEADS if name.strip("`") in HEADS[head].terms}
        assert (set(HEADS) if said == "all" else set(re.findall(r"\w+", said))) == seen_by


def test_every_field_of_the_cards_is_named_and_none_is_stale():
    found = set()
    for name in checkpoint_names():
        card, _, _ = read_shipped(name)
        found |= paths_of({key: part for key, part in card.items() if key != "files"})
        found |= {f"files.{{path}}.{fact}" for facts in card["files"].values() for fact in facts}
        assert set(card["files"]) <= {"weights.safetensors", *(f"bundle/{array}.npy" for array in SHAPES)}
    found |= paths_of({"config": TrainingConfig().to_dict()})  # cards of earlier versions lack what came since
    assert first_cells("Fields") == found


def test_every_field_of_predict_is_named():
    said = run_json("predict", "iris", "--query", "iris/test/0", "--k", "3")
    found = {re.sub(r"\.terms\..+", ".terms.{term}", path) for path in paths_of(said)}
    found = {re.sub(r"^votes\.\w+", "votes.{vote}", path) for path in found}
    found = {re.sub(r"\.(probabilities|calibrated)\..+", r".\1.{class}", path) for path in found}
    assert first_cells("predict --json") == found | {"neighbors"}


def test_every_field_of_evaluate_is_named():
    assert first_cells("evaluate --json") == paths_of(run_json("evaluate", "iris")) | {"results"}


def test_every_file_and_field_of_a_saved_bank_is_named(tmp_path):
    attnknn.MemoryBank.build(np.eye(3), [0, 1, 1], ["a", "b", "c"]).save(tmp_path)
    section = FORMATS.split("## 6.")[1].split("## 7.")[0]
    assert all(path.name in section for path in tmp_path.iterdir())
    card = json.loads((tmp_path / "bank.json").read_text("utf-8"))
    assert first_cells("6. A saved memory bank") == {*card, "files.{path}"} - {"files"}
    for name, kind in {"keys": "float32", "labels": "int64", "ids": "<U1", "groups": "int64"}.items():
        assert np.load(tmp_path / f"{name}.npy").dtype == kind
        assert re.search(rf"{name}\.npy +{kind.strip('<1')} ", section)


# ---- What ships ----------------------------------------------------------------------------------


def test_shipped_checkpoints_are_small():
    shipped = [path for name in checkpoint_names() for path in (ROOT / name).rglob("*") if path.is_file()]
    assert 0 < sum(path.stat().st_size for path in shipped) < MEGABYTES_SHIPPED * 10**6


@pytest.mark.parametrize("name", checkpoint_names())
def test_readme_says_where_each_came_from(name):
    readme, (card, _, _) = (ROOT / "README.md").read_text("utf-8"), read_shipped(name)
    section = re.split(rf"^## {name}$", readme, flags=re.M)[1].split("\n## ")[0]
    for fact in (card["command"], card["dataset"]["source"], card["dataset"]["licence"], card["dataset"]["title"]):
        assert fact in section
    said = float(re.search(r"about ([\d.]+) MB", section)[1]) * 10**6
    size = sum(path.stat().st_size for path in (ROOT / name).rglob("*") if path.is_file())
    assert said == pytest.approx(size, rel=0.2)
