"""Parallel text on disk: reading, cleaning, splitting, tokenizing, batching."""
