"""Name → Dataset, with stable ids, duplicate groups and label noise."""
