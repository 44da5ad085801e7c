"""What each kind of job does: the only place where jobs meet the rest.

    train      a dataset and a configuration → a checkpoint
    download   the name of a dataset → its files, and arrays that are read at once
    prepare    a checkpoint → its bank, the neighbors of its test items, and a map
    evaluate   a checkpoint, k and label noise → a tidy table of every vote
    encode     one raw input → its embedding; in the quick lane

`python -m attnknn.work TOKEN LANE` is the child that a worker starts; the page and the terminal use
`attnknn.work.submit`, which imports neither torch nor faiss.
"""
