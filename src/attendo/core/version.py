"""The version of Attendo."""

__version__ = "0.1.0"
