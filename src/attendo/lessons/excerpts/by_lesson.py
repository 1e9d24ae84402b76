"""Which lines each lesson shows, and how the symbols of its formulas map to the variables."""

from __future__ import annotations

from attendo.lessons.blocks import Code, Listing
from attendo.lessons.excerpts.source import Excerpt, read_excerpt
from attendo.lessons.prose import Prose

prose = Prose("attendo.lessons.excerpts")

HEADING = prose("heading")
PAGE_TITLE = prose("page-title")
PAGE_INTRODUCTION = prose("page-introduction")

ATTENTION = "attendo.model.attention"
LAYERS = "attendo.model.layers"
MASKS = "attendo.model.masks"
RNN_SCORES = "attendo.architectures.rnn_attention_scores"
TOKENIZER = "attendo.text.tokenizer"
TRANSFORMER = "attendo.model.transformer"

EXCERPTS: dict[int, tuple[Excerpt, ...]] = {
    0: (Excerpt(TRANSFORMER, "Transformer.forward"), Excerpt(TRANSFORMER, "Transformer.encode")),
    1: (
        Excerpt(RNN_SCORES, "AdditiveScore._score"),
        Excerpt(RNN_SCORES, "attention_weights", since="scores"),
    ),
    2: (Excerpt("attendo.model.embeddings", "ScaledEmbedding"),),
    3: (Excerpt("attendo.model.positional_encoding", "sinusoidal", since="positions"),),
    4: (Excerpt(ATTENTION, "scaled_dot_product", since="scores"),),
    5: (Excerpt(ATTENTION, "attention_scores"),),
    6: (
        Excerpt(ATTENTION, "MultiHeadAttention.__init__", since="query"),
        Excerpt(ATTENTION, "MultiHeadAttention._split_heads"),
        Excerpt(ATTENTION, "MultiHeadAttention.merge_heads"),
    ),
    7: (Excerpt(MASKS, "padding_mask"), Excerpt(MASKS, "causal_mask")),
    8: (Excerpt(LAYERS, "AddAndNorm.post", since="added"),),
    9: (
        Excerpt(LAYERS, "EncoderLayer.forward", since="normed"),
        Excerpt(LAYERS, "AddAndNorm.post", since="added"),
    ),
    10: (
        Excerpt("attendo.model.feed_forward", "FeedForward.__init__", since="inner"),
        Excerpt("attendo.model.feed_forward", "FeedForward.forward"),
    ),
    11: (
        Excerpt(LAYERS, "EncoderLayer.forward", since="normed"),
        Excerpt(LAYERS, "DecoderLayer.forward", since="normed"),
    ),
    12: (
        Excerpt(TRANSFORMER, "Transformer.step"),
        Excerpt("attendo.decoding.beam", "BeamSearch._next_log_probs"),
    ),
    13: (
        Excerpt("attendo.training.losses", "label_smoothed_nll"),
        Excerpt("attendo.training.schedule", "noam"),
    ),
    14: (
        Excerpt("attendo.decoding.beam", "BeamSearch.run"),
        Excerpt("attendo.decoding.hypothesis", "length_penalty"),
    ),
    15: (Excerpt("attendo.inspection.receptive_field", "trace_inputs"),),
    18: (
        Excerpt("attendo.evaluation.bleu", "bleu"),
        Excerpt("attendo.evaluation.bootstrap", "bootstrap_scores", since="rng"),
        Excerpt("attendo.evaluation.bootstrap", "confidence_interval"),
    ),
    21: (
        Excerpt(LAYERS, "AddAndNorm.post", since="added"),
        Excerpt(ATTENTION, "attention_scores"),
        Excerpt("attendo.model.positional_encoding", "SinusoidalPositions.forward"),
        Excerpt(MASKS, "causal_mask"),
    ),
    22: (
        Excerpt(LAYERS, "AddAndNorm.pre"),
        Excerpt(LAYERS, "AddAndNorm.post", since="added"),
        Excerpt("attendo.model.kv_cache", "LayerCache.append"),
    ),
    19: (
        Excerpt("attendo.architectures.encoder_only", "EncoderOnly.encode"),
        Excerpt("attendo.architectures.decoder_only", "DecoderOnly._embed_joint", since="mask"),
        Excerpt("attendo.tasks.masked_lm.batching", "mask_tokens", since="action"),
    ),
    20: (
        Excerpt("attendo.architectures.time_series", "NumberEmbedding"),
        Excerpt("attendo.architectures.time_series", "presence_mask"),
    ),
    16: (
        Excerpt("attendo.data.tokenizer_training", "_run_trainer"),
        Excerpt(TOKENIZER, "Tokenizer.src_pieces"),
    ),
    17: (
        Excerpt("attendo.training.train_step", "forward_backward"),
        Excerpt("attendo.training.trainer", "Trainer._optimizer_step"),
        Excerpt("attendo.training.early_stopping", "EarlyStopping.update", since="is_better"),
    ),
}


def build_code(number: int) -> list[Code]:
    """Return the code of a lesson as a block, or nothing if it shows none."""
    excerpts = EXCERPTS.get(number)
    if not excerpts:
        return []
    listings = [Listing(one.module, one.name, *read_excerpt(one)) for one in excerpts]
    return [Code(prose(f"lesson-{number}"), listings)]
