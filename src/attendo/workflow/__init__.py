"""A build: steps from corpora to a small translator, keyed by content, that can be resumed."""
