"""Fifteen lessons on the Transformer, in Korean and English, every number computed by the model.

A lesson (`lesson.Lesson`) is a module: what can be changed, what is told (`blocks`), questions with
answers that are computed. Three outlets show the same blocks: the terminal (`terminal`), the web
application (`to_dict`), the documentation (`markdown`). `contents.find_lesson` finds one by number.
"""
