"""Lesson 7: masks."""
