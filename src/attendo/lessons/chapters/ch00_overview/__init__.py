"""Lesson 0: the whole machine on one drawing."""
