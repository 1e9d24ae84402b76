"""Lesson 9: residual connections and gradients."""
