"""Folders as Hugging Face writes them: a Marian model with random weights, and its vocabulary."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import sentencepiece
import torch

from attendo.synthetic.everyday import synthesize_pairs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LANGUAGES = {"en": 100, "ko": 400}
PAIRS = list(synthesize_pairs(300, seed=1))
WIDTH = 16


class Marian(NamedTuple):
    folder: Path
    peer: Any
    """The model of transformers that was saved there."""


def train_pieces(lines: list[str], size: int) -> bytes:
    """A SentencePiece model with the special ids that Marian's have."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        model_type="unigram",
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


@pytest.fixture(scope="session")
def piece_models() -> dict[str, bytes]:
    return {
        language: train_pieces([getattr(pair, language) for pair in PAIRS], size)
        for language, size in LANGUAGES.items()
    }


def list_pieces(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]


def draw(peer: Any, end_id: int) -> None:
    """Random weights that would show a mix-up, and sentences that end."""
    for name, parameter in peer.named_parameters():
        if "embed_positions" in name:
            continue
        if parameter.dim() == 1:
            is_gain = "norm" in name and name.endswith("weight")
            torch.nn.init.normal_(parameter, mean=1.0 if is_gain else 0.0, std=0.3)
        else:
            torch.nn.init.normal_(parameter, std=WIDTH**-0.5)
    torch.nn.init.normal_(peer.final_logits_bias, std=0.5)
    peer.final_logits_bias[:, end_id] += 3.0


@pytest.fixture
def make_marian(tmp_path, piece_models) -> Callable[..., Marian]:
    """Write a folder: options are those of `MarianConfig`.

    `separate` gives each side a vocabulary of its own; `codes` are languages that it writes;
    `start` names the piece that the decoder starts with.
    """

    def make(
        name: str = "marian",
        *,
        separate: bool = False,
        codes: tuple[str, ...] = (),
        start: str = "<pad>",
        seed: int = 0,
        **options: Any,
    ) -> Marian:
        from transformers import MarianConfig, MarianMTModel

        folder = tmp_path / name
        folder.mkdir()
        models = list(piece_models.values())
        groups = [[list_pieces(one)] for one in models]
        if not separate:
            groups = [[*groups[0], *groups[1]]]
        tables = []
        for group in groups:
            pieces = [piece for part in group for piece in part]
            # Marian's vocabulary has been counted in other texts: some pieces are not in it.
            known = list(dict.fromkeys(pieces))[:-3]
            ends = ["<s>", "<pad>"]
            ordered = ["</s>", "<unk>", *codes, *known, *ends]
            if separate:  # one number means padding on both sides
                ordered = ["</s>", "<unk>", *ends, *codes, *known]
            tables.append({piece: number for number, piece in enumerate(ordered)})
        for file, model in zip(("source.spm", "target.spm"), models, strict=True):
            (folder / file).write_bytes(model)
        for file, table in zip(("vocab.json", "target_vocab.json"), tables, strict=False):
            (folder / file).write_text(json.dumps(table), encoding="utf-8")
        reported = {"source_lang": "en", "target_lang": "ko", "separate_vocabs": separate}
        (folder / "tokenizer_config.json").write_text(json.dumps(reported), encoding="utf-8")
        target = tables[-1]
        settings = {
            "vocab_size": len(tables[0]), "decoder_vocab_size": len(target),
            "pad_token_id": target["<pad>"], "eos_token_id": target["</s>"],
            "decoder_start_token_id": target[start], "forced_eos_token_id": None,
            "d_model": WIDTH, "max_position_embeddings": 128, "activation_function": "swish",
            "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 40,
            "decoder_layers": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": 40,
            "scale_embedding": True,
        }  # fmt: skip
        torch.manual_seed(seed)
        peer = MarianMTModel(MarianConfig(**{**settings, **options})).eval()
        draw(peer, target["</s>"])
        peer.save_pretrained(folder)
        return Marian(folder, peer)

    return make
