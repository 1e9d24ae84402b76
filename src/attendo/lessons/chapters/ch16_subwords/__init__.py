"""Lesson 16: subwords."""
