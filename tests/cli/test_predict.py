"""One decision: its JSON key by key, the laws its numbers obey, and its tables."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image, ImageDraw

from attnknn.bundle import POOL
from attnknn.by_hand import ByHand, decide_by_hand
from attnknn.checkpoints import ROOT
from attnknn.classifier import load
from attnknn.config import LabelNoise
from attnknn.data.uploads import LARGEST_FILE, fit_picture
from attnknn.votes import COMPARED, TITLES

from .conftest import run_process

ASKED = ["predict", "iris", "--query", "iris/test/3", "--k", "6", "--noise", "0.4", "--seed", "2"]
HEADS = ["nearest", "trusted"]
ENTRY = "iris/train/17"


@pytest.fixture
def answer(run_json):
    return run_json(*ASKED)


def test_json_is_the_prediction(answer, root):
    prediction = load("iris", root).predict_items(["iris/test/3"], 6, LabelNoise("symmetric", 0.4, 2))
    assert answer == prediction.to_dict()


def test_every_key_is_there(answer):
    facts = {
        "query": "iris/test/3",
        "k": 6,
        "noise_rate": 0.4,
        "noise_kind": "symmetric",
        "seed": 2,
        "temperature": 1.0,
    }
    assert answer | facts == answer
    assert set(answer) == {*facts, "label", "heads", "sink", "neighbors", "votes"}
    assert answer["heads"] == HEADS
    assert len(answer["neighbors"]) == 6
    for rank, neighbor in enumerate(answer["neighbors"], start=1):
        labels = {"clean_label", "observed_label", "is_flipped"}
        assert set(neighbor) == {"id", "rank", "distance", *labels, "weights", "share", "terms", "scores"}
        assert neighbor["rank"] == rank
        assert neighbor["is_flipped"] == (neighbor["clean_label"] != neighbor["observed_label"])
        assert len(neighbor["weights"]) == len(neighbor["scores"]) == len(HEADS)
        assert all(len(part) == len(HEADS) for part in neighbor["terms"].values())
    assert list(answer["votes"]) == list(COMPARED)
    for vote in answer["votes"].values():
        assert set(vote) == {"probabilities", "calibrated", "predicted", "effective_neighbors"}
        assert set(vote["probabilities"]) == set(vote["calibrated"]) == {"setosa", "versicolor", "virginica"}


def test_weights_and_sink_of_each_head_sum_to_one(answer):
    weights = np.array([neighbor["weights"] for neighbor in answer["neighbors"]])
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=0) + answer["sink"], 1, atol=1e-6)


def test_terms_add_up_to_scores_and_shares_are_means_of_weights(answer):
    for neighbor in answer["neighbors"]:
        np.testing.assert_allclose(np.sum(list(neighbor["terms"].values()), axis=0), neighbor["scores"], atol=1e-9)
        assert neighbor["share"] == pytest.approx(np.mean(neighbor["weights"]), abs=1e-12)


def test_neighbors_come_nearest_first_and_are_not_the_query(answer):
    distances = [neighbor["distance"] for neighbor in answer["neighbors"]]
    assert distances == sorted(distances)
    assert all(neighbor["id"].startswith("iris/train/") for neighbor in answer["neighbors"])


def test_probabilities_sum_to_one_and_calibration_changes_no_winner(answer):
    for vote in answer["votes"].values():
        for kind in ("probabilities", "calibrated"):
            assert sum(vote[kind].values()) == pytest.approx(1, abs=1e-9)
        assert vote["calibrated"][vote["predicted"]] == max(vote["calibrated"].values())


def test_heads_average_to_the_attention_vote(answer):
    heard = dict.fromkeys(answer["votes"]["attention"]["probabilities"], 0.0)
    for neighbor in answer["neighbors"]:
        heard[neighbor["observed_label"]] += neighbor["share"]
    sink = np.mean(answer["sink"])
    for label, probability in answer["votes"]["attention"]["probabilities"].items():
        assert heard[label] - 1e-9 <= probability <= heard[label] + sink + 1e-9


def test_stdout_of_a_process_is_one_document(root, answer):
    done = run_process(*ASKED, "--json", root=root)
    assert json.loads(done.stdout) == answer
    assert done.stderr == ""


def test_an_entry_may_be_asked_about_and_never_votes_for_itself(run_json, root):
    entry = str(load("iris", root).entries.ids[0])
    found = run_json("predict", "iris", "--query", entry)
    assert found["query"] == entry
    assert entry not in {neighbor["id"] for neighbor in found["neighbors"]}


def test_a_hot_vote_is_uniform_over_the_neighbors(run_json):
    hot = run_json(*ASKED, "--temperature", "1e9")
    weights = np.array([neighbor["weights"] for neighbor in hot["neighbors"]])
    np.testing.assert_allclose(weights, np.broadcast_to(weights[0], weights.shape), rtol=1e-6)
    assert hot["temperature"] == 1e9


def test_the_tables_name_every_neighbor_head_sink_and_vote(run, answer):
    shown = run(*ASKED).stdout
    assert f"iris/test/3 is {answer['label']}: its 6 nearest entries, 40 % symmetric label noise" in shown
    lines = {line.split("  ")[0].strip(): line for line in shown.splitlines()}
    for neighbor in answer["neighbors"]:
        cells = lines[neighbor["id"]].split()
        assert cells[1] == neighbor["observed_label"]
        assert (neighbor["clean_label"] in cells[2:3]) == neighbor["is_flipped"]
        numbers = [*neighbor["weights"], neighbor["share"]]
        assert cells[-3:] == [f"{number:.3f}" for number in numbers]
    assert lines["none of these"].split()[-3:-1] == [f"{mass:.3f}" for mass in answer["sink"]]
    for vote, found in answer["votes"].items():
        assert found["predicted"] in lines[TITLES[vote]]


def test_a_picture_is_fitted_and_decided_without_a_label(run, run_json, tmp_path):
    picture = Image.new("RGB", (300, 300), "white")
    ImageDraw.Draw(picture).line([(80, 60), (220, 60), (140, 250)], "black", 30)
    picture.save(tmp_path / "seven.png")
    asked = ["predict", "digits", "--image", tmp_path / "seven.png", "--k", "5", "--noise", "0.2"]
    found = run_json(*asked, root=ROOT)
    digits = load("digits")
    values = fit_picture(picture, digits.bundle.arrays["entry_inputs"]).values
    assert found == digits.predict(values[None], 5, LabelNoise("symmetric", 0.2, 0)).to_dict()
    assert found["label"] is None
    assert found["votes"]["attention"]["predicted"] == "7"
    shown = run(*asked, root=ROOT).stdout
    assert "input/0 is of unknown label: its 5 nearest entries" in shown


def test_what_is_changed_by_hand_is_decided_by_hand(run_json, answer, root):
    first, second, third = (neighbor["id"] for neighbor in answer["neighbors"][:3])
    asked = [*ASKED, "--flip", f"{first}:2", "--flip", f"{third}:1", "--drop", second, "--mute", "nearest"]
    found, iris = run_json(*asked), load("iris", root)
    by_hand = ByHand({first: 2, third: 1}, (second,), ("nearest",))
    noise = LabelNoise("symmetric", 0.4, 2)
    assert found == decide_by_hand(iris, iris.ask(["iris/test/3"], 6), by_hand, 6, noise).to_dict()
    assert found["heads"] == ["trusted"]
    before = [neighbor["id"] for neighbor in answer["neighbors"]]
    after = [neighbor["id"] for neighbor in found["neighbors"]]
    assert after[:5] == [first, *before[2:]]
    assert after[5] not in before, "the next nearest moves up"
    assert [neighbor["observed_label"] for neighbor in found["neighbors"][:2]] == ["virginica", "versicolor"]


def test_of_two_labels_for_one_entry_the_last_counts(run_json, answer):
    nearest = answer["neighbors"][0]["id"]
    twice = run_json(*ASKED, "--flip", f"{nearest}:2", "--flip", f"{nearest}:1")
    assert twice == run_json(*ASKED, "--flip", f"{nearest}:1")


def test_a_picture_is_decided_by_hand_as_well(run_json, tmp_path):
    Image.new("RGB", (30, 30), "white").save(tmp_path / "nothing.png")
    asked = ["predict", "digits", "--image", tmp_path / "nothing.png", "--k", "5"]
    before = run_json(*asked, root=ROOT)
    first, second = (neighbor["id"] for neighbor in before["neighbors"][:2])
    after = run_json(*asked, "--flip", f"{second}:8", "--drop", first, "--mute", before["heads"][0], root=ROOT)
    assert [neighbor["id"] for neighbor in after["neighbors"][:4]] == [one["id"] for one in before["neighbors"][1:]]
    assert after["neighbors"][0]["observed_label"] == "8"
    assert after["heads"] == before["heads"][1:]
    assert after["label"] is None


def test_somebody_must_be_left_who_votes(run, run_json, root):
    iris = load("iris", root)
    everybody = iris.entries.ids[iris.ask(["iris/test/3"]).pool.entries[0]]
    drops = [word for entry in everybody for word in ("--drop", entry)]
    assert len(everybody) == POOL
    refused = run("predict", "iris", "--query", "iris/test/3", *drops, code=2)
    assert refused.stderr.startswith("--drop must be at most 63 of the 64 nearest entries. It was all of them.")
    (left,) = run_json("predict", "iris", "--query", "iris/test/3", *drops[2:])["neighbors"]
    assert left["id"] == everybody[0]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "--image must be a file that can be read."),
        (b"GIF89a", "A picture must be a PNG, JPEG or WEBP file"),
        (b"\0" * (LARGEST_FILE + 2), "It has 5,242,881 bytes."),
    ],
    ids=["missing", "gif", "large"],
)
def test_a_file_that_is_no_picture_is_a_sentence(run, tmp_path, content, sentence):
    path = tmp_path / "picture.png"
    if content is not None:
        path.write_bytes(content)
    result = run("predict", "digits", "--image", path, root=ROOT, code=2)
    assert result.stdout == ""
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--query", "iris/test/999"], 'There is no "iris/test/999". Ids look like iris/test/0.'),
        (["--query", ""], 'There is no "".'),
        ([], "--query must be given, or else --image. It was neither."),
        (["--query", "iris/test/0", "--image", "a.png"], "It was both."),
        (["--image", "nowhere.png"], "A picture needs a checkpoint of pictures."),
        (["--query", "iris/test/0", "--k", "banana"], "--k must be a whole number of at least 1. It was banana."),
        (["--query", "iris/test/0", "--k", "1000"], "It was 1000."),
        (["--query", "iris/test/0", "--k", "9" * 5000], "--k must be a whole number of at least 1."),
        (["--query", "iris/test/0", "--noise", "lots"], "--noise must be a share between 0 and 1. It was lots."),
        (["--query", "iris/test/0", "--noise-kind", "Pair"], "It was Pair."),
        (["--query", "iris/test/0", "--seed", "0.5"], "It was 0.5."),
        (["--query", "iris/test/0", "--temperature", "0"], "--temperature must be a positive number. It was 0."),
        (["--query", "iris/test/0", "--temperature", "inf"], "It was inf."),
        (["--query", "iris/test/0", "--temperature", "warm"], "It was warm."),
        (["--query", "iris/test/0", "--flip", "nobody:1"], "--flip must be the id of an entry and a class from 0 to 2"),
        (["--query", "iris/test/0", "--flip", "iris/test/3:1"], "It was iris/test/3:1."),
        (["--query", "iris/test/0", "--flip", f"{ENTRY}:3"], "Class 0 is setosa, class 2 is virginica."),
        (["--query", "iris/test/0", "--flip", f"{ENTRY}:-1"], f"It was {ENTRY}:-1."),
        (["--query", "iris/test/0", "--flip", f"{ENTRY}:²"], f"It was {ENTRY}:²."),
        (["--query", "iris/test/0", "--flip", ENTRY], f"It was {ENTRY}."),
        (["--query", "iris/test/0", "--flip", ""], "It was empty."),
        (["--query", "iris/test/0", "--drop", "iris/test/3"], "--drop must be the id of an entry, as in iris/train/"),
        (["--query", "iris/test/0", "--mute", "loud"], "--mute must be one of nearest, trusted, not all. It was loud."),
        (["--query", "iris/test/0", "--mute", "nearest", "--mute", "trusted"], "It was all of them."),
    ],
)
def test_what_cannot_be_decided_is_a_sentence(run, arguments, sentence):
    result = run("predict", "iris", *arguments, code=2)
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
