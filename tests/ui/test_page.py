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
from attnknn.bundle import POOL
from attnknn.by_hand import ByHand, decide_by_hand
from attnknn.cli import app as terminal
from attnknn.ui import neighbors, shell, state, store
from tests.ui.apps import PAGES, REPOSITORY, board, checked, errors, look_at, new_app, notices, open_app

CHECKPOINTS = ("digits", "iris", "breast_cancer")
WEIGHTS = (REPOSITORY / "checkpoints/digits/weights.safetensors").stat().st_size
load = lru_cache(attnknn.load)
LINK = {"checkpoint": "iris", "query": "iris/test/7", "k": "5", "temperature": "2.0", "noise": "0.3"}
LINK |= {"kind": "pair", "seed": "4"}
LINKED = {"k": 5, "temperature": 2.0, "noise": LabelNoise("pair", 0.3, seed=4)}
IN_A_LINK = {
    "checkpoint",
    "query",
    "k",
    "temperature",
    "noise",
    "kind",
    "seed",
    "flips",
    "dropped",
    "muted",
    "averages",
}
IN_A_LINK |= {"neighbor"}


def predict(name="digits", query=None, k=None, noise=None, temperature=1.0):
    trained = load(name)
    return trained.predict_items([query or str(trained.queries.ids[0])], k, noise, temperature)


def nearest(name="digits", query=None):
    """Ids of the entries that are sent, nearest first."""
    trained = load(name)
    pool = trained.ask([query or str(trained.queries.ids[0])], POOL).pool
    return [str(entry) for entry in trained.entries.ids[pool.entries[0, :POOL]]]


def assert_shows(app, name="digits", query=None, **setting):
    """The board got a query, its neighbors and the fitted numbers of a checkpoint, and how to cast the votes."""
    shown, trained = board(app), load(name)
    expected = state.Setting(**{"k": trained.config.attention.k} | setting)
    noise = expected.noise
    assert shown["query"]["id"] == (query or str(trained.queries.ids[0]))
    assert shown["live"]["ids"] == nearest(name, query)
    assert shown["live"]["fitted"]["distance"] == trained.fitted.distance
    for part in ("coefficients", "sink"):
        assert shown["live"]["fitted"]["attention"][part] == trained.fitted.attention.to_arrays()[part].tolist()
    said = vars(expected) | {"dropped": list(expected.dropped), "muted": list(expected.muted)}
    del said["noise"]
    assert shown["setting"] == said | {"rate": noise.rate, "kind": noise.kind, "seed": noise.seed}
    assert shown["source"]["fit"].split(" · checkpoint ")[1].startswith(name)


# Opening


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_every_checkpoint_opens(name):
    app = open_app(checkpoint=name)
    assert not app.error
    assert not app.warning
    assert app.title[0].value == "Attn-KNN Explorer"
    assert_shows(app, name)


def test_every_control_has_its_key():
    app = open_app()
    assert {one.key for one in app.selectbox} == {"checkpoint"}
    assert not [*app.button, *app.slider, *app.select_slider, *app.number_input], "the rest is set on the board"


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
    assert_shows(app, "iris", "iris/test/7", **LINKED)
    assert board(app)["live"]["here"] == {"kind": 1, "stop": 30}


FIRST, SECOND = nearest()[:2]
ELSEWHERE = str(load("digits").entries.ids[-1])
HEADS = load("digits").fitted.attention.heads


@pytest.mark.parametrize(
    ("link", "setting"),
    [
        ({"k": "1"}, {"k": 1}),
        ({"k": str(POOL)}, {"k": POOL}),
        ({"temperature": "0.05"}, {"temperature": state.TEMPERATURES[0]}),
        ({"temperature": "20.0"}, {"temperature": state.TEMPERATURES[-1]}),
        ({"noise": "0.3"}, {"noise": LabelNoise("symmetric", 0.3)}),
        ({"noise": "0.9"}, {"noise": LabelNoise("symmetric", state.HIGHEST_RATE)}),
        ({"kind": "matrix", "noise": "0.6"}, {"noise": LabelNoise("matrix", 0.6)}),
        ({"seed": "9999"}, {"noise": LabelNoise("symmetric", 0.0, seed=state.LARGEST_SEED)}),
        ({"flips": f"{SECOND}:3,{ELSEWHERE}:0"}, {"flips": {SECOND: 3, ELSEWHERE: 0}}),
        ({"dropped": f"{FIRST},{ELSEWHERE}"}, {"dropped": (FIRST, ELSEWHERE)}),
        ({"muted": HEADS[0]}, {"muted": HEADS[:1]}),
        ({"averages": "1"}, {"averages": True}),
        ({"neighbor": SECOND}, {"neighbor": SECOND}),
    ],
    ids=lambda part: next(iter(part)),
)
def test_each_part_of_a_link_sets_one_thing(link, setting):
    app = open_app(**link)
    assert not app.warning
    assert_shows(app, **setting)


def test_a_label_flipped_by_hand_reaches_those_who_live_near_it():
    near = board(open_app())["live"]
    flipped = board(open_app(flips=f"{SECOND}:3"))["live"]
    assert near["flips"] == {}
    assert flipped["flips"] == {SECOND: 3}
    assert flipped["ids"] == near["ids"]
    assert flipped["tables"] != near["tables"]


# Controls


def test_another_query_keeps_what_is_set():
    app = open_app(k="5", flips=f"{SECOND}:3")
    look_at(app, "digits/test/9")
    assert_shows(app, query="digits/test/9", k=5, flips={SECOND: 3})
    assert app.query_params == {"query": "digits/test/9", "k": "5", "flips": f"{SECOND}:3"}
    assert not app.warning


def test_another_checkpoint_starts_with_its_own_first_query_and_keeps_the_knobs():
    by_hand = {"flips": f"{SECOND}:3", "dropped": FIRST, "muted": HEADS[0], "neighbor": SECOND}
    app = open_app(query="digits/test/7", k="5", noise="0.2", **by_hand)
    checked(app.selectbox(key="checkpoint").set_value("iris").run())
    assert_shows(app, "iris", k=5, noise=LabelNoise("symmetric", 0.2))
    assert app.query_params == {"checkpoint": "iris", "k": "5", "noise": "0.2"}
    assert not app.warning, "the visitor changed the checkpoint; no link is to blame"


def test_the_address_is_followed_wherever_it_leads():
    app = open_app(k="5")
    look_at(app, "digits/test/9")
    app.query_params.clear()
    app.query_params.update({"k": "7", "checkpoint": "iris"})  # what Back does
    checked(app.run())
    assert_shows(app, "iris", k=7)
    assert app.selectbox(key="checkpoint").value == "iris"


# Links that do not fit


@pytest.mark.parametrize(
    ("name", "said", "expected", "shown"),
    [
        ("k", "banana", "a whole number between 1 and 64", "16"),
        ("k", "9999", "a whole number between 1 and 64", "16"),
        ("k", "5.7", "a whole number between 1 and 64", "16"),
        ("noise", "-1", "a number between 0 and 0.9", "0.0"),
        ("noise", "nan", "a number between 0 and 0.9", "0.0"),
        ("kind", "foo", "one of symmetric, pair, matrix", "symmetric"),
        ("seed", "x", "a whole number between 0 and 9999", "0"),
        ("query", "digits/test/999999", "the id of a test item, such as digits/test/0", "digits/test/0"),
        ("temperature", "abc", "one of 0.05, 0.1,", "1.0"),
        ("temperature", "8", "one of 0.05, 0.1,", "1.0"),
        ("flips", "nobody:1", "ids of entries, each with a class from 0 to 9", "none"),
        ("flips", "digits/test/0:1", "ids of entries, each with a class from 0 to 9", "none"),
        ("flips", f"{SECOND}:10", "ids of entries, each with a class from 0 to 9", "none"),
        ("flips", SECOND, "ids of entries, each with a class from 0 to 9", "none"),
        ("dropped", "digits/test/0", "ids of entries with commas between them, at most 63", "none"),
        ("muted", "loud", f"some of {', '.join(HEADS)}, not all", "none"),
        ("muted", ",".join(HEADS), f"some of {', '.join(HEADS)}, not all", "none"),
        ("averages", "yes", "1, for class averages at the table", "none"),
        ("neighbor", "nobody", "the id of an entry that is shown", "the nearest"),
    ],
)
def test_a_value_that_does_not_fit_gets_a_sentence_and_a_usable_page(name, said, expected, shown):
    app = open_app(**{name: said})
    (sentence,) = notices(app)
    assert sentence.startswith(f"{name} must be {expected}")
    assert f"the link says {name}={said}." in sentence
    assert sentence.endswith(f"Showing {name} = {shown}.")
    assert_shows(app)
    look_at(app, "digits/test/9")
    assert_shows(app, query="digits/test/9")
    assert not app.warning, "what the visitor sets is not the link's fault"


def test_an_unknown_checkpoint_names_those_that_exist():
    app = open_app(checkpoint="digit", k="5")
    (sentence,) = notices(app)
    assert 'There is no checkpoint "digit"' in sentence
    assert 'Did you mean "digits"?' in sentence
    assert f"Choose from: {', '.join(store.names())}." in sentence
    assert sentence.endswith("Showing digits.")
    assert_shows(app, k=5)


@pytest.mark.parametrize("said", ["x" * 30_000, "9" * 30_000, "-" * 30_000, "%" * 3_000, "💥" * 3_000, "inf", "1e999"])
def test_absurd_values_are_cut_and_do_no_harm(said):
    app = open_app(**dict.fromkeys(IN_A_LINK, said))
    assert not app.error
    assert len(notices(app)) == len(IN_A_LINK)
    assert all(len(sentence) < 300 for sentence in notices(app))
    assert_shows(app)


def test_a_link_longer_than_any_is_not_read():
    assert_shows(open_app(k="9", query="x" * 600_000))


def test_spellings_of_a_usable_value_get_no_complaint():
    app = open_app(k="+5", noise="3e-1", seed="007", temperature="1")
    assert not app.warning
    assert_shows(app, k=5, noise=LabelNoise("symmetric", 0.3, seed=7))


def test_a_page_that_is_started_by_itself_shows_itself():
    app = checked(AppTest.from_file(REPOSITORY / "pages" / "neighbors.py", default_timeout=60).run())
    assert_shows(app)
    assert_shows(look_at(app, "digits/test/5"), query="digits/test/5")


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
    assert_shows(app, "iris", k=5)


def test_a_restored_checkpoint_works_without_a_restart(shelf_copy):
    from_the_future(shelf_copy / "digits")
    app = open_app()
    assert app.error
    shutil.copy2(REPOSITORY / "checkpoints/digits/card.json", shelf_copy / "digits/card.json")
    checked(app.run())
    assert not app.error
    assert_shows(app)


def test_what_nobody_foresaw_gets_a_number_and_stays_in_the_log(monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("/home/teacher/secret.txt")

    monkeypatch.setattr(neighbors, "draw_board", fail)
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


ASKED = nearest("iris", "iris/test/7")
BY_THREE_HANDS = ByHand({ASKED[0]: 2, ASKED[3]: 0}, (ASKED[1],), ("trusted",))


@pytest.mark.parametrize("by_hand", [ByHand(), BY_THREE_HANDS], ids=["nothing", "everything"])
def test_tables_and_code_make_the_same_numbers_again(by_hand):
    changes = {
        "flips": ",".join(f"{entry}:{label}" for entry, label in by_hand.flips.items()),
        "dropped": ",".join(by_hand.dropped),
        "muted": ",".join(by_hand.muted),
    }
    app = open_app(**LINK, **{name: text for name, text in changes.items() if text})
    assert not app.warning
    assert not app.dataframe, "tables are made when a visitor asks for them"
    app.session_state["numbers"] = True  # what opening the expander does
    checked(app.run())
    prediction = decide_by_hand(load("iris"), load("iris").ask(["iris/test/7"]), by_hand, **LINKED)
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
from tests.ui.apps import PAGES, board, checked, look_at, new_app, open_app

assert PAGES
for page in PAGES:
    checked(new_app().switch_page(page).run())
app = open_app(noise="0.4", k="33")
for name in ("iris", "breast_cancer", "digits"):
    checked(app.selectbox(key="checkpoint").set_value(name).run())
    look_at(app, name + "/test/3")
    assert not app.error and len(board(app)["live"]["ids"]) == 64
assert not {"torch", "faiss", "umap", "numba"} & set(sys.modules)
print("every page works")
"""


def test_every_page_works_where_torch_and_faiss_are_not_installed():
    command = [sys.executable, "-c", WITHOUT_WORKER]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("every page works\n")
