"""Behind the same `Translator`: float32 gives our own texts, whatever options both have."""

from __future__ import annotations

import math

import pytest
import torch
from support.half_trained import SIZES, draw_texts

from attendo.bundle import build_model, save_bundle
from attendo.cli.main import run
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.inspection import capture
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID
from attendo.translator import Translator
from attendo.translator.backends.ctranslate2 import backend
from attendo.translator.backends.ctranslate2.loader import TranslatorPool
from attendo.translator.backends.ctranslate2.options import PATIENCE, to_ct2_options
from attendo.translator.word_suggestions import next_words

TEXTS = draw_texts(60, seed=2)


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
def test_the_same_texts_as_the_native_engine(own, fast, options):
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
def test_scores_sum_to_one_with_the_unused_tokens(own, fast, unk, prefix):
    """The log-probability of each token among those that may come; of a beginning as it is."""
    never = [PAD_ID, START_ID, *([UNK_ID] if unk == "avoid" else [])]
    texts = TEXTS[:10]
    made = fast.translate(texts, unk=unk, prefix=prefix)
    started = len(prefix.split())
    for text, one in zip(texts, made, strict=True):
        printed = [*one.ids, *([END_ID] if one.is_finished else [])]
        src, fed = own.tokenizer.encode_src([text]), [[START_ID, *printed[:-1]]]
        with torch.no_grad():
            logits = own.model(torch.tensor(src), torch.tensor(fed))[0].double()
        plain = logits.log_softmax(-1)
        shared = logits.index_fill(1, torch.tensor(never), -math.inf).log_softmax(-1)
        figures = [
            (plain if t < started else shared)[t, number] for t, number in enumerate(printed)
        ]
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
        reported = figures if one.is_finished else figures[:-1]
        assert one.log_prob == pytest.approx(math.fsum(reported), abs=1e-3)


def test_a_prefix_may_be_the_whole_translation(own, fast):
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


def test_prefixes_of_some_texts_only(own, fast):
    texts, prefix = TEXTS[:4], ["", "KA", "", "MI MI"]
    ours, theirs = (one.translate(texts, prefix=prefix) for one in (own, fast))
    assert theirs == ours
    assert [str(theirs[1])[:2], str(theirs[3])[:5]] == ["KA", "MI MI"]


def test_long_and_empty_texts_as_before(own, fast):
    texts = ["", "ka to mi re so lu " * 6, "ka.\nto mi.\n", "  "]
    assert fast.translate(texts) == own.translate(texts)
    assert fast.translate([]) == []


def test_confidence_is_that_of_the_native_model(own, fast):
    ours, theirs = (one.translate(TEXTS[:6], confidence=True) for one in (own, fast))
    assert theirs == ours
    for a, b in zip(ours, theirs, strict=True):
        assert b.confidence.probability == pytest.approx(a.confidence.probability)
        assert [tuple(word) for word in b.confidence.words] == [
            tuple(word) for word in a.confidence.words
        ]
    given = [str(one) for one in ours]
    assert fast.score(TEXTS[:6], given) == own.score(TEXTS[:6], given)


def test_samples_follow_the_model(own, fast):
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
    printed = logits[0].detach().index_fill(0, torch.tensor([PAD_ID, UNK_ID, START_ID]), -math.inf)
    probs = printed.softmax(-1)
    for number in probs.topk(3).indices.tolist():
        expected = 600 * float(probs[number])
        assert abs(drawn.count(number) - expected) <= 4 * math.sqrt(expected) + 1


def test_top_1_samples_the_most_probable(own, fast):
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
def test_missing_outputs_are_rejected(fast, options, word):
    with pytest.raises(ConfigError, match=word) as error:
        fast.translate(["ka to"], **options)
    assert 'engine="attendo"' in error.value.hint


def test_all_rejections_come_at_once(fast):
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
    reported = capture(fast.native, "ka to", "TO KA").to_dict()
    assert reported == capture(own, "ka to", "TO KA").to_dict()


def test_int8_has_almost_the_same_output(own, folder):
    rough = Translator.load(folder, engine="ctranslate2", precision="int8")
    made, ours = rough.translate(TEXTS, confidence=True), own.translate(TEXTS, confidence=True)
    assert sum(a == b for a, b in zip(made, ours, strict=True)) >= 0.7 * len(TEXTS)
    # What differs is as good as it was, by the model itself.
    means = [
        sum(one.confidence.mean_token_probability for one in several) for several in (made, ours)
    ]
    assert means[0] == pytest.approx(means[1], rel=0.02)


def test_several_batches_run_at_the_same_time(own, fast, monkeypatch):
    monkeypatch.setattr(backend, "REPLICA_TOKENS", 40)
    pool = fast.backend.translators
    monkeypatch.setattr(TranslatorPool, "num_replicas", 2)
    opened = []
    get_replicas = pool.get_replicas
    monkeypatch.setattr(pool, "get_replicas", lambda: opened.append(1) or get_replicas())
    num_threads, reported = torch.get_num_threads(), []
    for options in ({}, {"beam_size": 1}, {"prefix": ["TO", ""] * 30}):
        opened.clear()
        made = fast.translate(TEXTS, **options, progress=lambda *n: reported.append(n))
        assert made == own.translate(TEXTS, **options)
        assert len(opened) > 4
    assert reported[-1] == (60, 60)
    assert torch.get_num_threads() == num_threads  # CTranslate2 would change it
    assert fast.translate(TEXTS[:2]) == own.translate(TEXTS[:2])


def test_an_error_in_one_of_several_batches_is_raised(fast, monkeypatch):
    monkeypatch.setattr(backend, "REPLICA_TOKENS", 40)

    def fail(items, *_, **__):
        raise RuntimeError("no memory")

    monkeypatch.setattr(fast.backend, "_run", fail)
    with pytest.raises(RuntimeError, match="no memory"):
        fast.translate(TEXTS)


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


def test_a_source_beyond_the_positions_is_rejected(fast, monkeypatch):
    monkeypatch.setitem(fast.backend.info, "num_positions", 4)
    assert fast.translate(["ka to"])
    with pytest.raises(InputError, match="6 tokens"):
        fast.translate(["ka to mi re so"], split="never")


def test_a_prefix_beyond_the_positions_is_refused(fast, monkeypatch):
    """CTranslate2 raised an error of its own: the server responded with 500."""
    monkeypatch.setitem(fast.backend.info, "num_positions", 8)
    assert fast.translate(["ka to"], prefix=["ka to"])
    with pytest.raises(InputError, match="a prefix has"):
        fast.translate(["ka to"], prefix=["ka to mi re so ka to mi"])


def test_weights_that_are_not_numbers_are_rejected(toy, tmp_path):
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
        reported = capsys.readouterr().out.splitlines()
        assert reported == [str(one) for one in own.translate(TEXTS[:3], beam_size=2)]

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            (["--engine", "ctranslate2", "--required", "KA"], "phrases"),
            (["--engine", "torch"], "--engine torch: unknown value"),
            (["--engine", "auto", "--precision", "int9"], "--precision int9: unknown value"),
        ],
    )
    def test_explains_what_is_wrong(self, folder, capsys, words, reason):
        with pytest.raises(SystemExit) as ended:
            run(["translate", str(folder), "ka", *words])
        assert ended.value.code == 2
        reported = capsys.readouterr().err
        assert reason in reported
        assert "hint" in reported
