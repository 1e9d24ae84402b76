"""Series of numbers over time: reading, windows, normalisation, batches."""
