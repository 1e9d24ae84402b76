"""Lesson 1: from RNN to attention."""
