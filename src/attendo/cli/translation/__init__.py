"""What `attendo translate` does besides parsing its options: input, output, documents, clusters."""
