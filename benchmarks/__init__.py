"""Benchmarks against other toolkits and against theory; each file or folder runs by itself."""
