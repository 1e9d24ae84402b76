"""Training speed beside every peer that is installed, older toolkits included.

Run: python -m benchmarks.training_speed (see `__main__`). `attendo bench` measures the same without
the older toolkits; the measuring itself is `attendo.bench`.
"""
