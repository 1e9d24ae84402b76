"""How fast it is: Attendo's own trainer and decoder beside peers, on the same batches, in one run.

What the machine could do at best is measured in the same run, so that a figure says how far it is
from there. `attendo bench` and the scripts in `benchmarks/` are thin over this room.
"""
