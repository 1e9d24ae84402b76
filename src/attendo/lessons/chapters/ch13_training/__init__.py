"""Lesson 13: training."""
