"""From a prediction to what the board draws."""

import base64
import io
import json
from functools import lru_cache

import numpy as np
import pytest
from PIL import Image

import attnknn
from attnknn import LabelNoise
from attnknn.evaluation.listening import listen_on_test
from attnknn.evaluation.response import RACING, respond_to_noise
from attnknn.ui.palette import class_colors
from attnknn.ui.present import FEATURES_ON_A_CARD, SHOWN_FIRST, describe_source, present
from attnknn.votes import COMPARED

CHECKPOINTS = ("digits", "iris", "breast_cancer")
load = lru_cache(attnknn.load)
NOISE = LabelNoise("symmetric", 0.4, seed=3)


@lru_cache
def listening(name):
    return {one.head: one.sentence for one in listen_on_test(load(name))}


def decide(name, row=5, k=9, noise=NOISE, temperature=1.4, selected=None):
    """A classifier, its prediction of one test item, and the board made of it."""
    trained = load(name)
    item = str(trained.queries.ids[row])
    prediction = trained.predict_items([item], k, noise, temperature)
    response = respond_to_noise(trained, trained.ask([item], k), k, noise, temperature)
    return trained, prediction, present(trained, prediction, response, "one line", listening(name), selected)


@pytest.fixture(scope="module", params=CHECKPOINTS)
def decided(request):
    return decide(request.param)


def test_a_board_is_plain_json(decided):
    board = decided[2]
    assert json.loads(json.dumps(board, allow_nan=False)) == json.loads(json.dumps(board))
    assert len(json.dumps(board)) < 60_000


def test_every_number_is_that_of_the_prediction(decided):
    _, prediction, board = decided
    facts = prediction.to_dict()
    for shown, fact in zip(board["neighbors"], facts["neighbors"], strict=True):
        for key in ("id", "rank", "distance", "clean_label", "observed_label", "is_flipped", "weights", "terms"):
            assert shown[key] == fact[key], key
        assert shown["share"] == pytest.approx(np.mean(fact["weights"]))
    for vote in board["votes"]:
        fact = facts["votes"][vote["name"]]
        assert vote["probabilities"] == [fact["probabilities"][name] for name in board["classes"]]
        assert vote["predicted"] == fact["predicted"]
        assert vote["is_correct"] == (fact["predicted"] == facts["label"])
        assert vote["effective"] == fact["effective_neighbors"]


def test_a_head_says_what_was_measured_of_it(decided):
    trained, prediction, board = decided
    assert [(head["name"], head["why"]) for head in board["heads"]] == list(listening(trained.name).items())
    assert all(head["why"].startswith("listens to ") and "of 16" in head["why"] for head in board["heads"])
    assert [head["name"] for head in board["heads"]] == list(prediction.heads)


def test_the_laws_of_a_vote_hold_on_the_board(decided):
    _, prediction, board = decided
    weights = np.array([neighbor["weights"] for neighbor in board["neighbors"]])
    sink = np.array([head["sink"] for head in board["heads"]])
    np.testing.assert_allclose(weights.sum(axis=0) + sink, 1)
    for head, shares in zip(board["heads"], (weights / weights.sum(axis=0)).T, strict=True):
        assert head["effective"] == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
    for vote in board["votes"]:
        assert sum(vote["probabilities"]) == pytest.approx(1)
        assert board["classes"][int(np.argmax(vote["probabilities"]))] == vote["predicted"]
    for vote in board["votes"][:3]:
        assert sum(vote["weights"]) + vote["sink"] == pytest.approx(1)
        prior = prediction.ballot.around.prior[0]
        tally = {name: vote["sink"] * float(prior[c]) for c, name in enumerate(board["classes"])}
        for weight, neighbor in zip(vote["weights"], board["neighbors"], strict=True):
            tally[neighbor["observed_label"]] += weight
        assert list(tally.values()) == pytest.approx(vote["probabilities"])


def test_three_votes_race_and_the_others_follow(decided):
    votes = decided[2]["votes"]
    assert tuple(vote["name"] for vote in votes) == SHOWN_FIRST
    assert tuple(vote["name"] for vote in votes[:3]) == RACING
    assert {vote["name"] for vote in votes} == set(COMPARED)
    assert all(vote["weights"] is None for vote in votes[3:])


def test_the_terms_of_a_score_give_the_weight(decided):
    board = decided[2]
    for h, head in enumerate(board["heads"]):
        score = np.array([sum(term[h] for term in neighbor["terms"].values()) for neighbor in board["neighbors"]])
        power = np.exp((score - score.max()) / board["temperature"])
        shown = [neighbor["weights"][h] for neighbor in board["neighbors"]]
        np.testing.assert_allclose((1 - head["sink"]) * power / power.sum(), shown, atol=1e-9)
    assert all(list(neighbor["terms"]) == board["terms"] for neighbor in board["neighbors"])


def test_the_curve_runs_through_the_votes_at_their_rate(decided):
    _, _, board = decided
    curve, truth = board["curve"], board["classes"].index(board["query"]["label"])
    place = curve["rates"].index(curve["rate"])
    for vote in board["votes"][:3]:
        assert curve["probability"][vote["name"]][place] == pytest.approx(vote["probabilities"][truth])
        leaves = curve["leaves"][vote["name"]]
        if vote["is_correct"]:
            assert leaves is None or leaves != curve["rate"]
        else:
            assert leaves is not None
            assert leaves <= curve["rate"]


def test_classes_have_their_own_colors_and_every_label_is_one(decided):
    trained, _, board = decided
    assert tuple(board["classes"]) == trained.class_names
    assert board["colors"] == class_colors(len(board["classes"]))
    labels = {neighbor[key] for neighbor in board["neighbors"] for key in ("clean_label", "observed_label")}
    assert labels | {board["query"]["label"]} <= set(board["classes"])


def test_one_atlas_holds_the_query_and_its_neighbors():
    trained, _, board = decide("digits", k=16)
    atlas = board["atlas"]
    picture = Image.open(io.BytesIO(base64.b64decode(atlas["url"].partition(",")[2])))
    size = picture.width // atlas["columns"]
    pixels = 255 - np.asarray(picture.convert("L"))
    for item in (board["query"], *board["neighbors"]):
        row, column = divmod(item["tile"], atlas["columns"])
        tile = pixels[row * size : (row + 1) * size, column * size : (column + 1) * size]
        ink = np.asarray(trained.bundle.input_of(item["id"])).astype(float)
        np.testing.assert_allclose(tile, ink * 255 / 16, atol=1)
    assert [neighbor["tile"] for neighbor in board["neighbors"]] == [*range(1, 17)]
    assert all(item["values"] is None for item in (board["query"], *board["neighbors"]))
    assert board["kind"] == "image"


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_a_table_shows_the_values_of_its_features(name):
    trained, _, board = decide(name)
    names = trained.card["dataset"]["feature_names"]
    assert board["kind"] == "table"
    assert board["atlas"] is None
    for item in (board["query"], *board["neighbors"]):
        known = dict(zip(names, np.asarray(trained.bundle.input_of(item["id"]), float), strict=True))
        assert all(float(value) == pytest.approx(known[feature], rel=1e-3) for feature, value in item["values"])
    assert [feature for feature, _ in board["query"]["values"]] == names
    assert all(len(neighbor["values"]) == min(FEATURES_ON_A_CARD, len(names)) for neighbor in board["neighbors"])


def test_a_card_shows_the_features_that_tell_flowers_apart():
    first = [feature for feature, _ in decide("iris")[2]["neighbors"][0]["values"]]
    assert {feature.split()[0] for feature in first[:2]} == {"petal"}


def test_the_nearest_is_chosen_unless_another_that_is_shown_is_asked_for():
    ids = [neighbor["id"] for neighbor in decide("iris")[2]["neighbors"]]
    assert decide("iris")[2]["selected"] == ids[0]
    assert decide("iris", selected=ids[4])[2]["selected"] == ids[4]
    assert decide("iris", selected="iris/train/none")[2]["selected"] == ids[0]


def test_one_neighbor_is_enough():
    board = decide("digits", k=1, noise=LabelNoise())[2]
    assert len(board["neighbors"]) == 1
    assert board["votes"][0]["effective"] == pytest.approx(1)


def test_the_source_of_a_view_is_one_line():
    trained, prediction, _ = decide("digits")
    line = describe_source(trained, prediction, "abc123")
    assert line == (
        "exact search over 1,005 entries · symmetric label noise 40%, seed 3, nested draws · attention: "
        f"{len(prediction.heads)} heads, fitted on 252 held-out queries · checkpoint digits (abc123)"
    )
    plain = describe_source(*decide("iris", noise=LabelNoise())[:2], "x")
    assert " · no label noise · " in plain
    assert "seed" not in plain


@pytest.mark.parametrize(
    ("noise", "added"),
    [(LabelNoise(), "no label noise added"), (NOISE, "symmetric label noise 40%, seed 3, nested draws added")],
)
def test_labels_that_were_wrong_from_the_start_are_not_called_clean(cleaned, noise, added):
    trained, _ = cleaned
    line = describe_source(trained, trained.predict_items(None, 3, noise), "x")
    assert f" · trained with labels: 40% symmetric label noise, cleaned once (drop) · {added} · " in line
    assert "clean labels" not in line
