"""Lesson 22: from 2017 to today."""
