"""Lesson 14: decoding."""
