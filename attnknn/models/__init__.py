"""Inputs → embeddings, and neighbors → scores."""
