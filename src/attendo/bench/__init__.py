"""Speed: Attendo's trainer and decoder compared with peers, on the same batches in one run.

The same run measures the peak performance of the machine, and reports each speed as a fraction of
it. `attendo bench` and the scripts in `benchmarks/` use this package.
"""
