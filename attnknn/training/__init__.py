"""From a dataset to a checkpoint; reports through a callback, knows no worker."""
