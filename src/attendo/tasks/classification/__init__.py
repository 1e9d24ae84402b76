"""Text classification and tagging with an encoder-only model."""
