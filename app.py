"""The door: `streamlit run app.py`."""

from attnknn.ui import shell

shell.run()
