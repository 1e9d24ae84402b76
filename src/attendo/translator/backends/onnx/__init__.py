"""The backend of ONNX Runtime: sessions, and searches in NumPy."""
