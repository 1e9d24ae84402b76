"""Lesson 2: words to vectors."""
