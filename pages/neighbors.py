"""Why did it answer that? One query, its neighbors, heads and votes."""

from attnknn.ui import shell

shell.require()

from attnknn.ui import neighbors, upload  # noqa: E402
from attnknn.ui.display import explained  # noqa: E402

with explained():
    shell.headline(
        "Why did it answer that?",
        "Pick a test item, see which labelled entries it was compared with, and who was listened to.",
    )
    picking = neighbors.picking_row()
    trained = neighbors.choose_checkpoint(picking)
    upload.offer(trained, picking)
    neighbors.look(trained)
