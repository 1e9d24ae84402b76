"""Text processing: normalization, sentence splitting, tokenizers, glossaries, phrase constraints."""
