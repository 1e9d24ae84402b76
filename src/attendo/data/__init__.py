"""Corpora: reading, cleaning, splitting and fetching parallel text. Imports only `attendo.core`."""
