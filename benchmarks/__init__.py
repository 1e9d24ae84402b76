"""Measurements beside peers and theory; each file or folder runs by itself."""
