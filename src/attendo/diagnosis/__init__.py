"""Explain training runs: what their logs say, a list and a comparison, and the paper's recipe."""
