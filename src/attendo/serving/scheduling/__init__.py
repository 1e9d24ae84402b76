"""The scheduler: admission, fairness between clients, and work in slices."""
