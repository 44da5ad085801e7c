"""A visitor's own picture on the Neighbors page: offered, refused in words, waited for, shown, and linked to."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageDraw

import attnknn
from attnknn.ui import upload
from attnknn.work.encoding import encode_input
from attnknn.work.submit import submit_encoding
from tests.ui.apps import board, checked, errors, look_at, notices, open_app
from tests.ui.training import markdown

WAKING = "The embedder is waking up; the first picture takes some seconds."


def drawn(paper: str = "white", ink: str = "black") -> bytes:
    picture, buffer = Image.new("RGB", (120, 120), paper), BytesIO()
    ImageDraw.Draw(picture).line([(35, 25), (85, 25), (55, 100)], ink, 14)
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def open_popover(app):
    app.session_state[upload.PLACE] = True
    return checked(app.run())


def give(app, content: bytes):
    return checked(open_popover(app).file_uploader(key=upload.FILE).set_value(("a.png", content, "image/png")).run())


def work(table, job, error: str = ""):
    """What the worker does with a picture, with the real embedder; or how it ends if it breaks."""
    table.claim(job.id, "token")
    if error:
        return table.end(job.id, "token", "failed", error=error)
    return table.end(job.id, "token", "done", progress=1.0, result=encode_input(job.spec))


@pytest.fixture
def query(table):
    """A picture that somebody had embedded for digits: item 3 of the test items, without its name."""
    job = submit_encoding(table, "digits", np.asarray(attnknn.load("digits").bundle.input_of("digits/test/3")))
    work(table, job)
    return upload.BEFORE + job.id


def test_a_picture_is_waited_for_and_becomes_the_query(table):
    app = give(open_app(k="9"), drawn())
    assert WAKING in markdown(app)
    assert board(app)["query"]["id"] == "digits/test/0", "the page can be used meanwhile"
    (job,) = table.all()
    assert (job.kind, job.lane, job.spec["checkpoint"]) == ("encode", "quick", "digits")
    work(table, job)
    checked(app.run())
    shown = board(app)
    assert shown["query"] == {"id": f"upload/{job.id}", "label": None, "values": None}
    assert shown["setting"]["k"] == 9
    entries = attnknn.load("digits").entries
    assert set(entries.labels[np.isin(entries.ids, shown["live"]["ids"][:9])]) == {7}
    assert app.query_params["query"] == f"upload/{job.id}"
    assert not app.file_uploader, "the popover no longer covers the board"
    assert any("Light and dark were exchanged" in line for line in markdown(app))
    assert WAKING not in markdown(app)


def test_an_answer_that_is_there_at_once_needs_no_waiting(table, monkeypatch):
    app = open_popover(open_app())
    monkeypatch.setattr(upload, "AT_ONCE", 20.0)

    def work_once():
        while not table.all():
            time.sleep(0.01)
        work(table, table.all()[0])

    with ThreadPoolExecutor() as pool:
        worked = pool.submit(work_once)
        checked(app.file_uploader(key=upload.FILE).set_value(("a.png", drawn("black", "white"), "image/png")).run())
        worked.result()
    (job,) = table.all()
    assert board(app)["query"]["id"] == f"upload/{job.id}"
    assert not any("Light and dark" in line or line == WAKING for line in markdown(app))


def test_a_link_shows_the_same_numbers_as_the_item_itself(query):
    app, itself = open_app(query=query, noise="0.3"), open_app(query="digits/test/3", noise="0.3")
    one, other = board(app), board(itself)
    assert not notices(app)
    assert one["atlas"] == other["atlas"], "the pixels of the link are those of the item"
    assert one["query"]["label"] is None
    assert one["setting"] == other["setting"]
    mine, its = one["live"], other["live"]
    assert mine["ids"] == its["ids"]
    assert mine["content"].keys() == its["content"].keys()
    for name in ("distances", "baseline"):
        np.testing.assert_allclose(mine[name], its[name], atol=1e-5)
    for vote, content in its["content"].items():
        np.testing.assert_allclose(mine["content"][vote], content, atol=1e-5)


def test_pictures_of_before_stay_in_the_list(query):
    app = open_app(query=query)
    assert board(app)["picker"]["ids"][:3] == ["digits/test/0", query, "digits/test/1"]
    look_at(app, "digits/test/5")
    assert query in board(app)["picker"]["ids"]
    assert board(look_at(app, query))["query"]["id"] == query


def test_another_checkpoint_does_not_know_the_picture(query):
    app = open_app(query=query)
    checked(app.selectbox(key="checkpoint").set_value("iris").run())
    assert board(app)["query"]["id"] == "iris/test/0"
    assert not app.get("popover")
    linked = open_app(query=query, checkpoint="iris")
    (sentence,) = notices(linked)
    assert sentence.startswith(
        "query must be the id of a test item, such as iris/test/0, or of a picture embedded here"
    )
    assert board(linked)["query"]["id"] == "iris/test/0"


@pytest.mark.parametrize("what", ["nobody's", "not yet done", "of other weights", "of another kind"])
def test_a_link_to_no_picture_of_this_checkpoint_falls_back(table, query, what):
    job = table.get(query.removeprefix(upload.BEFORE))
    specs = {"not yet done": ("encode", job.spec), "of another kind": ("evaluate", job.spec)}
    specs["of other weights"] = ("encode", job.spec | {"weights": "0" * 64})
    job_id = "0" * 32
    if what in specs:
        other = table.submit(specs[what][0], what, specs[what][1], "somebody", lane="quick")
        job_id = other.id
        if what != "not yet done":
            table.claim(other.id, "token")
            table.end(other.id, "token", "done", result=job.result)
    app = open_app(query=f"upload/{job_id}")
    (sentence,) = notices(app)
    assert sentence.endswith("Showing query = digits/test/0.")
    assert board(app)["query"]["id"] == "digits/test/0"


def test_a_bad_file_is_answered_where_it_was_given_and_costs_nothing(table):
    app = give(open_app(query="digits/test/7"), b"nothing that could be seen")
    (sentence,) = errors(app)
    assert sentence.startswith("A picture must be a PNG, JPEG or WEBP file")
    assert board(app)["query"]["id"] == "digits/test/7"
    assert not table.all()
    look_at(app, "digits/test/9")
    assert errors(app) == [sentence], "it stays until it is read"
    checked(app.file_uploader(key=upload.FILE).set_value(("b.png", drawn(), "image/png")).run())
    assert not errors(app)
    assert WAKING in markdown(app)


def test_a_picture_that_could_not_be_embedded_says_why_once(table):
    app = give(open_app(), drawn())
    (job,) = table.all()
    work(table, job, error="The weights are damaged.")
    for _ in range(2):
        checked(app.run())
        (sentence,) = errors(app)
        assert "The picture should have been embedded. The weights are damaged." in sentence
        assert WAKING not in markdown(app)
    assert board(app)["query"]["id"] == "digits/test/0"


def test_a_checkpoint_that_was_chosen_meanwhile_is_kept(table):
    app = give(open_app(), drawn())
    checked(app.selectbox(key="checkpoint").set_value("iris").run())
    (job,) = table.all()
    work(table, job)
    checked(app.run())
    assert board(app)["query"]["id"] == "iris/test/0"


def test_where_nobody_works_it_is_said(table, monkeypatch):
    monkeypatch.setattr(upload, "LONG", 0.0)
    app = give(open_app(), drawn())
    assert any(line.startswith("Nobody has taken the picture up yet.") for line in markdown(app))


def test_without_torch_there_is_a_sentence_instead(monkeypatch):
    monkeypatch.delenv("ATTNKNN_WORKER")
    monkeypatch.setattr("attnknn.ui.training.form.find_spec", lambda name: None)
    app = open_popover(open_app())
    assert any(line.startswith("Embedding a new picture needs PyTorch") for line in markdown(app))
    assert not app.file_uploader


def test_only_the_last_pictures_are_remembered(table):
    app = open_app()
    for number in range(upload.REMEMBERED + 2):
        job = submit_encoding(
            table, "digits", np.asarray(attnknn.load("digits").bundle.input_of(f"digits/test/{number}"))
        )
        work(table, job)
        app.session_state[upload.NEXT] = upload.BEFORE + job.id
        checked(app.run())
    own = [one for one in board(app)["picker"]["ids"] if one.startswith(upload.BEFORE)]
    assert len(own) == upload.REMEMBERED
    assert own[0] == upload.BEFORE + job.id


def test_the_way_to_the_same_numbers_in_a_terminal_is_shown(query):
    app = open_app(query=query)
    app.session_state["numbers"] = True
    checked(app.run())
    (snippet,) = [code.value for code in app.code]
    assert snippet.startswith("python -m attnknn predict digits --image FILE --k 16 ")
