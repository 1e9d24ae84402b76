"""Language modeling and text generation with a decoder-only model."""
