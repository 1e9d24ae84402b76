"""Models of other toolkits in the same loop: fairseq, OpenNMT-py, eole, JoeyNMT, Sockeye.

Each model has the same sizes as ours, but its own weights: only the number of parameters can be
compared. All use the simple loop of `attendo.bench`. Their own trainers do more, so the result is
an upper bound of their speed. A toolkit whose API has changed is reported as failed, with the
reason.
"""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from attendo.bench.reference_models import Peer
from attendo.text.tokenizer import PAD_ID

if TYPE_CHECKING:
    from attendo.model.transformer import Transformer

MAX_LENGTH = 1024


class Toolkit(nn.Module):
    """A model of a toolkit, with initialized weights: some toolkits leave biases uninitialized."""

    def __init__(self, core: nn.Module) -> None:
        super().__init__()
        for name, parameter in core.named_parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        self.core = core


class StubVocabulary:
    """A stub vocabulary: it has a size, and every token is padding."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, _token: str) -> int:
        return PAD_ID


class Fairseq(Toolkit):
    """fairseq's `TransformerModel`."""

    def __init__(self, model: Transformer) -> None:
        config = model.config
        transformer = import_module("fairseq.models.transformer")
        words = import_module("fairseq.data").Dictionary()
        for number in range(config.vocab_size - len(words)):
            words.add_symbol(f"w{number}")
        words.pad_index = PAD_ID
        sizes = {
            f"{side}_{name}": value
            for side in ("encoder", "decoder")
            for name, value in (
                ("embed_dim", config.d_model),
                ("ffn_embed_dim", config.d_ff),
                ("layers", config.num_layers),
                ("attention_heads", config.num_heads),
            )
        }
        options = Namespace(
            **sizes,
            dropout=config.dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            share_all_embeddings=True,
            max_source_positions=MAX_LENGTH,
            max_target_positions=MAX_LENGTH,
        )
        transformer.base_architecture(options)
        task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
        super().__init__(transformer.TransformerModel.build_model(options, task))

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """Teacher forcing."""
        logits: Tensor = self.core(src_ids, count_tokens(src_ids), tgt_ids)[0]
        return logits


class OpenNmt(Toolkit):
    """OpenNMT-py's `NMTModel` (version 3)."""

    def __init__(self, model: Transformer) -> None:
        config = model.config
        opts, parse = import_module("onmt.opts"), import_module("onmt.utils.parse")
        parser = parse.ArgumentParser()
        opts.train_opts(parser)
        settings: dict[str, Any] = {
            "layers": config.num_layers,
            "hidden_size": config.d_model,
            "word_vec_size": config.d_model,
            "heads": config.num_heads,
            "transformer_ff": config.d_ff,
            "dropout": config.dropout,
            "attention_dropout": 0.0,
            "encoder_type": "transformer",
            "decoder_type": "transformer",
            "data": "none",
            "src_vocab": "none",
        }
        arguments = [part for key, value in settings.items() for part in (f"-{key}", str(value))]
        flags = ["-position_encoding", "-share_embeddings", "-share_decoder_embeddings"]
        options, _ = parser.parse_known_args([*arguments, *flags])
        parse.ArgumentParser.update_model_opts(options)
        vocabulary = StubVocabulary(config.vocab_size)
        build = import_module("onmt.model_builder").build_base_model
        super().__init__(build(options, {"src": vocabulary, "tgt": vocabulary}))

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """Teacher forcing; the model removes the last column itself."""
        core: Any = self.core
        target = nn.functional.pad(tgt_ids, (0, 1), value=PAD_ID)
        states = core(src_ids[..., None], target[..., None], count_tokens(src_ids))[0]
        logits: Tensor = core.generator(states)
        return logits


class Eole(Toolkit):
    """eole's `EncoderDecoderModel`."""

    def __init__(self, model: Transformer) -> None:
        config = model.config
        settings = import_module("eole.config.models").TransformerModelConfig(
            layers=config.num_layers,
            hidden_size=config.d_model,
            heads=config.num_heads,
            transformer_ff=config.d_ff,
            embeddings={
                "word_vec_size": config.d_model,
                "position_encoding": True,
                "position_encoding_type": "SinusoidalInterleaved",
            },
            share_embeddings=True,
            share_decoder_embeddings=True,
        )
        running = import_module("eole.config.training").TrainingConfig(
            dropout=[config.dropout], attention_dropout=[0.0], self_attn_backend="pytorch"
        )
        vocabulary = StubVocabulary(config.vocab_size)
        vocabs = {"src": vocabulary, "tgt": vocabulary, "specials": {"pad_token": "<blank>"}}
        kind = import_module("eole.models.model").EncoderDecoderModel
        core = kind.build_blocks(settings, vocabs, running)
        core.build_generator(settings, vocabs)
        super().__init__(core)

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """Teacher forcing; the model removes the last column itself."""
        core: Any = self.core
        target = nn.functional.pad(tgt_ids, (0, 1), value=PAD_ID)
        logits: Tensor = core.generator(core(src_ids, target, count_tokens(src_ids))[0])
        return logits


class JoeyNmt(Toolkit):
    """JoeyNMT's encoder and decoder."""

    def __init__(self, model: Transformer) -> None:
        config = model.config
        sizes: dict[str, Any] = {
            "hidden_size": config.d_model,
            "ff_size": config.d_ff,
            "num_layers": config.num_layers,
            "num_heads": config.num_heads,
            "dropout": config.dropout,
            "emb_dropout": config.dropout,
            "layer_norm": "post",
        }
        embedding = import_module("joeynmt.embeddings").Embeddings(
            embedding_dim=config.d_model,
            scale=True,
            vocab_size=config.vocab_size,
            padding_idx=PAD_ID,
        )
        encoder = import_module("joeynmt.encoders").TransformerEncoder(**sizes)
        decoder = import_module("joeynmt.decoders").TransformerDecoder(
            **sizes, vocab_size=config.vocab_size
        )
        decoder.output_layer.weight = embedding.lut.weight
        parts = {"embedding": embedding, "encoder": encoder, "decoder": decoder}
        super().__init__(nn.ModuleDict(parts))

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """Teacher forcing."""
        core: Any = self.core
        src_mask, tgt_mask = ((ids != PAD_ID)[:, None] for ids in (src_ids, tgt_ids))
        memory, _ = core["encoder"](core["embedding"](src_ids), count_tokens(src_ids), src_mask)
        logits: Tensor = core["decoder"](
            trg_embed=core["embedding"](tgt_ids),
            encoder_output=memory,
            encoder_hidden=None,
            src_mask=src_mask,
            unroll_steps=None,
            hidden=None,
            trg_mask=tgt_mask,
        )[0]
        return logits


class Sockeye(Toolkit):
    """Sockeye's `SockeyeModel` (version 3)."""

    def __init__(self, model: Transformer) -> None:
        config = model.config
        stack = import_module("sockeye.transformer").TransformerConfig(
            model_size=config.d_model,
            attention_heads=config.num_heads,
            feed_forward_num_hidden=config.d_ff,
            act_type="relu",
            num_layers=config.num_layers,
            dropout_attention=0.0,
            dropout_act=0.0,
            dropout_prepost=config.dropout,
            positional_embedding_type="fixed",
            preprocess_sequence="",
            postprocess_sequence="drn",
            max_seq_len_source=MAX_LENGTH,
            max_seq_len_target=MAX_LENGTH,
            depth_key_value=config.d_model,
        )
        embedding = import_module("sockeye.encoder").EmbeddingConfig(
            vocab_size=config.vocab_size, num_embed=config.d_model, dropout=config.dropout
        )
        data = import_module("sockeye.data_io").DataConfig(
            data_statistics=None,
            max_seq_len_source=MAX_LENGTH,
            max_seq_len_target=MAX_LENGTH,
            num_source_factors=1,
            num_target_factors=1,
        )
        models = import_module("sockeye.model")
        settings = models.ModelConfig(
            config_data=data,
            vocab_source_size=config.vocab_size,
            vocab_target_size=config.vocab_size,
            config_embed_source=embedding,
            config_embed_target=embedding,
            config_encoder=stack,
            config_decoder=stack,
        )
        super().__init__(models.SockeyeModel(settings))

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """Teacher forcing; the model needs the source length and the length of a source prefix."""
        lengths = torch.stack([count_tokens(src_ids), torch.zeros_like(src_ids[:, 0])], dim=1)
        outputs = self.core(src_ids[..., None], lengths, tgt_ids[..., None], count_tokens(tgt_ids))
        logits: Tensor = outputs["logits"]
        return logits


def count_tokens(ids: Tensor) -> Tensor:
    """Return the number of tokens of each row, without padding."""
    return (ids != PAD_ID).sum(dim=1)


def _peer(name: str, build: type[Toolkit], package: str) -> Peer:
    return Peer(name, build, package, has_our_weights=False, can_compile=False)


TOOLKITS = (
    _peer("fairseq", Fairseq, "fairseq"),
    _peer("OpenNMT-py", OpenNmt, "onmt"),
    _peer("eole", Eole, "eole"),
    _peer("JoeyNMT", JoeyNmt, "joeynmt"),
    _peer("Sockeye", Sockeye, "sockeye"),
)
