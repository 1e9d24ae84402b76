"""Parameters of published models, from their configurations.

Llama 2: Touvron et al. (2023); GPT-3: Brown et al. (2020); GPT-2: Radford et al. (2019).
"""

from __future__ import annotations

from typing import NamedTuple

from attendo.lessons.chapters.ch11_architecture.model_tables import build_meta_model

PAPER_VOCABULARY = 37_000


class DecoderOnly(NamedTuple):
    """The configuration of a decoder-only model."""

    name: str
    source: str
    published: str
    num_layers: int
    d_model: int
    d_ff: int
    num_heads: int
    vocab_size: int
    num_kv_heads: int | None = None
    num_positions: int = 0
    """Learned positions; rotary ones have no parameters."""
    is_tied: bool = False
    """Whether embedding and output share a matrix."""
    is_gated: bool = True
    """Whether the feed-forward network has three matrices (SwiGLU) instead of two."""
    has_bias: bool = False
    """Whether linear layers have biases, and norms are layer norms."""

    def layer_parameters(self) -> int:
        """Return the parameters of one layer."""
        kv_width = self.d_model * (self.num_kv_heads or self.num_heads) // self.num_heads
        attention = 2 * self.d_model**2 + 2 * self.d_model * kv_width
        feed_forward = (3 if self.is_gated else 2) * self.d_model * self.d_ff
        biases = 2 * self.d_model + 2 * kv_width + self.d_ff + self.d_model
        return attention + feed_forward + 2 * self.norm_parameters() + biases * self.has_bias

    def norm_parameters(self) -> int:
        """Return the parameters of one norm: gains, and with biases also shifts."""
        return self.d_model * (2 if self.has_bias else 1)

    def num_parameters(self) -> int:
        """Return all parameters."""
        tokens = self.vocab_size * self.d_model * (1 if self.is_tied else 2)
        positions = self.num_positions * self.d_model
        layers = self.num_layers * self.layer_parameters()
        return tokens + positions + layers + self.norm_parameters()


def _gpt(name: str, source: str, published: str, num_positions: int, **sizes: int) -> DecoderOnly:
    return DecoderOnly(
        name, source, published, vocab_size=50_257, num_positions=num_positions,
        d_ff=4 * sizes["d_model"], is_tied=True, is_gated=False, has_bias=True, **sizes,
    )  # fmt: skip


GPT2 = _gpt("GPT-2", "Radford 2019", "124M", 1024, num_layers=12, d_model=768, num_heads=12)
GPT2_XL = _gpt("GPT-2 XL", "Radford 2019", "1.5B", 1024, num_layers=48, d_model=1600, num_heads=25)
GPT3 = _gpt("GPT-3", "Brown 2020", "175B", 2048, num_layers=96, d_model=12_288, num_heads=96)
LLAMA2_7B = DecoderOnly(
    "Llama 2 7B", "Touvron 2023", "7B", 32, 4096, 11_008, num_heads=32, vocab_size=32_000
)
LLAMA2_70B = DecoderOnly(
    "Llama 2 70B", "Touvron 2023", "70B", 80, 8192, 28_672, num_heads=64, vocab_size=32_000,
    num_kv_heads=8,
)  # fmt: skip
DECODER_ONLY = (GPT2, GPT2_XL, GPT3, LLAMA2_7B, LLAMA2_70B)


def count_paper_model(preset: str) -> int:
    """Return the parameters of a model of the paper, counted on the model itself."""
    return build_meta_model(preset, PAPER_VOCABULARY).num_parameters()
