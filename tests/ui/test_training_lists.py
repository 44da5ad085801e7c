"""The Training page's lists: every run there was, and what they made."""

from attnknn.checkpoints import checkpoint_names
from attnknn.shelf import export_checkpoint, thrown_away
from attnknn.work.results import write_table
from tests.ui.apps import checked, errors, plain
from tests.ui.training import buttons, finish, markdown, pick, press, spec

# History


def test_history_lists_filters_and_explains(checkpoints, table, open_training):
    done = finish(table, table.submit("train", "iris → iris-2", spec("iris")))
    failed = table.submit("train", "wine → wine-2", spec("wine"))
    table.claim(failed.id, "token")
    table.end(failed.id, "token", "failed", error="The disk is full.")
    app = open_training(view="history")
    assert list(app.dataframe[0].value["job"]) == ["wine → wine-2", "iris → iris-2"]
    assert list(app.dataframe[0].value["why"]) == ["The disk is full.", ""]
    app.selectbox(key="about").set_value("iris").run()
    assert list(app.dataframe[0].value["id"]) == [done.id[:8]]
    pick(app, "job_list_", 0)
    log = app.code[-1].value
    assert "epoch 3 · loss 0.3333 · held-out accuracy 83.3%" in log
    assert log.splitlines()[-1].endswith("done")


def test_other_kinds_are_called_by_their_words_and_draw_no_curves(checkpoints, table, open_training):
    finish(table, table.submit("train", "iris → iris-2", spec("iris")))
    asked = {"checkpoint": "iris", "ks": [5], "noises": []}
    job = table.submit("evaluate", "iris: votes over k", asked)
    table.submit("download", "mnist (12 MB)", {"dataset": "mnist"})
    table.submit("encode", "one picture", {"checkpoint": "iris"}, lane="quick")
    table.claim(job.id, "token")
    write_table(table.settings.draft(job.id), [{"k": 5, "accuracy": 0.9}])
    table.end(job.id, "token", "done", result={"checkpoint": "iris", "rows": 1})
    app = open_training(view="history")
    assert list(app.dataframe[0].value["kind"]) == ["download", "evaluation", "training"]
    app.selectbox(key="of_kind").set_value("evaluation").run()
    pick(app, "job_list_", 0)
    assert {one.label for one in app.get("download_button")} == {"CSV", "JSON"}
    assert not app.get("plotly_chart")
    assert "again" not in buttons(app)
    settings = next(line for line in markdown(app) if job.id[:8] in line)
    assert settings == f"job {job.id[:8]}"


def test_a_table_that_is_gone_is_a_sentence(checkpoints, table, open_training):
    job = table.submit("evaluate", "iris: votes over k", {"checkpoint": "iris"})
    table.claim(job.id, "token")
    table.end(job.id, "token", "done", result={"checkpoint": "iris", "rows": 1})
    app = pick(open_training(view="history"), "job_list_", 0)
    assert any("Start the job again." in line for line in markdown(app))
    assert not app.get("download_button")


# Checkpoints


def test_checkpoints_are_listed_with_their_numbers(checkpoints, open_training):
    app = open_training(view="checkpoints")
    (row,) = app.dataframe[0].value.to_dict("records")
    assert (row["name"], row["data"], row["n"], row["epochs"]) == ("iris", "iris", 45, 12)
    assert 50 < row["attention"] <= 100


def test_a_damaged_checkpoint_is_listed_with_its_sentence(checkpoints, open_training):
    (checkpoints / "iris" / "weights.safetensors").write_bytes(b"")
    app = open_training(view="checkpoints")
    assert app.dataframe[0].value["data"][0] == "damaged"
    pick(app, "checkpoint_list", 0)
    assert "weights.safetensors must have" in errors(app)[0]
    assert "delete" in buttons(app)


def test_rename_delete_and_undo(checkpoints, open_training):
    app = pick(open_training(view="checkpoints"), "checkpoint_list", 0)
    app.text_input(key="new_name_iris").set_value("flowers")
    press(checked(app.run()), "rename")
    assert checkpoint_names(checkpoints) == ("flowers",)
    assert "iris is called flowers now." in plain(app.success[0].value)
    press(pick(app, "checkpoint_list", 0), "delete")
    assert checkpoint_names(checkpoints) == ()
    assert "no checkpoints yet" in app.info[0].value
    (gone,) = thrown_away(checkpoints)
    press(app, f"undo_{gone.entry}")
    assert checkpoint_names(checkpoints) == ("flowers",)


def test_two_are_compared_side_by_side(checkpoints, iris, open_training):
    iris.save("iris-2", checkpoints)
    app = pick(open_training(view="checkpoints"), "checkpoint_list", 0, 1)
    rows = app.dataframe[1].value
    assert list(rows.columns) == ["noise added", "vote", "iris", "iris-2"]
    assert (rows["iris"] == rows["iris-2"]).all()
    assert any("settings are the same" in line for line in markdown(app))


def test_an_export_comes_back_as_an_import(checkpoints, open_training):
    content = export_checkpoint("iris", checkpoints)
    app = open_training(view="checkpoints")
    for name, file, said in (("good.zip", content, "iris-2 was imported."), ("bad.zip", content[:-400], "")):
        app.file_uploader[0].set_value((name, file, "application/zip")).run()
        press(app, "do_import")
        if said:
            assert said in plain(app.success[0].value)
        else:
            assert "The file must be one checkpoint" in errors(app)[0]
    assert checkpoint_names(checkpoints) == ("iris", "iris-2")


def test_a_checkpoint_is_measured_and_prepared_from_its_row(checkpoints, table, open_training):
    app = open_training(view="checkpoints")
    pick(app, "checkpoint_list_", 0)
    name = checkpoint_names(checkpoints)[0]
    press(app, "measure")
    (job,) = table.all()
    assert (job.kind, job.spec["checkpoint"], len(job.spec["noises"])) == ("evaluate", name, 31)
    assert job.title in " ".join(markdown(app)), "it is shown at once"
    app = open_training(view="checkpoints")
    pick(app, "checkpoint_list_", 0)
    press(app, "prepare")
    assert {one.kind for one in table.all()} == {"evaluate", "prepare"}
