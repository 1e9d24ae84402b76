"""Renderers of lessons: terminal, Markdown pages, charts."""
