"""Lesson 10: the position-wise feed-forward network."""
