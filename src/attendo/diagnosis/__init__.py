"""Compare a training run with the paper's recipe and explain what holds it back."""
