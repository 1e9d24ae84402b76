"""Text: normalization, sentence splitting, tokenizers, glossaries, phrase constraints."""
