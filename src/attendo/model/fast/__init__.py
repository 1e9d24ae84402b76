"""Fast paths of the model: packed sequences, fused weights, static decoding."""
