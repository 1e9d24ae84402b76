"""Greedy and beam search equal `generate` of Hugging Face, on a Marian model of equal weights.

Marian is the Transformer of the paper with its sines and cosines in halves. The rules of the two
searches agree where `early_stopping="never"`: an end counts if it is among the best `num_beams`
candidates, scores are divided by the number of tokens (the end symbol counts, the start symbol does
not) to the power of `length_penalty`, our `length_norm="power"`. They differ in what the limit
cuts: there everything counts as finished, here what has really ended goes first. So the searches
are compared where enough hypotheses end, and that difference has a test of its own.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from attendo import Transformer
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.scoring import score
from attendo.decoding.search import search

PAD, UNK, START, END = range(4)
VOCAB, D_MODEL, D_FF, HEADS, LAYERS = 16, 16, 40, 2, 2
PLACES = {
    "self_attn": "self_attention",
    "encoder_attn": "cross_attention",
    "self_attn_layer_norm": "self_add.norm",
    "encoder_attn_layer_norm": "cross_add.norm",
    "final_layer_norm": "feed_forward_add.norm",
    "fc1": "feed_forward.inner",
    "fc2": "feed_forward.outer",
}
PARTS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_peer(seed: int, *, scale: float = 1.4, start_id: int = START) -> Any:
    """A Marian model with random weights, biases and norms that would show a mix-up."""
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(seed)
    config = MarianConfig(
        vocab_size=VOCAB, d_model=D_MODEL, max_position_embeddings=128,
        encoder_layers=LAYERS, encoder_attention_heads=HEADS, encoder_ffn_dim=D_FF,
        decoder_layers=LAYERS, decoder_attention_heads=HEADS, decoder_ffn_dim=D_FF,
        activation_function="relu", scale_embedding=True, dropout=0.0,
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=start_id,
        forced_eos_token_id=None,
    )  # fmt: skip
    peer = MarianMTModel(config).eval()
    assert not peer.final_logits_bias.any()
    for name, parameter in peer.named_parameters():
        if "embed_positions" in name:
            continue
        if parameter.dim() == 1:
            is_gain = "norm" in name and name.endswith("weight")
            torch.nn.init.normal_(parameter, mean=1.0 if is_gain else 0.0, std=0.3)
        else:
            torch.nn.init.normal_(parameter, std=scale / D_MODEL**0.5)
    end = peer.model.shared.weight.data[END]
    peer.model.decoder.layers[-1].final_layer_norm.bias.data += 2.0 * end / (end @ end)
    return peer  # which adds 2 to the logit of the end symbol: it must come before the limit


def make_ours(peer: Any) -> Transformer:
    """Our model, every weight copied; none of ours or of the peer's is left out."""
    model = Transformer(
        VOCAB, d_model=D_MODEL, d_ff=D_FF, num_heads=HEADS, num_layers=LAYERS,
        position_layout="halves",
    ).eval()  # fmt: skip
    weights = {
        name: tensor
        for name, tensor in peer.model.named_parameters()
        if "embed_positions" not in name
    }
    ours = dict(model.named_parameters())
    with torch.no_grad():
        ours.pop("src_embedding.weight").copy_(weights.pop("shared.weight"))
        for name in list(weights):
            ours.pop(our_name(name)).copy_(weights.pop(name))
    assert not ours
    assert peer.lm_head.weight is peer.model.shared.weight
    return model


def our_name(name: str) -> str:
    side, layers, number, module, *rest = name.split(".")
    rest = [PARTS.get(part, part) for part in rest]
    return ".".join([side, layers, number, PLACES[module], *rest])


def make_batch(seed: int, lengths: list[int]) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    rows = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in enumerate(lengths):
        words = torch.randint(END + 1, VOCAB, (length - 1,), generator=draw)
        rows[row, :length] = torch.cat([words, torch.tensor([END])])
    return rows


def generate(peer: Any, src_ids: torch.Tensor, **options: Any) -> list[list[tuple]]:
    """For each row the ids and scores that Hugging Face gives, and whether each has ended."""
    count = options.get("num_return_sequences", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it comments on the options
        output = peer.generate(
            src_ids,
            attention_mask=src_ids.ne(PAD).long(),
            suppress_tokens=list({PAD, UNK, peer.config.decoder_start_token_id}),
            do_sample=False,
            return_dict_in_generate=True,
            output_scores=True,
            **options,
        )
    scores = getattr(output, "sequences_scores", None)
    scores = [0.0] * len(output.sequences) if scores is None else scores.tolist()
    found = []
    for ids, figure in zip(output.sequences[:, 1:].tolist(), scores, strict=True):
        is_finished = END in ids
        printed = ids[: ids.index(END)] if is_finished else [one for one in ids if one != PAD]
        found.append((printed, figure, is_finished))
    return [found[first : first + count] for first in range(0, len(found), count)]


@pytest.fixture(scope="module", params=[1, 3, 4])
def twins(request):
    peer = make_peer(request.param)
    return peer, make_ours(peer), make_batch(request.param, [6, 3, 8, 4])


@pytest.fixture(scope="module")
def symbols():
    return SpecialIds(START, END, PAD, UNK)


def test_logits_agree(twins):
    peer, model, src_ids = twins
    tgt_ids = torch.randint(4, VOCAB, (4, 7))
    with torch.no_grad():
        expected = peer(
            input_ids=src_ids, attention_mask=src_ids.ne(PAD).long(), decoder_input_ids=tgt_ids
        ).logits
        torch.testing.assert_close(model(src_ids, tgt_ids), expected, rtol=0, atol=1e-4)
    assert expected.std() > 1.0  # far from a model that says nothing


def test_greedy_gives_the_same_ids(twins, symbols):
    peer, model, src_ids = twins
    for rules, theirs in (
        ({}, {}),
        ({"no_repeat_ngram": 2}, {"no_repeat_ngram_size": 2}),
        ({"min_length": 4}, {"min_new_tokens": 4}),
    ):
        options = DecodingOptions(beam_size=1, max_extra_tokens=100, max_length=20, **rules)
        found = search(model, src_ids, symbols, options)
        expected = generate(peer, src_ids, max_new_tokens=20, num_beams=1, **theirs)
        assert [one.hypotheses[0].ids for one in found] == [row[0][0] for row in expected]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("beams", [2, 4, 7])
def test_beam_search_gives_the_same_sequences_and_scores(twins, symbols, beams, alpha):
    peer, model, src_ids = twins
    num_compared = 0
    for rules, theirs in (
        ({}, {}),
        ({"n_best": beams}, {"num_return_sequences": beams}),
        ({"no_repeat_ngram": 2, "n_best": 2}, {"no_repeat_ngram_size": 2}),
        ({"no_repeat_ngram": 3, "min_length": 3}, {"no_repeat_ngram_size": 3, "min_new_tokens": 3}),
    ):
        n_best = rules.get("n_best", 1)
        limits = {"max_extra_tokens": 100, "max_length": 40}
        options = DecodingOptions(
            beam_size=beams, alpha=alpha, length_norm="power", **limits, **rules
        )
        found = search(model, src_ids, symbols, options)
        expected = generate(
            peer, src_ids, num_beams=beams, length_penalty=alpha, early_stopping="never",
            max_new_tokens=40, **{"num_return_sequences": n_best, **theirs},
        )  # fmt: skip
        for one, row in zip(found, expected, strict=True):
            if not all(h.is_finished for h in one.hypotheses) or not all(ends for *_, ends in row):
                continue  # the limit came into it
            num_compared += 1
            assert [h.ids for h in one.hypotheses] == [ids for ids, *_ in row]
            assert [h.score for h in one.hypotheses] == pytest.approx(
                [figure for _, figure, _ in row], abs=1e-4
            )
    assert num_compared >= 4


def test_at_the_limit_the_rules_differ(symbols):
    """What Hugging Face cuts counts as finished; ours gives first what has really ended."""
    seen = 0
    for seed in range(8):
        peer = make_peer(seed)
        model, src_ids = make_ours(peer), make_batch(seed, [5])
        options = DecodingOptions(beam_size=4, max_length=4, alpha=0.0, n_best=4)
        (found,) = search(model, src_ids, symbols, options)
        (row,) = generate(
            peer, src_ids, num_beams=4, length_penalty=0.0, early_stopping="never",
            max_new_tokens=4, num_return_sequences=4,
        )  # fmt: skip
        ended = [ids for ids, _, ends in row if ends]
        ours = [one.ids for one in found.hypotheses if one.is_finished]
        assert ours[: len(ended)] == ended
        seen += any(not ends for *_, ends in row) and bool(ended)
    assert seen >= 2


def test_a_model_that_starts_with_the_padding_symbol():
    """As the published Marian models do; scoring must not take its first position for padding."""
    symbols = SpecialIds(PAD, END, PAD, UNK)
    num_compared = 0
    for seed in range(4):
        peer = make_peer(seed, start_id=PAD)
        model, src_ids = make_ours(peer), make_batch(seed, [6, 3])
        rules = {"no_repeat_ngram": 2, "length_norm": "power", "alpha": 1.0}
        options = DecodingOptions(**rules, max_extra_tokens=100, max_length=40)
        best = [one.hypotheses[0] for one in search(model, src_ids, symbols, options)]
        expected = generate(
            peer, src_ids, num_beams=4, length_penalty=1.0, early_stopping="never",
            no_repeat_ngram_size=2, max_new_tokens=40,
        )  # fmt: skip
        scored = score(model, src_ids, [one.ids for one in best], symbols)
        for one, figures, ((ids, _, is_finished),) in zip(best, scored, expected, strict=True):
            assert figures[: len(one.token_log_probs)] == pytest.approx(
                one.token_log_probs, abs=1e-4
            )
            if is_finished and one.is_finished:
                num_compared += 1
                assert one.ids == ids
    assert num_compared >= 5
