"""Lesson 19: the relatives; encoder-only, decoder-only, and text to text."""
