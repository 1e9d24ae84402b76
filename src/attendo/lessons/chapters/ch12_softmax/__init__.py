"""Lesson 12: from vector to word."""
