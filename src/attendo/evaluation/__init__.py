"""Scores that say what they are."""
