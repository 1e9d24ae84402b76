"""Lesson 11: the whole architecture."""
