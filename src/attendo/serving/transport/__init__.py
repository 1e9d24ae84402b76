"""Connections and requests before the application sees them: limits, keys, headers, the log."""
