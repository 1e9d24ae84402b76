"""Scaled dot-product attention (equation 1) with numbers small enough to check by hand.

Run: python examples/attention_by_hand.py
"""

from __future__ import annotations

import torch

from attendo.model.attention import scaled_dot_product

X = torch.tensor([[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])  # three tokens, d_model = 4
W_Q = torch.tensor([[1.0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
W_K = torch.tensor([[0.0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]])
W_V = torch.tensor([[0.0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]])


def show(name: str, matrix: torch.Tensor) -> None:
    """Print a matrix with its name."""
    rows = ("  ".join(f"{number:8.4f}" for number in row) for row in matrix.tolist())
    print(f"{name}\n  " + "\n  ".join(rows))


def main() -> None:
    """Compute queries, keys and values, then scores, weights and output."""
    query, key, value = X @ W_Q, X @ W_K, X @ W_V
    output, weights = scaled_dot_product(query, key, value, need_weights=True)
    show("Q K^T: similarity of each query (row) to each key (column)", query @ key.T)
    show("softmax(Q K^T / sqrt(3)): attention weights", weights)
    show("output: weighted sum of the values", output)


if __name__ == "__main__":
    main()
