"""Lesson 6: multi-head attention."""
