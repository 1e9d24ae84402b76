"""Synthetic corpora: everyday Korean-English sentences, dates, numbers, a time series."""
