"""What runs have made: a list to compare, rename, export, import, and delete from, with a way back."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from attnknn.checkpoints import root_from_environment
from attnknn.classifier import load
from attnknn.shelf import (
    LARGEST_ZIP,
    ThrownAway,
    delete_checkpoint,
    export_checkpoint,
    import_checkpoint,
    rename_checkpoint,
    restore_checkpoint,
    thrown_away,
)
from attnknn.ui import store
from attnknn.ui.display import explained, literal
from attnknn.ui.labels import write_labels, write_round
from attnknn.ui.training import cards, table
from attnknn.ui.training.starting import follow
from attnknn.work.submit import SWEEP_KS, SWEEP_NOISES, submit_evaluation, submit_preparation

MOVED = "checkpoints_moved"  # how often rows have moved; a list whose rows have moved is another list
LISTED_IN_TRASH = 5


def show() -> None:
    """Show the list and what can be done with the rows that are picked."""
    _say_what_happened()
    names = store.names()
    if not names:
        st.info("There are no checkpoints yet. Train one, or import one.", icon=":material/info:")
    else:
        picked = _show_list(names)
        if len(picked) == 1:
            _show_one(picked[0])
        elif picked:
            _show_side_by_side(picked)
        else:
            st.caption("Pick one row to open, rename, export or delete it; pick two to compare them.")
    _offer_import()
    _offer_trash()


def _show_list(names: tuple[str, ...]) -> list[str]:
    import pandas as pd

    rows = pd.DataFrame([cards.list_row(name, cards.read_card(name)) for name in names])
    percents = {
        column: st.column_config.NumberColumn(format="%.1f %%", help=cards.NOISE_ADDED if rate else None)
        for column, (_, _, rate) in cards.SHOWN.items()
    }
    event: Any = st.dataframe(
        rows,
        key=f"checkpoint_list_{st.session_state.get(MOVED, 0)}",
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        column_config=percents
        | {
            "data": st.column_config.TextColumn(width=115),
            "labels": st.column_config.TextColumn(help="Those that training saw. Test items keep the dataset's."),
            "n": st.column_config.NumberColumn(help="Test items that the accuracies are of."),
        },
        alt="Checkpoints with their accuracy on test under the attention and the uniform vote.",
    )
    return [names[row] for row in event["selection"]["rows"] if row < len(names)]


def _show_one(name: str) -> None:
    card = cards.read_card(name)
    with st.container(border=True, key="one_checkpoint"):
        head = st.container(horizontal=True, vertical_alignment="center", gap="small")
        head.markdown(f"**{literal(name)}**", width="content")
        if isinstance(card, str):
            st.error(literal(card), icon=":material/error:")
        else:
            cards.offer_opening(name, head)
            _tell_labels(card)
            if card.get("command"):
                st.code(str(card["command"]), language="bash", wrap_lines=True)
            _offer_work(name)
        _offer_verbs(name, is_sound=not isinstance(card, str))


def _tell_labels(card: cards.Card) -> None:
    """Say what became of the labels before anybody saw them, where they are not the dataset's own."""
    if before := write_labels(cards.config_of(card)):
        lines = [f"Trained with labels that are not the dataset's own: {before}. Test items keep theirs."]
        st.caption("  \n".join([*lines, *(literal(write_round(one)) for one in cards.rounds_of(card))]))


def _offer_work(name: str) -> None:
    """Offer what the worker can do with a checkpoint."""
    row = st.container(horizontal=True, vertical_alignment="center", gap="small")
    what = f"Every vote, for k of {', '.join(map(str, SWEEP_KS))}, under {len(SWEEP_NOISES)} draws of label noise."
    if row.button("Measure under noise", key="measure", icon=":material/query_stats:", help=what):
        with explained(then_stop=False):
            follow(table.read(lambda store: submit_evaluation(store, name, SWEEP_KS, SWEEP_NOISES, table.owner())))
    why = "Fills the bank on this machine, where it did not come with the checkpoint, and draws its map."
    if row.button("Prepare bank and map", key="prepare", icon=":material/map:", help=why):
        with explained(then_stop=False):
            follow(table.read(lambda store: submit_preparation(store, name, table.owner())))


def _offer_verbs(name: str, is_sound: bool) -> None:
    """Offer to rename, export and delete; a file is packed when it is asked for."""
    root = root_from_environment()
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    new = row.text_input("New name", key=f"new_name_{name}", max_chars=64, placeholder=name, width=220).strip()
    if row.button("Rename", key="rename", icon=":material/edit:", disabled=not new):
        with explained(then_stop=False):
            rename_checkpoint(name, new, root)
            _again(f"{name} is called {new} now.")
    row.space("stretch")
    if is_sound:
        row.download_button(
            "Export as one file",
            lambda: export_checkpoint(name, root),
            f"{name}.attnknn.zip",
            "application/zip",
            key="export",
            icon=":material/download:",
            on_click="ignore",
        )
    if row.button("Delete", key="delete", icon=":material/delete:", help="It can be taken back below."):
        with explained(then_stop=False):
            delete_checkpoint(name, root)
            _again(f"{name} was deleted. It can be taken back under Deleted checkpoints.")


def _show_side_by_side(picked: list[str]) -> None:
    found = {name: card for name in picked if not isinstance(card := cards.read_card(name), str)}
    st.caption(
        "Accuracy on test with its 95 % interval, and NLL in nats, by vote and by the label noise that was added to "
        "the bank after training."
    )
    metrics = cards.compare(found)
    st.dataframe(metrics, height="content", hide_index=True, key="side_by_side", alt="Metrics of picked checkpoints.")
    differences = cards.compare_settings(found)
    st.caption("Settings in which they differ." if differences else "Their settings are the same.")
    if differences:
        st.dataframe(differences, height="content", hide_index=True, key="differences", alt="Settings that differ.")


def _offer_import() -> None:
    with st.expander("Import a checkpoint", icon=":material/upload:", key="import"):
        file = st.file_uploader(
            "A file that was exported here or elsewhere",
            type="zip",
            key="imported",
            max_upload_size=LARGEST_ZIP // 2**20,
            help="Every name, size and hash in it is checked before it joins the list. It cannot run code.",
        )
        if st.button("Import", key="do_import", disabled=file is None) and file is not None:
            with explained(then_stop=False):
                root = root_from_environment()
                found = import_checkpoint(file.getvalue(), root, lambda one: load(one.name, one.folder.parent))
                _again(f"{found.name} was imported.")


def _offer_trash() -> None:
    """List what was deleted lately, each with a way back."""
    gone = thrown_away(root_from_environment())
    if not gone:
        return
    with st.expander(f"Deleted checkpoints ({len(gone)})", icon=":material/delete:", key="trash"):
        for one in gone[:LISTED_IN_TRASH]:
            _offer_return(one)
        st.caption("They lie in the folder .trash beside the checkpoints until somebody empties it.")


def _offer_return(one: ThrownAway) -> None:
    row = st.container(horizontal=True, vertical_alignment="center", gap="small")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.time))
    row.markdown(f"**{literal(one.name)}** · {when}", width="content")
    if row.button("Undo", key=f"undo_{one.entry}", icon=":material/undo:"):
        with explained(then_stop=False):
            name = restore_checkpoint(one.entry, root_from_environment())
            _again(f"{name} is back.")


def _again(sentence: str) -> None:
    """Draw the page again with a sentence on what happened; rows have moved, so none is picked."""
    st.session_state["happened"] = sentence
    st.session_state[MOVED] = st.session_state.get(MOVED, 0) + 1
    st.rerun()


def _say_what_happened() -> None:
    sentence = st.session_state.pop("happened", None)
    if sentence:
        st.success(literal(sentence), icon=":material/check:")
