"""Import from and export to other toolkits: Hugging Face Marian, fairseq, CTranslate2, ONNX."""
