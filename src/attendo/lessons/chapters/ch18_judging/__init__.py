"""Lesson 18: judging translations."""
