"""What all baselines share: embeddings, the output projection, and checks of ids and masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from attendo.model.embeddings import check_ids
from attendo.model.masks import resolve_mask

if TYPE_CHECKING:
    from attendo.model.config import Seq2SeqConfig


class Baseline(nn.Module):
    """Embeds both sides and projects states to logits; a model adds encoder and decoder.

    Unlike the Transformer, it does not multiply embeddings by sqrt(d_model).
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        self.tgt_vocab_size = config.tgt_vocab_size or config.vocab_size
        self.src_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.output = nn.Linear(config.d_model, self.tgt_vocab_size, bias=False)
        if config.tie_embeddings == "three-way":
            self.tgt_embedding = self.src_embedding
        else:
            self.tgt_embedding = nn.Embedding(self.tgt_vocab_size, config.d_model)
        if config.tie_embeddings != "none":
            self.output.weight = self.tgt_embedding.weight
        self.dropout = nn.Dropout(config.dropout)
        tables = (self.src_embedding.weight, self.tgt_embedding.weight, self.output.weight)
        for weight in dict.fromkeys(tables):  # each one once, in this order
            nn.init.normal_(weight, std=config.d_model**-0.5)

    def num_parameters(self) -> int:
        """Return the number of parameters; a shared matrix counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def embed_source(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return embeddings (B, S, D) and padding mask (B, 1, S) of source ids (B, S)."""
        check_ids(ids, self.config.vocab_size, name="src_ids")
        mask = resolve_mask(ids, mask, pad_id=self.config.pad_id, name="src_mask")
        return self.dropout(self.src_embedding(ids)), mask

    def embed_target(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return embeddings (B, T, D) and padding mask (B, 1, T) of the decoder input (B, T)."""
        check_ids(ids, self.tgt_vocab_size, name="tgt_ids")
        mask = resolve_mask(ids, mask, pad_id=self.config.pad_id, name="tgt_mask")
        return self.dropout(self.tgt_embedding(ids)), mask

    def embed_step(self, ids: Tensor) -> Tensor:
        """Return embeddings (N, 1, D) of one target position, ids (N,)."""
        check_ids(ids, self.tgt_vocab_size, name="ids", shape="(batch,)")
        embedded: Tensor = self.dropout(self.tgt_embedding(ids[:, None]))
        return embedded
