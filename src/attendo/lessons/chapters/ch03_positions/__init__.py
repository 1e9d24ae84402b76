"""Lesson 3: positions."""
