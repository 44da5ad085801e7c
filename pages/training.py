"""How is it made? Start a run, watch it, pause it, stop it, and look after what it made."""

from attnknn.ui import shell

shell.require()

import streamlit as st  # noqa: E402

from attnknn.ui.display import explained  # noqa: E402
from attnknn.ui.training import checkpoints, form, history, live, views  # noqa: E402

with explained():
    shell.headline(
        "How is it made?",
        "Choose data, start a run, and watch neighbors find each other. It goes on when you leave.",
    )
    if live.is_open():
        left, right = st.columns([0.3, 0.7], gap="large")
        with left:
            choice = form.choose()
            form.offer_start(choice)
        with right:
            view = views.choose()
            live.watch(is_shown=view == "now")
            if view == "history":
                history.show()
            elif view == "checkpoints":
                checkpoints.show()
