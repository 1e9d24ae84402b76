"""Lesson 17: learning."""
