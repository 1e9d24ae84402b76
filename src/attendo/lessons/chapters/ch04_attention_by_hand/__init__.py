"""Lesson 4: attention by hand."""
