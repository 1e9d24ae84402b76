"""What the convolutional model is told."""

from __future__ import annotations

from attendo.core.config import Count, Rate, Seq2SeqConfig


class ConvConfig(Seq2SeqConfig):
    """The model of Gehring et al. (2017); the sizes are theirs for English to Romanian.

    >>> ConvConfig(vocab_size=100, kernel_size=4)
    Traceback (most recent call last):
    attendo.core.errors.ConfigError: ConvConfig: 1 setting cannot be used
      - kernel_size 4 is even, and the encoder's window needs a middle (use kernel_size 3 or 5)
    """

    d_hidden: Count | None = None
    """Width of the convolutions; d_model when not given."""
    num_layers: Count = 20
    num_decoder_layers: Count | None = None
    """Decoder layers where they differ from the encoder's `num_layers`."""
    kernel_size: Count = 3
    """Positions that one convolution reads: around it in the encoder, up to it in the decoder."""
    dropout: Rate = 0.1
    """On embeddings with their positions, on each convolution's input, on the decoder's output."""
    max_length: Count = 1024
    """Positions are learned, so there is a longest sequence."""

    def _find_conflicts(self) -> list[str]:
        if self.kernel_size % 2:
            return []
        near = f"{self.kernel_size - 1} or {self.kernel_size + 1}"
        return [
            f"kernel_size {self.kernel_size} is even, and the encoder's window needs a middle "
            f"(use kernel_size {near})"
        ]
