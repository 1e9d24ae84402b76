"""Behind the same `Translator`: float32 gives our own texts, whatever options both have."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from attendo.bundle import build_model, save_bundle
from attendo.cli.main import run
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.inspection import capture
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID
from attendo.translator import Translator
from attendo.translator.backends.ctranslate2.loader import TranslatorPool
from attendo.translator.backends.ctranslate2.options import PATIENCE, to_ct2_options
from attendo.translator.word_suggestions import next_words

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ("ka", "to", "mi", "re", "so", "lu")
SIZES = {"d_model": 32, "d_ff": 64, "num_heads": 4, "num_layers": 1, "dropout": 0.0}
STEPS, ROWS = 120, 32
"""Few: the model is unsure, so that hypotheses compete."""


def draw_texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)  # noqa: S311 - a toy
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(count)]


TEXTS = draw_texts(60, seed=2)


@pytest.fixture(scope="module")
def folder(toy, tmp_path_factory) -> Path:
    """A model that has half learnt to turn words round and write them in capitals."""
    tokenizer = toy.prepared.tokenizer
    torch.manual_seed(1)
    model = build_model("transformer", SIZES, tokenizer)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(STEPS):
        texts = draw_texts(ROWS, seed=1000 + step)
        turned = [" ".join(reversed(text.split())).upper() for text in texts]
        src, tgt = (
            torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD_ID
            )
            for rows in (tokenizer.encode_src(texts), tokenizer.encode_tgt(turned))
        )
        fed = tgt.roll(1, dims=1)
        fed[:, 0] = START_ID
        logits = model(src, fed, tgt_mask=torch.ones_like(tgt, dtype=torch.bool)[:, None])
        loss = F.cross_entropy(logits.flatten(0, 1), tgt.flatten(), ignore_index=PAD_ID)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    place = tmp_path_factory.mktemp("models") / "toy"
    about = {"calibration": {"temperature": 1.3}, "max_src_tokens": 12}
    save_bundle(place, model, tokenizer, about=about)
    return place


@pytest.fixture(scope="module")
def own(folder) -> Translator:
    return Translator.load(folder, device="cpu")


@pytest.fixture(scope="module")
def fast(folder) -> Translator:
    return Translator.load(folder, engine="ctranslate2", precision="float32")


def ids_of(made) -> list[list[int]]:
    return [made.ids, *(one.ids for one in made.alternatives)]


EXACT = [
    {},
    {"beam_size": 1},
    {"beam_size": 5, "n_best": 5},
    {"beam_size": 2, "alpha": 0.0},
    {"alpha": 0.0, "n_best": 2},
    {"alpha": 1.0},
    {"alpha": -1.0},
    {"alpha": 1.0, "length_norm": "power"},
    {"max_length": 3},
    {"max_length": 3, "beam_size": 1},
    {"max_extra_tokens": 0, "n_best": 4},
    {"max_extra_tokens": 0, "alpha": 0.0},
    {"prefix": "KA"},
    {"prefix": "LU SO", "beam_size": 1},
    {"beam_size": 1, "min_length": 6},
    {"beam_size": 1, "no_repeat_ngram": 1},
    {"unk": "keep"},
]


@pytest.mark.parametrize("options", EXACT, ids=str)
def test_the_same_texts_as_our_own(own, fast, options):
    ours, theirs = (one.translate(TEXTS, **options) for one in (own, fast))
    assert sum(a.ids == b.ids for a, b in zip(ours, theirs, strict=True)) >= 0.99 * len(TEXTS)
    lists = sum(ids_of(a) == ids_of(b) for a, b in zip(ours, theirs, strict=True))
    assert lists >= 0.95 * len(TEXTS)
    for a, b in zip(ours, theirs, strict=True):
        if a.ids == b.ids:
            assert (str(a), a.notes, a.is_finished) == (str(b), b.notes, b.is_finished)
            assert b.score / b.log_prob == pytest.approx(a.score / a.log_prob)


@pytest.mark.parametrize("unk", ["avoid", "keep"])
@pytest.mark.parametrize("prefix", ["", "LU SO"])
def test_scores_share_out_what_is_never_said(own, fast, unk, prefix):
    """The log-probability of each token among those that may come; of a beginning as it is."""
    never = [PAD_ID, START_ID, *([UNK_ID] if unk == "avoid" else [])]
    texts = TEXTS[:10]
    made = fast.translate(texts, unk=unk, prefix=prefix)
    begun = len(prefix.split())
    for text, one in zip(texts, made, strict=True):
        said = [*one.ids, *([END_ID] if one.is_finished else [])]
        src, fed = own.tokenizer.encode_src([text]), [[START_ID, *said[:-1]]]
        with torch.no_grad():
            logits = own.model(torch.tensor(src), torch.tensor(fed))[0].double()
        plain = logits.log_softmax(-1)
        shared = logits.index_fill(1, torch.tensor(never), -math.inf).log_softmax(-1)
        figures = [(plain if t < begun else shared)[t, number] for t, number in enumerate(said)]
        assert one.log_prob == pytest.approx(math.fsum(map(float, figures)), abs=1e-4)


def test_the_toy_is_worth_it(own):
    """Were the model sure of everything, beams would not matter."""
    greedy, beam = own.translate(TEXTS, beam_size=1), own.translate(TEXTS)
    assert 0.02 < sum(a != b for a, b in zip(greedy, beam, strict=True)) / len(TEXTS) < 0.9
    lengths = [len(made.ids) for made in own.translate(TEXTS, alpha=1.0)]
    assert lengths != [len(made.ids) for made in own.translate(TEXTS, alpha=-1.0)]


@pytest.mark.parametrize("rule", [{"min_length": 7}, {"no_repeat_ngram": 1}], ids=str)
def test_rules_are_kept_and_scores_are_the_models(own, fast, rule):
    """It shares out what is forbidden: another hypothesis may win, its score must be true."""
    made = fast.translate(TEXTS[:20], **rule)
    scored = own.backend.score(
        own.tokenizer.encode_src(TEXTS[:20]), [one.ids for one in made], temperature=1.0
    )
    for one, figures in zip(made, scored, strict=True):
        assert len(one.ids) >= rule.get("min_length", 0)
        assert "no_repeat_ngram" not in rule or len(set(one.ids)) == len(one.ids)
        told = figures if one.is_finished else figures[:-1]
        assert one.log_prob == pytest.approx(math.fsum(told), abs=1e-3)


def test_a_beginning_may_be_the_whole_translation(own, fast):
    """Also where the end comes second: CTranslate2 alone would not take it then."""
    ends = 0
    for text in TEXTS:
        turned = text.upper().split()[::-1]
        for count in range(max(1, len(turned) - 2), len(turned) + 1):
            prefix = " ".join(turned[:count])
            ours, theirs = (one.translate([text], prefix=prefix)[0] for one in (own, fast))
            assert theirs == ours, (text, prefix)
            ends += ours == prefix
    assert ends > 10


def test_beginnings_of_some_texts_only(own, fast):
    texts, prefix = TEXTS[:4], ["", "KA", "", "MI MI"]
    ours, theirs = (one.translate(texts, prefix=prefix) for one in (own, fast))
    assert theirs == ours
    assert [str(theirs[1])[:2], str(theirs[3])[:5]] == ["KA", "MI MI"]


def test_long_and_empty_texts_as_ever(own, fast):
    texts = ["", "ka to mi re so lu " * 6, "ka.\nto mi.\n", "  "]
    assert fast.translate(texts) == own.translate(texts)
    assert fast.translate([]) == []


def test_confidence_is_that_of_our_own_model(own, fast):
    ours, theirs = (one.translate(TEXTS[:6], confidence=True) for one in (own, fast))
    assert theirs == ours
    for a, b in zip(ours, theirs, strict=True):
        assert b.confidence.probability == pytest.approx(a.confidence.probability)
        assert [tuple(word) for word in b.confidence.words] == [
            tuple(word) for word in a.confidence.words
        ]
    given = [str(one) for one in ours]
    assert fast.score(TEXTS[:6], given) == own.score(TEXTS[:6], given)


def test_draws_follow_the_model(own, fast):
    """Of 600 draws of the first word each comes as often as the model says, within 4 sigma."""
    text = TEXTS[0]
    drawn = [
        made.ids[0] if made.ids else END_ID
        for _ in range(6)
        for best in fast.translate([text], do_sample=True, n_best=100)
        for made in (best, *best.alternatives)
    ]
    assert len(drawn) == 600
    logits, _ = own.model.step(
        torch.tensor([START_ID]),
        own.model.start(own.model.encode(torch.tensor(own.tokenizer.encode_src([text])))),
    )
    said = logits[0].detach().index_fill(0, torch.tensor([PAD_ID, UNK_ID, START_ID]), -math.inf)
    probs = said.softmax(-1)
    for number in probs.topk(3).indices.tolist():
        expected = 600 * float(probs[number])
        assert abs(drawn.count(number) - expected) <= 4 * math.sqrt(expected) + 1


def test_top_1_draws_the_likeliest(own, fast):
    options = {"do_sample": True, "top_k": 1}
    assert fast.translate(TEXTS[:10], **options) == own.translate(TEXTS[:10], beam_size=1)


REFUSED = [
    ({"trace": True}, "trace"),
    ({"required": ["KA"]}, "phrases"),
    ({"forbidden": ["KA"]}, "phrases"),
    ({"glossary": {"zz": "KA"}}, "glossary"),
    ({"num_groups": 2}, "num_groups = 2"),
    ({"unk": "copy"}, "unk"),
    ({"alpha": 1.5}, "alpha = 1.5"),
    ({"do_sample": True, "seed": 0}, "seed = 0"),
]


@pytest.mark.parametrize(("options", "word"), REFUSED, ids=str)
def test_what_it_has_not_is_refused(fast, options, word):
    with pytest.raises(ConfigError, match=word) as error:
        fast.translate(["ka to"], **options)
    assert 'engine="attendo"' in error.value.hint


def test_all_refusals_come_at_once(fast):
    with pytest.raises(ConfigError) as error:
        fast.translate(["ka"], trace=True, required=["KA"], num_groups=2, unk="copy")
    assert len(error.value.reasons) == 4


def test_the_inside_is_closed_and_the_reference_is_open(own, fast):
    for ask in (
        lambda: capture(fast, "ka to"),
        lambda: next_words(fast, "ka to"),
        lambda: fast.model.explain,
        lambda: fast.model.config,
    ):
        with pytest.raises(AttendoError) as error:
            ask()
        assert "attendo" in error.value.hint
    assert own.native is own
    assert fast.native is fast.native
    assert fast.native.translate(TEXTS[:5]) == own.translate(TEXTS[:5])
    assert next_words(fast.native, "ka to")[0] == next_words(own, "ka to")[0]
    told = capture(fast.native, "ka to", "TO KA").to_dict()
    assert told == capture(own, "ka to", "TO KA").to_dict()


def test_int8_says_nearly_the_same(own, folder):
    rough = Translator.load(folder, engine="ctranslate2", precision="int8")
    made, ours = rough.translate(TEXTS, confidence=True), own.translate(TEXTS, confidence=True)
    assert sum(a == b for a, b in zip(made, ours, strict=True)) >= 0.7 * len(TEXTS)
    # What differs is as good as it was, by the model itself.
    means = [sum(one.confidence.mean for one in several) for several in (made, ours)]
    assert means[0] == pytest.approx(means[1], rel=0.02)


def test_one_text_alone_takes_what_is_faster(folder, monkeypatch):
    translator = Translator.load(folder, engine="ctranslate2")
    translators = translator.backend.translators
    assert translators.faster_precision == {}
    translator.translate(TEXTS[:3])
    assert translators.faster_precision == {}, "a batch is int8 without a trial"
    for winner in ("int8", "float32"):
        translators.faster_precision.clear()
        monkeypatch.setattr(TranslatorPool, "_pick_faster", lambda *_, winner=winner: winner)
        translator.translate(["ka to"])
        assert translators.faster_precision == {True: winner}
        assert translators.get(1, is_beam=True).compute_type.startswith(winner)
        assert translators.get(2, is_beam=True).compute_type.startswith("int8")


def test_the_trial_times_both(folder, monkeypatch):
    clock = iter(range(10_000))
    translator = Translator.load(folder, engine="ctranslate2")
    translators = translator.backend.translators
    module = "attendo.translator.backends.ctranslate2.loader.perf_counter"
    slow = translators._load("float32")
    seconds = {id(slow): 7.0}
    now = [0.0]

    class Watched:
        def __init__(self, runner) -> None:
            self.runner = runner

        def translate_batch(self, *args, **named):
            now[0] += seconds.get(id(self.runner), 1.0)
            return self.runner.translate_batch(*args, **named)

    opened = {kind: Watched(translators._load(kind)) for kind in ("int8", "float32")}
    monkeypatch.setattr(translators, "_load", opened.__getitem__)
    monkeypatch.setattr(module, lambda: next(clock) * 1e-9 + now[0])
    assert translators._pick_faster(4) == "int8"
    seconds.clear()
    seconds[id(opened["int8"].runner)] = 7.0
    assert translators._pick_faster(1) == "float32"


def test_an_unknown_precision_is_named(folder):
    with pytest.raises(ConfigError, match="no precision 'int7'") as error:
        Translator.load(folder, engine="ctranslate2", precision="int7")
    assert "int8" in error.value.hint


def test_a_source_beyond_the_positions_is_refused(fast, monkeypatch):
    monkeypatch.setitem(fast.backend.info, "num_positions", 4)
    assert fast.translate(["ka to"])
    with pytest.raises(InputError, match="6 tokens"):
        fast.translate(["ka to mi re so"], split="never")


def test_weights_that_are_no_numbers_are_refused(toy, tmp_path):
    model = build_model("transformer", SIZES, toy.prepared.tokenizer)
    model.output.weight.data.fill_(math.nan)
    save_bundle(tmp_path / "bad", model, toy.prepared.tokenizer)
    broken = Translator.load(tmp_path / "bad", engine="ctranslate2", precision="float32")
    for beam_size in (1, 4):
        with pytest.raises(AttendoError, match="NaN"):
            broken.translate(["ka to"], beam_size=beam_size)


def test_it_waits_for_more_where_length_counts_more():
    from attendo.decoding.options import DecodingOptions

    waits = [
        to_ct2_options(DecodingOptions(beam_size=10, alpha=alpha, n_best=n), 9, early_exit=False)
        for alpha, n in ((0.0, 1), (0.5, 1), (1.0, 1), (1.0, 3))
    ]
    counts = [one["num_hypotheses"] for one in waits]
    assert counts == [10, round(10 + 5 * PATIENCE), round(10 + 10 * PATIENCE), 16]
    assert all(one["patience"] * 10 == pytest.approx(one["num_hypotheses"]) for one in waits)


class TestCommand:
    def test_translates_by_it(self, own, folder, capsys):
        words = ["--engine", "ctranslate2", "--precision", "float32", "--beam-size", "2"]
        with pytest.raises(SystemExit) as ended:
            run(["translate", str(folder), *TEXTS[:3], *words])
        assert ended.value.code == 0
        told = capsys.readouterr().out.splitlines()
        assert told == [str(one) for one in own.translate(TEXTS[:3], beam_size=2)]

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            (["--engine", "ctranslate2", "--required", "KA"], "phrases"),
            (["--engine", "torch"], "no engine 'torch'"),
            (["--engine", "auto", "--precision", "int9"], "no precision 'int9'"),
        ],
    )
    def test_says_what_is_wrong(self, folder, capsys, words, reason):
        with pytest.raises(SystemExit) as ended:
            run(["translate", str(folder), "ka", *words])
        assert ended.value.code == 2
        told = capsys.readouterr().err
        assert reason in told
        assert "hint" in told
