"""Import of fairseq Transformer checkpoints."""
