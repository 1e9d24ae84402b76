"""Metrics with their signatures and intervals, comparisons of systems, reports."""
