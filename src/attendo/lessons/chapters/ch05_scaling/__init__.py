"""Lesson 5: why the scores are scaled."""
