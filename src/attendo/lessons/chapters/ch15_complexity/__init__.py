"""Lesson 15: why self-attention."""
