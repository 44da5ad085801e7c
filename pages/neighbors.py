"""Why did it answer that? One query, its neighbors, heads and votes."""

from attnknn.ui import shell

shell.require()

import streamlit as st  # noqa: E402

from attnknn.ui import neighbors  # noqa: E402
from attnknn.ui.display import explained  # noqa: E402

with explained():
    notices = st.container()
    first, second = st.columns([1, 1.4, 0.8, 0.9, 1.1, 1.1], vertical_alignment="bottom"), st.columns([2, 2, 2, 1, 0.8])
    with notices:
        trained = neighbors.choose_checkpoint(first[0])
        neighbors.check_link(trained)
    query = neighbors.choose_query(trained, first[1])
    setting = neighbors.choose_setting(trained, second)
    neighbors.offer_finders(trained, setting, query, first[2:])
    prediction = neighbors.draw(trained, query, setting)
    neighbors.take_away(trained, prediction)
