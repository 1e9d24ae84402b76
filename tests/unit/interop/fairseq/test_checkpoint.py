"""fairseq's checkpoints compared with two models of transformers that were ported from fairseq.

FSMT is its `transformer` as it is by default (post-norm), M2M100 the one that norms first; both
have its sinusoids. Their tensors carry the names that fairseq gives them.
"""

from __future__ import annotations

import argparse
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import torch

from attendo.bundle import load_bundle
from attendo.cli.main import run
from attendo.core.errors import ConfigError, InputError
from attendo.interop.fairseq import checkpoint
from attendo.interop.import_model import import_model
from attendo.interop.marian import model_folder
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SENTENCES = ["I am a student.", "The girl saved the lion ☃.", "the"]
TARGETS = ["나는 학생이다.", "소녀는 사자를 구했다.", ""]
WIDTH = 16
SIZES = {"ffn": (40, 24), "layers": (2, 1), "heads": (2, 4)}


def list_pieces(model: bytes) -> list[str]:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())][:-2]


def make_settings(**changes: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"arch": "transformer", "activation_fn": "relu"}
    for position, side in enumerate(("encoder", "decoder")):
        settings |= {
            f"{side}_embed_dim": WIDTH,
            f"{side}_ffn_embed_dim": SIZES["ffn"][position],
            f"{side}_layers": SIZES["layers"][position],
            f"{side}_attention_heads": SIZES["heads"][position],
            f"{side}_normalize_before": False,
            f"{side}_learned_pos": False,
        }
    languages = {"source_lang": "en", "target_lang": "ko"}
    unused = {"adaptive_softmax_cutoff": None, "layernorm_embedding": False, "encoder_layerdrop": 0}
    return {**settings, **languages, **unused, **changes}


def make_peer(kind: str, sizes: tuple[int, int], *, tie: str) -> Any:
    """FSMT, or M2M100, with random weights."""
    from transformers import (
        FSMTConfig,
        FSMTForConditionalGeneration,
        M2M100Config,
        M2M100ForConditionalGeneration,
    )

    shape: dict[str, Any] = {
        "d_model": WIDTH, "activation_function": "relu", "max_position_embeddings": 64,
        "encoder_ffn_dim": SIZES["ffn"][0], "decoder_ffn_dim": SIZES["ffn"][1],
        "encoder_layers": SIZES["layers"][0], "decoder_layers": SIZES["layers"][1],
        "encoder_attention_heads": SIZES["heads"][0], "decoder_attention_heads": SIZES["heads"][1],
        "scale_embedding": kind == "post", "tie_word_embeddings": tie == "three-way",
        "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0,
    }  # fmt: skip
    torch.manual_seed(4)
    if kind == "post":
        config = FSMTConfig(src_vocab_size=sizes[0], tgt_vocab_size=sizes[1], **shape)
        peer: Any = FSMTForConditionalGeneration(config)
    else:
        peer = M2M100ForConditionalGeneration(M2M100Config(vocab_size=sizes[0], **shape))
    for name, parameter in peer.named_parameters():
        if "embed_positions" not in name:
            is_gain = parameter.dim() == 1 and "norm" in name and name.endswith("weight")
            torch.nn.init.normal_(parameter, mean=1.0 if is_gain else 0.0, std=0.3)
    if tie == "decoder":
        decoder = peer.model.decoder
        decoder.output_projection.weight.data.copy_(decoder.embed_tokens.weight)
    return peer.eval()


def fairseq_names(peer: Any) -> dict[str, torch.Tensor]:
    """The state of a peer as fairseq would have saved it."""
    state = {}
    for name, tensor in peer.state_dict().items():
        if "embed_positions" in name or name == "model.shared.weight":
            continue
        plain = name.removeprefix("model.")
        state[{"lm_head.weight": "decoder.output_projection.weight"}.get(plain, plain)] = tensor
    extras = ("version", "embed_positions._float_tensor")
    for side in ("encoder", "decoder"):
        state |= {f"{side}.{extra}": torch.zeros(1) for extra in extras}
    return state


@pytest.fixture
def make_checkpoint(tmp_path, piece_models) -> Callable[..., tuple[Path, Any]]:
    """Write a checkpoint with its files; return it and the reference of the same weights."""

    def make(
        kind: str = "post", *, tie: str = "none", form: str = "cfg", **changes: Any
    ) -> tuple[Path, Any]:
        folder = tmp_path / "fairseq"
        folder.mkdir()
        pieces = {language: list_pieces(model) for language, model in piece_models.items()}
        if tie == "three-way":
            both = list(dict.fromkeys([*pieces["en"], *pieces["ko"]]))
            pieces = {"en": both, "ko": both}
        for language, own in pieces.items():
            lines = [f"{piece} {100 - number}" for number, piece in enumerate(own[:100])]
            lines += [f"{piece} 1" for piece in own[100:]]
            text = "\n".join([*lines, "madeupword0000 0"]) + "\n"
            (folder / f"dict.{language}.txt").write_text(text, encoding="utf-8")
            (folder / f"{language}.spm").write_bytes(piece_models[language])
        sizes = (len(pieces["en"]) + 5, len(pieces["ko"]) + 5)
        peer = make_peer(kind, sizes, tie=tie)
        state = fairseq_names(peer)
        settings = make_settings(
            share_all_embeddings=tie == "three-way",
            share_decoder_input_output_embed=tie != "none",
            encoder_normalize_before=kind == "pre",
            decoder_normalize_before=kind == "pre",
            no_scale_embedding=kind == "pre",
            **changes,
        )
        whole: dict[str, Any] = {"model": state, "args": None, "optimizer_history": [{"n": 1}]}
        if form == "cfg":
            whole["cfg"] = {"model": argparse.Namespace(**settings), "task": {"source_lang": "en"}}
        elif form == "args":
            whole["args"] = argparse.Namespace(**settings)
        else:
            (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        torch.save(whole, folder / "checkpoint_best.pt")
        return folder / "checkpoint_best.pt", peer

    return make


def spm_files(path: Path) -> list[Path]:
    return [path.with_name(f"{language}.spm") for language in ("en", "ko")]


def encode(path: Path, language: str, texts: list[str]) -> list[list[int]]:
    """Ids as fairseq gives them: SentencePiece, then the dictionary, then the end symbol."""
    import sentencepiece

    lines = path.with_name(f"dict.{language}.txt").read_text("utf-8").splitlines()
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *(line.rsplit(" ", 1)[0] for line in lines)]
    cutter = sentencepiece.SentencePieceProcessor(model_file=str(path.with_name(f"{language}.spm")))
    table = {symbol: number for number, symbol in reversed(list(enumerate(symbols)))}
    return [[*(table.get(p, 3) for p in cutter.encode(text, out_type=str)), 2] for text in texts]


@pytest.mark.parametrize("form", ["cfg", "args", "text"])
@pytest.mark.parametrize(
    ("kind", "tie"),
    [("post", "none"), ("post", "decoder"), ("post", "three-way"), ("pre", "three-way")],
)
def test_logits_are_those_of_the_ports_to_transformers(make_checkpoint, kind, tie, form):
    path, peer = make_checkpoint(kind, tie=tie, form=form)
    bundle = checkpoint.read(path, models=spm_files(path))
    tokenizer = bundle.tokenizer
    assert bundle.model.config.tie_embeddings == tie
    assert bundle.model.config.norm == kind
    sides = tokenizer.vocabularies
    theirs_src, theirs_tgt = encode(path, "en", SENTENCES), encode(path, "ko", TARGETS)
    ours_src, ours_tgt = tokenizer.encode_src(SENTENCES), tokenizer.encode_tgt(TARGETS)
    assert [[sides[0].foreign_ids[number] for number in row] for row in ours_src] == theirs_src
    assert [[sides[-1].foreign_ids[number] for number in row] for row in ours_tgt] == theirs_tgt
    printed = [number for number in range(len(sides[-1].foreign_ids)) if number != START_ID]
    order = [sides[-1].foreign_ids[number] for number in printed]
    assert sorted(order) == list(range(len(order)))
    for source, target, src, tgt in zip(ours_src, ours_tgt, theirs_src, theirs_tgt, strict=True):
        with torch.no_grad():
            ours = bundle.model(torch.tensor([source]), torch.tensor([[START_ID, *target[:-1]]]))[0]
            theirs = peer(
                input_ids=torch.tensor([src]),
                decoder_input_ids=torch.tensor([[2, *tgt[:-1]]]),
                use_cache=False,
            ).logits[0]
        torch.testing.assert_close(ours[:, printed], theirs[:, order], rtol=0, atol=1e-5)
        assert theirs.std() > 0.5
        assert not ours.softmax(-1)[:, START_ID].any()
    assert dict(enumerate(sides[0].foreign_ids[:4])) == {
        PAD_ID: 1,
        UNK_ID: 3,
        START_ID: 2,
        END_ID: 2,
    }


def test_a_learned_table_begins_behind_the_padding(make_checkpoint):
    """A table that was learned to be the sinusoids is the same model."""
    path, _ = make_checkpoint("pre", tie="three-way")
    expected = checkpoint.read(path, models=spm_files(path)).model
    state = torch.load(path, weights_only=False)
    state["cfg"]["model"] = argparse.Namespace(
        **vars(state["cfg"]["model"])
        | {"encoder_learned_pos": True, "decoder_learned_pos": True}
        | {"max_source_positions": 30, "max_target_positions": 30}
    )
    half = torch.arange(WIDTH // 2) * -(torch.tensor(10_000.0).log() / (WIDTH // 2 - 1))
    angles = torch.arange(32)[:, None] * half.exp()
    for side in ("encoder", "decoder"):
        table = torch.cat([angles.sin(), angles.cos()], dim=1)
        state["model"][f"{side}.embed_positions.weight"] = table
        del state["model"][f"{side}.embed_positions._float_tensor"]
    torch.save(state, path)
    found = checkpoint.read(path, models=spm_files(path)).model
    assert (found.config.positions, found.config.max_length) == ("learned", 30)
    src, tgt = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]])
    with torch.no_grad():
        torch.testing.assert_close(found(src, tgt), expected(src, tgt), rtol=0, atol=1e-5)


def test_the_command_and_what_follows(make_checkpoint, tmp_path, capsys):
    path, _ = make_checkpoint()
    out = tmp_path / "model"
    words = ["import", f"fairseq:{path}", "-o", str(out)]
    for file in spm_files(path):
        words += ["--sentencepiece", str(file)]
    with pytest.raises(SystemExit) as raised:
        run(words)
    assert not raised.value.code
    assert "fairseq: en to ko" in capsys.readouterr().out
    translator = Translator.load(out)
    made = translator.translate(SENTENCES, max_length=12)
    assert len(made) == len(SENTENCES)
    reasons = model_folder.unsupported_reasons(load_bundle(out))
    assert len(reasons) == 2
    assert any("position_layout" in reason for reason in reasons)


def change_state(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    state = torch.load(path, weights_only=False)
    change(state)
    torch.save(state, path)


def test_tensors_that_are_not_as_declared_are_all_named(make_checkpoint):
    path, _ = make_checkpoint()

    def change(state: dict[str, Any]) -> None:
        tensors = state["model"]
        del tensors["encoder.layers.0.fc1.weight"], tensors["decoder.output_projection.weight"]
        tensors["encoder.layernorm_embedding.weight"] = torch.zeros(WIDTH)
        tensors["decoder.layers.0.fc2.bias"] = torch.zeros(3)

    change_state(path, change)
    with pytest.raises(InputError) as raised:
        checkpoint.read(path, models=spm_files(path))
    for line in (
        "missing: encoder.layers.0.fc1.weight",
        "missing: decoder.output_projection.weight",
        "unknown: encoder.layernorm_embedding.weight",
        f"decoder.layers.0.fc2.bias has the shape (3,), not ({WIDTH},)",
    ):
        assert line in str(raised.value)


def test_a_dictionary_of_another_model(make_checkpoint):
    path, _ = make_checkpoint()
    with path.with_name("dict.ko.txt").open("a", encoding="utf-8") as file:
        file.write("more 1\n")
    with pytest.raises(InputError, match=r"decoder\.embed_tokens\.weight has the shape"):
        checkpoint.read(path, models=spm_files(path))
    path.with_name("dict.ko.txt").write_text("no count\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"dict\.ko\.txt, line 1: 'no count'"):
        checkpoint.read(path, models=spm_files(path))


def test_one_vocabulary_of_two_dictionaries_that_differ(make_checkpoint):
    path, _ = make_checkpoint("pre", tie="three-way")
    with path.with_name("dict.ko.txt").open("a", encoding="utf-8") as file:
        file.write("more 1\n")
    with pytest.raises(InputError, match="differ, and the model has one vocabulary"):
        checkpoint.read(path, models=spm_files(path))


class OmegaLike:
    """A settings object of a class that only its own library knows."""


def test_a_checkpoint_that_needs_code_is_rejected(make_checkpoint):
    path, _ = make_checkpoint()
    change_state(path, lambda state: state.update(cfg=OmegaLike()))
    with pytest.raises(InputError, match=r"would run code: it calls .*OmegaLike") as raised:
        checkpoint.read(path, models=spm_files(path))
    assert "config.json next to it" in raised.value.hint


def test_the_safe_command_that_is_printed_works(make_checkpoint):
    """Weights alone, and the settings in text."""
    path, _ = make_checkpoint()
    expected = checkpoint.read(path, models=spm_files(path))
    settings = torch.load(path, weights_only=False)["cfg"]["model"]
    change_state(path, lambda state: [state.pop(key) for key in [*state] if key != "model"])
    with pytest.raises(InputError, match=r"no settings, and there is no config\.json"):
        checkpoint.read(path, models=spm_files(path))
    path.with_name("config.json").write_text(json.dumps(vars(settings)), encoding="utf-8")
    found = checkpoint.read(path, models=spm_files(path))
    assert found.model.config == expected.model.config


def test_settings_that_cannot_be_had_are_all_named(make_checkpoint):
    path, _ = make_checkpoint(
        layernorm_embedding=True, decoder_embed_dim=32, activation_fn="gelu_fast", arch="bart_large"
    )
    with pytest.raises(ConfigError) as raised:
        checkpoint.read(path, models=spm_files(path))
    for name in ("layernorm_embedding = True", "activation_fn", "bart_large is not a transformer"):
        assert name in str(raised.value)


def test_sides_that_differ_are_named(make_checkpoint):
    path, _ = make_checkpoint()
    change_state(
        path,
        lambda state: vars(state["cfg"]["model"]).update(
            decoder_normalize_before=True, decoder_learned_pos=True, decoder_output_dim=8
        ),
    )
    with pytest.raises(ConfigError) as raised:
        checkpoint.read(path, models=spm_files(path))
    for name in ("normalize_before", "learned_pos", "decoder_output_dim = 8"):
        assert name in str(raised.value)


def test_files_next_to_it_that_are_missing_or_unclear(make_checkpoint, tmp_path):
    path, _ = make_checkpoint()
    with pytest.raises(InputError, match=re.escape("which of en.spm, ko.spm is the source's?")):
        import_model(f"fairseq:{path}", tmp_path / "out")
    for file in path.parent.glob("dict.*.txt"):
        file.unlink()
    for file in spm_files(path):
        file.unlink()
    with pytest.raises(InputError) as raised:
        import_model(f"fairseq:{path}", tmp_path / "out")
    assert "no dictionary" in str(raised.value)
    assert "no SentencePiece model" in str(raised.value)


def test_no_checkpoint_of_fairseq(tmp_path):
    torch.save({"weights": torch.zeros(1)}, tmp_path / "other.pt")
    with pytest.raises(InputError, match="has no 'model'"):
        checkpoint.read(tmp_path / "other.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(InputError, match="contains a list"):
        checkpoint.read(tmp_path / "list.pt")
