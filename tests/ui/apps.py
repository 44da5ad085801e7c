"""The app as AppTest runs it, and what a visitor would read on it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from streamlit.testing.v1 import AppTest

from attnknn.ui import links
from attnknn.ui.board import BoardData

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted(path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "pages").glob("*.py"))


def new_app(**link: str) -> AppTest:
    """An app that was not run yet, asked for by a link."""
    app = AppTest.from_file(str(REPOSITORY / "app.py"), default_timeout=60)
    app.query_params.update(link)
    return app


def open_app(**link: str) -> AppTest:
    return checked(new_app(**link).run())


def checked(app: AppTest) -> AppTest:
    """The app, where nothing was raised past the page."""
    assert not app.exception, app.exception[0].value
    return app


def look_at(app: AppTest, query: str) -> AppTest:
    """The app once its board has asked for another query."""
    app.query_params["query"] = query
    app.session_state[links.WRITTEN] = {name: str(value) for name, value in app.query_params.items()}
    return checked(app.run())


def board(app: AppTest) -> BoardData:
    """What the board got: one query, all that its votes are cast from, and how they are to be cast."""
    (component,) = app.get("bidi_component")
    assert component.proto.component_name == "attnknn_board"
    data: BoardData = json.loads(component.proto.bytes)
    return data


def notices(app: AppTest) -> list[str]:
    return [plain(box.value) for box in app.warning]


def errors(app: AppTest) -> list[str]:
    return [plain(box.value) for box in app.error]


def plain(markdown: str) -> str:
    """Text as it is read once Markdown has taken its escapes away."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)
