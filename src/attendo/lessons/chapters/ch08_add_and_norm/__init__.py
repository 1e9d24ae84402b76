"""Lesson 8: residual connections and layer normalization."""
