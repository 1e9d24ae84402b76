"""GPU operators: eager reference, custom op and Triton kernel of each."""
