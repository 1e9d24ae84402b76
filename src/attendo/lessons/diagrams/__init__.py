"""Diagrams of the lessons: shapes with positions, which the page and the documentation draw."""
