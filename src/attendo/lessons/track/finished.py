"""The Transformer of "Attention Is All You Need" in one file.

B batch, S source length, T target length, H heads, K head size, D d_model, V vocabulary.
Masks: True = may attend.
"""

import math

import torch
from torch import Tensor, nn


def scaled_dot_product(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the output (..., T, K) and the weights (..., T, S) of attention."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (..., T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


def padding_mask(ids: Tensor, pad_id: int = 0) -> Tensor:
    """Return a mask (B, 1, S) that hides the padding of ids (B, S)."""
    return ids.ne(pad_id).unsqueeze(1)


def causal_mask(length: int) -> Tensor:
    """Return a mask (T, T) that hides later positions."""
    return torch.ones(length, length, dtype=torch.bool).tril()


class MultiHeadAttention(nn.Module):
    """Attention in several heads, with the layers query, key, value and output."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Attend from query (B, T, D) to key and value (B, S, D); mask (B, T or 1, S)."""
        heads, _ = scaled_dot_product(
            self._split_heads(self.query(query)),
            self._split_heads(self.key(key)),
            self._split_heads(self.value(value)),
            None if mask is None else mask.unsqueeze(-3),  # the same for every head
        )
        merged: Tensor = self.output(heads.transpose(1, 2).flatten(2))  # (B, T, H * K)
        return merged

    def _split_heads(self, x: Tensor) -> Tensor:
        """Return x (B, T, D) as heads (B, H, T, K)."""
        batch, length, _ = x.shape
        return x.view(batch, length, self.num_heads, -1).transpose(1, 2)


def sinusoidal(length: int, d_model: int) -> Tensor:
    """Return the positional encoding (T, D): sines in even columns, cosines in odd ones."""
    positions = torch.arange(length, dtype=torch.float64)
    even_dims = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i
    angles = positions[:, None] / 10_000 ** (even_dims / d_model)  # (T, D / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1).float()


class FeedForward(nn.Module):
    """Two linear layers, inner and outer, with a ReLU between them."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Transform every position of x (B, T, D) by itself."""
        transformed: Tensor = self.outer(self.inner(x).relu())
        return transformed


class TiedEmbedding(nn.Module):
    """One matrix `weight` (V, D) for the embeddings and for the output."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))

    def forward(self, ids: Tensor) -> Tensor:
        """Return the vectors (B, T, D) of ids (B, T), times the root of D."""
        return self.weight[ids] * math.sqrt(self.weight.size(1))

    def logits(self, states: Tensor) -> Tensor:
        """Return a score for every word (B, T, V) from states (B, T, D)."""
        return states @ self.weight.T


class AddAndNorm(nn.Module):
    """A residual connection, then layer normalization, with the layers norm and dropout."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, transformed: Tensor) -> Tensor:
        """Return the input x of a sub-layer with its output `transformed` added, normalized."""
        normed: Tensor = self.norm(x + self.dropout(transformed))
        return normed


class EncoderLayer(nn.Module):
    """The layers self_attention, self_add, feed_forward and feed_forward_add."""

    def __init__(self, d_model: int, d_ff: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.self_add = AddAndNorm(d_model, dropout)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_add = AddAndNorm(d_model, dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Transform x (B, S, D) under its padding mask (B, 1, S)."""
        x = self.self_add(x, self.self_attention(x, x, x, mask))
        normed: Tensor = self.feed_forward_add(x, self.feed_forward(x))
        return normed


class Encoder(nn.Module):
    """A stack `layers` of `num_layers` layers of its own."""

    def __init__(
        self, d_model: int, d_ff: int, num_heads: int, num_layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, d_ff, num_heads, dropout) for _ in range(num_layers)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Pass x (B, S, D) through all layers."""
        for layer in self.layers:
            x = layer(x, mask)
        return x


class DecoderLayer(nn.Module):
    """The layers of an encoder layer, and cross_attention and cross_add in the middle."""

    def __init__(self, d_model: int, d_ff: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.self_add = AddAndNorm(d_model, dropout)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_add = AddAndNorm(d_model, dropout)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_add = AddAndNorm(d_model, dropout)

    def forward(
        self, x: Tensor, memory: Tensor, self_mask: Tensor | None, cross_mask: Tensor | None
    ) -> Tensor:
        """Transform x (B, T, D), given the output `memory` (B, S, D) of the encoder."""
        x = self.self_add(x, self.self_attention(x, x, x, self_mask))
        x = self.cross_add(x, self.cross_attention(x, memory, memory, cross_mask))
        normed: Tensor = self.feed_forward_add(x, self.feed_forward(x))
        return normed


class Decoder(nn.Module):
    """A stack `layers` that hides later positions from its self-attention."""

    def __init__(
        self, d_model: int, d_ff: int, num_heads: int, num_layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, d_ff, num_heads, dropout) for _ in range(num_layers)
        )

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor, cross_mask: Tensor | None) -> Tensor:
        """Pass x (B, T, D) through all layers; `mask` (B, 1, T) hides its padding."""
        self_mask = mask & causal_mask(x.size(1))  # (B, T, T)
        for layer in self.layers:
            x = layer(x, memory, self_mask, cross_mask)
        return x


class Transformer(nn.Module):
    """Encoder and decoder with one embedding for both sides and the output, as `embedding`."""

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 512,
        d_ff: int = 2048,
        num_heads: int = 8,
        num_layers: int = 6,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.d_model = d_model
        self.embedding = TiedEmbedding(vocab_size, d_model)
        self.dropout = nn.Dropout(dropout)
        self.encoder = Encoder(d_model, d_ff, num_heads, num_layers, dropout)
        self.decoder = Decoder(d_model, d_ff, num_heads, num_layers, dropout)

    def _embed(self, ids: Tensor) -> Tensor:
        """Return embeddings and positions (B, T, D) of ids (B, T), added."""
        embedded: Tensor = self.embedding(ids) + sinusoidal(ids.size(1), self.d_model)
        dropped: Tensor = self.dropout(embedded)
        return dropped

    def encode(self, src_ids: Tensor) -> Tensor:
        """Return the output of the encoder (B, S, D) for src_ids (B, S)."""
        memory: Tensor = self.encoder(self._embed(src_ids), padding_mask(src_ids))
        return memory

    def decode(self, tgt_ids: Tensor, memory: Tensor, src_ids: Tensor) -> Tensor:
        """Return the logits (B, T, V) for tgt_ids (B, T), given the output of the encoder."""
        states = self.decoder(
            self._embed(tgt_ids), memory, padding_mask(tgt_ids), padding_mask(src_ids)
        )
        return self.embedding.logits(states)

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """Return the logits (B, T, V) of every next word."""
        return self.decode(tgt_ids, self.encode(src_ids), src_ids)


def learning_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """Return the learning rate of a step, counted from 1."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def smoothed_loss(logits: Tensor, labels: Tensor, smoothing: float, pad_id: int = 0) -> Tensor:
    """Return the mean loss of logits (B, T, V) for labels (B, T), without padding."""
    log_probs = logits.log_softmax(dim=-1)
    of_label = log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)  # (B, T)
    loss = -(1 - smoothing) * of_label - smoothing * log_probs.mean(dim=-1)
    return loss[labels.ne(pad_id)].mean()


def train_step(
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    src_ids: Tensor,
    tgt_ids: Tensor,
    *,
    step: int,
    warmup_steps: int,
    smoothing: float = 0.1,
) -> float:
    """Move the weights once; tgt_ids (B, T) begin with the start symbol. Return the loss."""
    loss = smoothed_loss(model(src_ids, tgt_ids[:, :-1]), tgt_ids[:, 1:], smoothing)
    optimizer.zero_grad()
    loss.backward()
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step, model.d_model, warmup_steps)
    optimizer.step()
    return loss.item()


@torch.no_grad()
def greedy(model: Transformer, src_ids: Tensor, start_id: int, length: int) -> Tensor:
    """Return the `length` most probable next words (B, length), one after the other."""
    memory = model.encode(src_ids)
    tgt_ids = torch.full((src_ids.size(0), 1), start_id)
    for _ in range(length):
        next_ids = model.decode(tgt_ids, memory, src_ids)[:, -1].argmax(dim=-1)  # (B,)
        tgt_ids = torch.cat((tgt_ids, next_ids[:, None]), dim=1)
    return tgt_ids[:, 1:]
