"""Decoding engines behind `Translator`: PyTorch and CTranslate2."""
