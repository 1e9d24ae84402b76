"""Lessons on the Transformer, in English and Korean, computed by the code of the model.

A chapter (`chapters/chNN_name`) is a folder: code that computes blocks and answers, and the text in
Markdown, one file per language (`prose`). Three renderers show the same blocks: the terminal
(`render.terminal`), the web application (`Lesson.to_dict`) and the documentation
(`render.markdown`). `contents.load_lesson` loads a lesson by its number.
"""
