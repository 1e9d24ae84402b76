"""Lesson 20: numbers in, labels out."""
