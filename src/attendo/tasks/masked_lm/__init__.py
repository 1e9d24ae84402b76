"""Masked language modeling with an encoder-only model."""
