"""The Training page: choose, start, watch, and look after what was made.

form.py         what to train, how long it will take, and Start
table.py        the table of jobs, as this page reads it: the only truth
story.py        what a run said, as curves, strips and sentences (pure)
estimate.py     how long a run will take (pure)
live.py         what runs now; looks again while something is active
run.py          one run in full: state, progress, curves, neighbors, buttons
history.py      every job there was, with its log
checkpoints.py  what runs have made: compare, rename, export, import, delete
"""
