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
    with notices:
        trained = neighbors.choose_checkpoint(picking)
        query = neighbors.choose_query(trained, picking)
        found = neighbors.ask(trained, query)
        setting = neighbors.read_setting(trained, found)
    neighbors.draw(trained, found, setting)
    neighbors.offer_finders(trained, setting, query, picking)
    neighbors.take_away(trained, found, setting)
