"""Models from and for other toolkits: Hugging Face Marian, fairseq, CTranslate2, ONNX."""
