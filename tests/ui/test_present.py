"""From one query to what the board needs of it."""

import base64
import io
import json
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from PIL import Image

import attnknn
from attnknn import LabelNoise
from attnknn.bundle import POOL
from attnknn.config import NOISE_KINDS
from attnknn.evaluation.listening import listen_on_test
from attnknn.evaluation.response import RACING
from attnknn.ui import live, state
from attnknn.ui.board import Picker
from attnknn.ui.palette import class_colors
from attnknn.ui.present import FEATURES_ON_A_CARD, SHOWN_FIRST, describe_source, know, present
from attnknn.ui.state import Setting
from attnknn.votes import COMPARED, TITLES

CHECKPOINTS = ("digits", "iris", "breast_cancer")
load = lru_cache(attnknn.load)
known = lru_cache(lambda name: know(load(name), "abc123"))
walk = lru_cache(lambda name, seed: live.walk(load(name), seed))
NOISE = LabelNoise("symmetric", 0.4, seed=3)
PICKER: Picker = {"ids": ["digits/test/0"], "finders": ["random"], "words": ""}
SETTING = Setting(9, 1.4, NOISE, muted=("nearest",), averages=True)


@lru_cache
def show(name, item=None, setting=SETTING, heard=0):
    """The board of one item, by default the sixth test query."""
    trained = load(name)
    query = trained.ask([item or str(trained.queries.ids[5])])
    return present(trained, query, walk(name, setting.noise.seed), setting, known(name), PICKER, heard=heard)


@pytest.fixture(scope="module", params=CHECKPOINTS)
def shown(request):
    return load(request.param), show(request.param)


def test_a_board_is_plain_json_and_small(shown):
    trained, board = shown
    text = json.dumps(board, allow_nan=False)
    print(f"{trained.name}: {len(text) / 1000:.0f} kB")
    assert json.loads(text) == json.loads(json.dumps(board))
    assert len(text) < 300_000


def test_the_votes_are_cast_from_what_is_laid_out(shown):
    trained, board = shown
    query = trained.ask([board["query"]["id"]])
    assert board["live"] == live.lay_out(walk(trained.name, 3), query, trained.fitted, NOISE)
    nearest = trained.entries.ids[query.pool.entries[0]][:POOL]
    assert board["live"]["ids"] == nearest.tolist()
    assert board["query"]["label"] == trained.class_names[query.labels[0]]


def test_the_board_is_set_as_the_setting_says(shown):
    trained, board = shown
    noise = {"rate": NOISE.rate, "kind": NOISE.kind, "seed": NOISE.seed}
    expected = vars(SETTING) | {"flips": {}, "dropped": [], "muted": ["nearest"]} | noise
    assert board["setting"] == {name: value for name, value in expected.items() if name != "noise"}
    assert board["heard"] == 0
    assert show(trained.name, heard=7)["heard"] == 7


def test_what_is_changed_by_hand_is_set_and_laid_out():
    trained = load("iris")
    near = [str(entry) for entry in trained.entries.ids[trained.ask([str(trained.queries.ids[5])]).pool.entries[0]]]
    far = next(str(entry) for entry in trained.entries.ids if entry not in near)
    flips = {near[2]: 1, far: 2}
    setting = replace(SETTING, flips=flips, dropped=(near[0],), neighbor=near[4])
    board = show.__wrapped__("iris", setting=setting)
    assert board["setting"]["flips"] == flips
    assert board["setting"]["dropped"] == [near[0]]
    assert board["setting"]["neighbor"] == near[4]
    assert board["live"]["flips"] == {near[2]: 1}
    assert board["live"] != show("iris")["live"]


def test_what_can_be_set_is_what_a_link_may_say(shown):
    trained, board = shown
    controls = board["controls"]
    assert controls["largest_k"] == min(64, trained.queries.pool.k)
    assert controls["temperatures"] == list(state.TEMPERATURES)
    assert controls["kinds"] == list(NOISE_KINDS)
    assert 100 * controls["highest_rate"] == len(board["live"]["rates"]) - 1
    limits = state.Limits(
        9, controls["largest_k"], len(board["classes"]), trained.fitted.attention.heads, bool, bool, 1
    )
    highest = {"k": controls["largest_k"], "seed": controls["largest_seed"], "noise": controls["highest_rate"]}
    for name, value in highest.items():
        assert not state.read({name: str(value)}, limits)[1]
        assert state.read({name: str(value + 1)}, limits)[1]


def test_a_head_says_what_was_measured_of_it(shown):
    trained, board = shown
    measured = [{"name": one.head, "why": one.sentence} for one in listen_on_test(trained)]
    assert board["heads"] == measured
    assert all(head["why"].startswith("listens to ") and "of 16" in head["why"] for head in board["heads"])
    assert [head["name"] for head in board["heads"]] == board["live"]["fitted"]["heads"]


def test_three_votes_race_and_the_others_follow(shown):
    votes = shown[1]["votes"]
    assert tuple(vote["name"] for vote in votes) == SHOWN_FIRST
    assert tuple(vote["name"] for vote in votes[:3]) == RACING
    assert {vote["name"]: vote["title"] for vote in votes} == {name: TITLES[name] for name in COMPARED}


def test_classes_have_their_own_colors(shown):
    trained, board = shown
    assert tuple(board["classes"]) == trained.class_names
    assert board["colors"] == class_colors(len(board["classes"]))


def read_tiles(atlas, n):
    """The first n tiles of an atlas, as ink."""
    picture = Image.open(io.BytesIO(base64.b64decode(atlas["url"].partition(",")[2])))
    size, pixels = picture.width // atlas["columns"], 255 - np.asarray(picture.convert("L"))
    places = [divmod(tile, atlas["columns"]) for tile in range(n)]
    return [pixels[row * size : (row + 1) * size, column * size : (column + 1) * size] for row, column in places]


def test_one_atlas_holds_the_query_and_its_neighbors_and_then_what_classes_look_like():
    trained, board = load("digits"), show("digits")
    items = [board["query"]["id"], *board["live"]["ids"]]
    inputs, labels = trained.bundle.arrays["entry_inputs"].astype(float), trained.entries.labels
    expected = [trained.bundle.input_of(item).astype(float) for item in items]
    expected += [inputs[labels == c].mean(axis=0) for c in range(10)]
    for tile, ink in zip(read_tiles(board["atlas"], len(expected)), expected, strict=True):
        np.testing.assert_allclose(tile, ink * 255 / 16, atol=1)
    assert board["kind"] == "image"
    assert board["values"] is None
    assert board["query"]["values"] is None


def test_a_picture_that_is_no_item_is_shown_as_it_came():
    trained, picture = load("digits"), np.eye(8) * 16
    key, logits = trained.queries.keys[:1], trained.queries.logits[:1]
    query = trained.ask_embedded(key, logits, 64, ["own/1"])
    board = present(trained, query, walk("digits", 3), SETTING, known("digits"), PICKER, picture)
    np.testing.assert_allclose(read_tiles(board["atlas"], 1)[0], np.eye(8) * 255, atol=1)
    assert board["query"] == {"id": "own/1", "label": None, "values": None}


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_a_table_shows_the_values_of_its_features(name):
    trained, board = load(name), show(name)
    names = trained.card["dataset"]["feature_names"]
    assert board["kind"] == "table"
    assert board["atlas"] is None
    items = [board["query"]["id"], *board["live"]["ids"]]
    for item, values in zip(items, [board["query"]["values"], *board["values"]], strict=True):
        truth = dict(zip(names, np.asarray(trained.bundle.input_of(item), float), strict=True))
        assert all(float(value) == pytest.approx(truth[feature], rel=1e-3) for feature, value in values)
    assert [feature for feature, _ in board["query"]["values"]] == names
    assert all(len(values) == min(FEATURES_ON_A_CARD, len(names)) for values in board["values"])


def test_a_card_shows_the_features_that_tell_flowers_apart():
    first = [feature for feature, _ in show("iris")["values"][0]]
    assert {feature.split()[0] for feature in first[:2]} == {"petal"}


def test_an_entry_is_left_out_of_its_own_neighbors():
    entry = str(load("digits").entries.ids[0])
    board = show("digits", entry)
    assert board["query"]["id"] == entry
    assert entry not in board["live"]["ids"]


def test_the_source_of_a_view_says_what_no_control_changes():
    trained = load("digits")
    assert (
        show("digits")["source"]
        == describe_source(trained, "abc123")
        == {
            "search": "exact search over 1,005 entries",
            "labels": "",
            "fit": f"attention: {len(trained.fitted.attention.heads)} heads, fitted on 252 held-out queries · "
            "checkpoint digits (abc123)",
        }
    )


def test_labels_that_were_wrong_from_the_start_are_told(cleaned):
    trained, _ = cleaned
    told = describe_source(trained, "x")["labels"]
    assert told == "trained with labels: 40% symmetric label noise, cleaned once (drop)"
