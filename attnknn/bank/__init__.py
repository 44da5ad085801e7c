"""The memory bank: labelled entries that may be retrieved, and what is known about each of them."""
