"""Why did it answer that? One query, its neighbors, heads and votes."""

from attnknn.ui import shell

shell.require()

import streamlit as st  # noqa: E402

from attnknn.ui import neighbors  # noqa: E402
from attnknn.ui.display import explained  # noqa: E402

with explained():
    shell.headline(
        "Why did it answer that?",
        "Pick a test item, see which labelled entries it was compared with, and who was listened to.",
    )
    notices = st.container()
    picking = neighbors.picking_row()
    knobs = neighbors.knobs_row()
    with notices:
        trained = neighbors.choose_checkpoint(picking)
    link = neighbors.read_link()
    query = neighbors.choose_query(trained, picking)
    setting = neighbors.choose_setting(trained, knobs)
    prediction = neighbors.draw(trained, query, setting)
    neighbors.offer_finders(trained, setting, query, picking)
    with notices:
        neighbors.check_link(link, trained, prediction)
    neighbors.take_away(trained, prediction)
