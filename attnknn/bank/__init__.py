"""The memory bank: labelled entries that may be retrieved, exact and approximate search, statistics.

keys, labels, ids → MemoryBank → search → Neighbors          (FAISS, in the worker)
keys, queries     → search_exact → Neighbors                 (NumPy, in the web process)
keys, ids         → entry_neighborhoods → trust, keeps_label, hubness
"""

from __future__ import annotations

from attnknn.bank.exact import search_exact
from attnknn.bank.memory import INDEX_KINDS, IndexKind, MemoryBank
from attnknn.bank.neighbors import Neighbors
from attnknn.bank.statistics import (
    agreement_counts,
    contrast,
    dissent,
    entry_neighborhoods,
    hubness,
    keeps_label,
    prototypes,
    trust,
    trust_of_neighbors,
)

__all__ = [
    "INDEX_KINDS",
    "IndexKind",
    "MemoryBank",
    "Neighbors",
    "agreement_counts",
    "contrast",
    "dissent",
    "entry_neighborhoods",
    "hubness",
    "keeps_label",
    "prototypes",
    "search_exact",
    "trust",
    "trust_of_neighbors",
]
