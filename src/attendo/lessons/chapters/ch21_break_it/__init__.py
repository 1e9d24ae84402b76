"""Lesson 21: break it."""
