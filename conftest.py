"""What is not collected for doctests: kernels, where their language is not installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["src/attendo/*/*_kernels.py"]
