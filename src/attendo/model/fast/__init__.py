"""Fast paths with the model's own results: packed sentences, local attention, static decoding."""
