"""GPU operators: custom operators and Triton kernels, and when to use them."""
