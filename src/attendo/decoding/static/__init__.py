"""Greedy and beam search on preallocated tensors of fixed shape, equal to the reference search."""
