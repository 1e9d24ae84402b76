"""Training speed compared with all installed toolkits, including older ones.

Run: python -m benchmarks.training_speed (see `__main__`). `attendo bench` measures the same without
the older toolkits; the measurement is in `attendo.bench`.
"""
