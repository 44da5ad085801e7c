"""The Training page: choose, start, watch, and look after what was made.

form.py         what to train, how long it will take, and Start
bring.py        data that are not on this machine: a download, or how to say where they lie
starting.py     how a run is started, from the form or again
estimate.py     how long a run will take (pure)
table.py        the table of jobs, as this page reads it: the only truth
kinds.py        kinds of job in words (pure)
story.py        what a run said, as curves, strips and sentences (pure)
live.py         what runs now; looks again and again
run.py          one job in full: state, progress, curves, neighbors, buttons
tables.py       the table that an evaluation made, as CSV and JSON
history.py      every job there was, with its log
cards.py        what is read from the card of a checkpoint
checkpoints.py  what runs have made: compare, rename, export, import, delete
views.py        which of what runs, history and checkpoints is shown
"""
