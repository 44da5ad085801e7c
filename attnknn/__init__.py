"""Attention over nearest neighbors, and the evidence behind every answer."""
