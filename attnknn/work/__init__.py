"""What each kind of job does: the only place where jobs meet training.

    train      a dataset and a configuration → a checkpoint

`python -m attnknn.work TOKEN` is the child that a worker starts; the page and the terminal use
`attnknn.work.submit`, which imports neither torch nor faiss.
"""
