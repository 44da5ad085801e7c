"""The Neighbors page: every control, every link, and what is said when something cannot be had."""

import json
import logging
import re
import shutil
import subprocess
import sys
from functools import lru_cache

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

import attnknn
from attnknn import LabelNoise
from attnknn.cli import app as terminal
from attnknn.ui import neighbors, shell, state
from tests.ui.apps import PAGES, REPOSITORY, board, checked, errors, new_app, notices, open_app

CHECKPOINTS = ("digits", "iris", "breast_cancer")
WEIGHTS = (REPOSITORY / "checkpoints/digits/weights.safetensors").stat().st_size
load = lru_cache(attnknn.load)
LINK = {"checkpoint": "iris", "query": "iris/test/7", "k": "5", "temperature": "2.0", "noise": "0.3"}
LINK |= {"kind": "pair", "seed": "4"}
KEYS = {"checkpoint", "query", "k", "temperature", "noise", "kind", "seed"}
FINDER_KEYS = {"find_random", "find_mistakes", "find_most_uncertain", "find_votes_disagree"}


def predict(name="digits", query=None, k=None, noise=None, temperature=1.0):
    trained = load(name)
    return trained.predict_items([query or str(trained.queries.ids[0])], k, noise, temperature)


def assert_shows(app, prediction):
    """The board got the numbers of a prediction."""
    shown, facts = board(app), prediction.to_dict()
    assert shown["query"]["id"] == facts["query"]
    assert [one["id"] for one in shown["neighbors"]] == [one["id"] for one in facts["neighbors"]]
    for one, other in zip(shown["neighbors"], facts["neighbors"], strict=True):
        assert one["weights"] == pytest.approx(other["weights"], abs=1e-12)
    assert [one["is_flipped"] for one in shown["neighbors"]] == [one["is_flipped"] for one in facts["neighbors"]]
    for vote in shown["votes"]:
        expected = list(facts["votes"][vote["name"]]["probabilities"].values())
        assert vote["probabilities"] == pytest.approx(expected, abs=1e-12)


# Opening


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_every_checkpoint_opens(name):
    app = open_app(checkpoint=name)
    assert not app.error
    assert not app.warning
    assert app.title[0].value == "Attn-KNN Explorer"
    assert_shows(app, predict(name))


def test_every_control_has_its_key():
    app = open_app()
    controls = [*app.selectbox, *app.slider, *app.select_slider, *app.number_input]
    assert {one.key for one in controls} == KEYS
    assert {one.key for one in app.button} == FINDER_KEYS
    assert {one.name for one in state.settings(64, "digits/test/0")} - {"neighbor"} | {"checkpoint"} == KEYS


@pytest.mark.parametrize("script", PAGES)
def test_a_page_asked_for_by_its_own_address_ends_up_inside_the_app(script, monkeypatch):
    opened, run = [], shell.run
    monkeypatch.setattr(shell, "run", lambda: opened.append(script) or run())
    app = checked(new_app(**LINK).switch_page(script).run())
    assert opened == [script], "the page ran alone"
    assert [title.value for title in app.title] == ["Attn-KNN Explorer"]
    assert not app.error
    assert not app.warning


def test_a_link_sets_everything():
    app = open_app(**LINK)
    assert not app.warning
    assert_shows(app, predict("iris", "iris/test/7", 5, LabelNoise("pair", 0.3, seed=4), 2.0))
    assert "pair label noise 30%, seed 4" in board(app)["provenance"]
    assert "checkpoint iris" in board(app)["provenance"]


def test_a_link_may_name_a_neighbor():
    chosen = board(open_app())["neighbors"][3]["id"]
    assert board(open_app(neighbor=chosen))["selected"] == chosen
    assert board(open_app())["selected"] == board(open_app())["neighbors"][0]["id"]


# Controls


@pytest.mark.parametrize(
    ("kind", "key", "value", "setting"),
    [
        ("selectbox", "query", "digits/test/9", {"query": "digits/test/9"}),
        ("slider", "k", 1, {"k": 1}),
        ("slider", "k", state.LARGEST_K, {"k": state.LARGEST_K}),
        ("select_slider", "temperature", state.TEMPERATURES[0], {"temperature": state.TEMPERATURES[0]}),
        ("select_slider", "temperature", state.TEMPERATURES[-1], {"temperature": state.TEMPERATURES[-1]}),
        ("slider", "noise", 0.3, {"noise": LabelNoise("symmetric", 0.3)}),
        ("slider", "noise", state.HIGHEST_RATE, {"noise": LabelNoise("symmetric", state.HIGHEST_RATE)}),
    ],
)
def test_a_control_changes_what_the_board_shows(kind, key, value, setting):
    app = open_app()
    checked(getattr(app, kind)(key=key).set_value(value).run())
    assert_shows(app, predict(**setting))
    assert not app.warning
    assert not app.error


def test_kind_and_seed_change_who_is_flipped():
    app = open_app(noise="0.6", k="40")
    checked(app.selectbox(key="kind").set_value("matrix").run())
    assert_shows(app, predict(k=40, noise=LabelNoise("matrix", 0.6)))
    checked(app.number_input(key="seed").set_value(state.LARGEST_SEED).run())
    assert_shows(app, predict(k=40, noise=LabelNoise("matrix", 0.6, seed=state.LARGEST_SEED)))


def test_another_checkpoint_starts_with_its_own_first_query_and_keeps_the_knobs():
    app = open_app(query="digits/test/7", k="5")
    checked(app.slider(key="noise").set_value(0.2).run())
    checked(app.selectbox(key="checkpoint").set_value("iris").run())
    assert_shows(app, predict("iris", None, 5, LabelNoise("symmetric", 0.2)))
    assert not app.warning, "the visitor changed the checkpoint; no link is to blame"


@pytest.mark.parametrize("finder", ["mistakes", "most_uncertain", "votes_disagree"])
def test_a_finder_steps_through_what_it_finds(finder):
    app = open_app(noise="0.8", k="32")
    key, seen = f"find_{finder}", []
    for _ in range(4):
        checked(app.button(key=key).click().run())
        seen.append(app.selectbox(key="query").value)
        assert board(app)["query"]["id"] == seen[-1]
    assert len(set(seen)) == 4
    votes = {vote["name"]: vote for vote in board(app)["votes"]}
    if finder == "mistakes":
        assert not votes["attention"]["is_correct"]
    if finder == "votes_disagree":
        assert len({votes[name]["predicted"] for name in ("uniform", "distance", "attention")}) > 1


def test_a_finder_starts_again_after_the_last():
    app = open_app(checkpoint="iris")
    seen = []
    for _ in range(3):
        checked(app.button(key="find_mistakes").click().run())
        seen.append(app.selectbox(key="query").value)
    assert seen[0] == seen[2] != seen[1], "iris has two mistakes under clean labels"


def test_a_finder_that_finds_nothing_cannot_be_pressed():
    assert open_app(k="1", temperature="1.0").button(key="find_votes_disagree").disabled


def test_random_goes_to_a_test_item(monkeypatch):
    monkeypatch.setattr(neighbors.random, "choice", lambda ids: ids[123])
    app = open_app()
    checked(app.button(key="find_random").click().run())
    assert_shows(app, predict(query="digits/test/123"))


# Links that do not fit


@pytest.mark.parametrize(
    ("name", "said", "expected", "shown"),
    [
        ("k", "banana", "a whole number between 1 and 64", "16"),
        ("k", "9999", "a whole number between 1 and 64", "16"),
        ("k", "5.7", "a whole number between 1 and 64", "5"),
        ("noise", "-1", "a number between 0 and 0.9", "0.0"),
        ("noise", "nan", "a number between 0 and 0.9", "0.0"),
        ("kind", "foo", "one of symmetric, pair, matrix", "symmetric"),
        ("seed", "x", "a whole number between 0 and 9999", "0"),
        ("seed", "5.7", "a whole number between 0 and 9999", "6"),
        ("query", "digits/test/999999", "the id of a test item, such as digits/test/0", "digits/test/0"),
        ("temperature", "abc", "one of 0.05, 0.1,", "1.0"),
        ("temperature", "7", "one of 0.05, 0.1,", "1.0"),
        ("neighbor", "nobody", "the id of an entry that is shown", "digits/train/93"),
    ],
)
def test_a_value_that_does_not_fit_gets_a_sentence_and_a_usable_page(name, said, expected, shown):
    app = open_app(**{name: said})
    (sentence,) = notices(app)
    assert sentence.startswith(f"{name} must be {expected}")
    assert f"the link says {name}={said}." in sentence
    assert sentence.endswith(f"Showing {name} = {shown}.")
    assert_shows(app, predict(k=int(shown) if name == "k" else None))
    checked(app.slider(key="k").set_value(9).run())
    assert len(board(app)["neighbors"]) == 9
    assert not app.warning, "what the visitor sets is not the link's fault"


def test_an_unknown_checkpoint_names_those_that_exist():
    app = open_app(checkpoint="digit", k="5")
    (sentence,) = notices(app)
    assert 'There is no checkpoint "digit"' in sentence
    assert 'Did you mean "digits"?' in sentence
    assert "Choose from: digits, breast_cancer, iris." in sentence
    assert sentence.endswith("Showing digits.")
    assert len(board(app)["neighbors"]) == 5


@pytest.mark.parametrize("said", ["x" * 30_000, "9" * 30_000, "-" * 30_000, "%" * 3_000, "💥" * 3_000, "inf", "1e999"])
def test_absurd_values_are_cut_and_do_no_harm(said):
    app = open_app(**dict.fromkeys([*KEYS, "neighbor"], said))
    assert not app.error
    assert len(notices(app)) == 8
    assert all(len(sentence) < 300 for sentence in notices(app))
    assert_shows(app, predict())


def test_a_link_longer_than_any_is_not_read():
    assert_shows(open_app(k="9", query="x" * 600_000), predict())


def test_spellings_of_a_usable_value_get_no_complaint():
    app = open_app(k="+5", noise="3e-1", seed="007", temperature="1")
    assert not app.warning
    assert_shows(app, predict(k=5, noise=LabelNoise("symmetric", 0.3, seed=7)))


def test_a_page_that_is_started_by_itself_shows_itself():
    app = checked(AppTest.from_file(REPOSITORY / "pages" / "neighbors.py", default_timeout=60).run())
    assert len(board(app)["neighbors"]) == 16
    app.slider(key="k").set_value(5)
    assert len(board(checked(app.run()))["neighbors"]) == 5


def test_names_that_nobody_knows_are_left_alone():
    app = open_app(utm_source="letter", embed="true")
    assert not app.warning
    assert not app.error


# What cannot be shown


def test_without_checkpoints_the_page_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNKNN_CHECKPOINTS", str(tmp_path))
    app = open_app()
    assert errors(app) == [
        "The checkpoint must be one that exists. There is no checkpoint "
        '"digits". Train one: python -m attnknn train digits.'
    ]
    assert app.title[0].value == "Attn-KNN Explorer"


@pytest.fixture
def shelf_copy(tmp_path, monkeypatch):
    """A copy of the shipped checkpoints, which the page uses and a test may damage."""
    root = shutil.copytree(REPOSITORY / "checkpoints", tmp_path / "checkpoints")
    monkeypatch.setenv("ATTNKNN_CHECKPOINTS", str(root))
    return root


def cut_short(folder):
    weights = folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def from_the_future(folder):
    card = folder / "card.json"
    card.write_text(json.dumps(json.loads(card.read_text()) | {"schema": 99}))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            cut_short,
            f"weights.safetensors must have {WEIGHTS:,} bytes, as its card says. It has 1,000; it was cut short",
        ),
        (from_the_future, 'The card of "digits" has schema 99. Update Attn-KNN Explorer.'),
        (lambda folder: (folder / "card.json").write_text("{"), 'The card of checkpoint "digits" must be a JSON'),
        (lambda folder: (folder / "bundle/entry_keys.npy").unlink(), "bundle/entry_keys.npy must have"),
    ],
)
def test_a_checkpoint_that_cannot_be_trusted_is_explained_and_another_can_be_chosen(shelf_copy, spoil, sentence):
    spoil(shelf_copy / "digits")
    app = open_app(k="5")
    assert len(errors(app)) == 1
    assert sentence in errors(app)[0]
    assert str(shelf_copy) not in errors(app)[0]
    assert not app.get("bidi_component")
    checked(app.selectbox(key="checkpoint").set_value("iris").run())
    assert not app.error
    assert not app.warning
    assert_shows(app, predict("iris", None, 5))


def test_a_restored_checkpoint_works_without_a_restart(shelf_copy):
    from_the_future(shelf_copy / "digits")
    app = open_app()
    assert app.error
    shutil.copy2(REPOSITORY / "checkpoints/digits/card.json", shelf_copy / "digits/card.json")
    checked(app.run())
    assert not app.error
    assert_shows(app, predict())


def test_what_nobody_foresaw_gets_a_number_and_stays_in_the_log(monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("/home/teacher/secret.txt")

    monkeypatch.setattr(neighbors, "draw", fail)
    with caplog.at_level(logging.ERROR, "attnknn.ui"):
        app = open_app()
    (sentence,) = errors(app)
    number = re.search(r"\*\*([0-9a-f]{8})\*\*", sentence)[1]
    everything = " ".join(element.value for element in [*app.markdown, *app.error, *app.caption, *app.warning])
    assert "secret" not in everything
    assert "RuntimeError" not in everything
    assert number in caplog.text
    assert "/home/teacher/secret.txt" in caplog.text
    assert "Traceback" in caplog.text
    monkeypatch.undo()
    checked(app.run())
    assert not app.error


# The numbers behind the view


def test_tables_and_code_make_the_same_numbers_again():
    app = open_app(**LINK)
    assert not app.dataframe, "tables are made when a visitor asks for them"
    app.session_state["numbers"] = True  # what opening the expander does
    checked(app.run())
    prediction = predict("iris", "iris/test/7", 5, LabelNoise("pair", 0.3, seed=4), 2.0)
    for shown, expected in zip(app.dataframe, (prediction.neighbors_frame(), prediction.votes_frame()), strict=True):
        pd.testing.assert_frame_equal(shown.value, expected, check_dtype=False)
    python, shell = (block.value for block in app.code)
    *lines, last = python.splitlines()
    names = {}
    exec("\n".join(lines), names)
    pd.testing.assert_frame_equal(eval(last, names), prediction.neighbors_frame())
    words = shell.split()
    assert words[:3] == ["python", "-m", "attnknn"]
    said = CliRunner().invoke(terminal, words[3:])
    assert said.exit_code == 0
    assert json.loads(said.stdout) == json.loads(json.dumps(prediction.to_dict()))


# Without the worker's libraries

WITHOUT_WORKER = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torchvision", "faiss", "umap", "numba"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
from tests.ui.apps import PAGES, board, checked, new_app, open_app

assert PAGES
for page in PAGES:
    checked(new_app().switch_page(page).run())
app = open_app(noise="0.4")
for name in ("iris", "breast_cancer", "digits"):
    checked(app.selectbox(key="checkpoint").set_value(name).run())
    checked(app.slider(key="k").set_value(33).run())
    checked(app.button(key="find_mistakes").click().run())
    assert not app.error and len(board(app)["neighbors"]) == 33
assert not {"torch", "faiss", "umap", "numba"} & set(sys.modules)
print("every page works")
"""


def test_every_page_works_where_torch_and_faiss_are_not_installed():
    command = [sys.executable, "-c", WITHOUT_WORKER]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("every page works\n")
