"""What tests of the Training page share: a click, what can be read, and what a worker would write."""

from __future__ import annotations

from attnknn.data import describe_datasets
from attnknn.training.defaults import default_config
from attnknn.ui.training import story
from tests.ui.apps import checked, plain


def press(app, key):
    return checked(app.button(key=key).click().run())


def unfold(app, *expanders):
    """Open what is closed, as a click on its title does."""
    return fold(app, *expanders, is_open=True)


def fold(app, *expanders, is_open=False):
    for key in expanders:
        app.session_state[key] = is_open
    return checked(app.run())


def markdown(app):
    return [plain(one.value) for one in [*app.markdown, *app.caption]]


def buttons(app):
    return {one.key.split("_")[0]: one for one in app.button if one.key}


def controls(app):
    kinds = (app.selectbox, app.number_input, app.text_input, app.slider)
    return {one.key for kind in kinds for one in kind}


def finish(table, job, name="iris", epochs=3):
    """What a worker would write: epochs with neighbors, and the end."""
    table.claim(job.id, "token")
    for epoch in range(1, epochs + 1):
        table.say(job.id, "numbers", numbers(epoch))
    table.end(job.id, "token", "done", progress=1.0, stage="done", result={"checkpoint": name})
    return table.get(job.id)


def numbers(epoch, **more):
    said = {"stage": story.TRAINING, "epoch": epoch, "loss": 1 / epoch, "held_out_accuracy": 1 - 0.5 / epoch}
    said |= {"query": "iris/test/0", "neighbors": ["iris/train/1", f"iris/train/{epoch + 1}"], "classes": [0, 0, 1]}
    return said | {"labels": ["setosa", "setosa", "virginica"], "features": ["petal"], "values": [["1"]] * 3} | more


def data(name):
    return next(one for one in describe_datasets() if one.name == name)


def spec(dataset):
    return {"config": default_config(data(dataset)).to_dict(), "name": f"{dataset}-2", "command": ""}


def pick(app, key, *rows):
    (table,) = (one for one in app.dataframe if key in one.proto.id)
    name = table.proto.id[table.proto.id.index(key) :]
    app.session_state[name] = {"selection": {"rows": list(rows), "columns": [], "cells": []}}
    return checked(app.run())
