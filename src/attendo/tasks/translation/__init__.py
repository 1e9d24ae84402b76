"""Translation of sentence pairs."""
