"""Import and export of Hugging Face Marian model folders."""
