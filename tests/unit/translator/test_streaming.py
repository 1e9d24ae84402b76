from __future__ import annotations

from itertools import pairwise

import pytest

from attendo.bundle import build_model
from attendo.core.errors import ConfigError, InputError
from attendo.translator import Translation, Translator
from attendo.translator.streaming import PartialTranslation, stream_translation

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture
def random_translator(toy) -> Translator:
    tokenizer = toy.prepared.tokenizer
    about = {"calibration": {"temperature": 1.5}}
    return Translator(build_model("transformer", SIZES, tokenizer), tokenizer, about=about)


def test_yields_word_by_word_and_the_whole_at_last(uppercaser):
    *streamed, made = stream_translation(uppercaser, "ka to mi")
    assert [(one.text, one.token) for one in streamed] == [
        ("KA", "▁KA"),
        ("KA TO", "▁TO"),
        ("KA TO MI", "▁MI"),
    ]
    assert made == "KA TO MI"
    assert isinstance(made, Translation)


@pytest.mark.parametrize(
    "text", ["ka to mi", "ka. to.", "ka to\n\n  mi re\n", "", "  ", "\n", "ka! so lu? mi"]
)
@pytest.mark.parametrize("options", [{}, {"confidence": True}, {"prefix": "RE SO"}, {"alpha": 1.0}])
def test_the_last_is_the_greedy_translation(random_translator, text, options):
    (expected,) = random_translator.translate([text], beam_size=1, **options)
    *streamed, made = stream_translation(random_translator, text, **options)
    assert made == expected
    assert made.to_dict().keys() == expected.to_dict().keys()
    assert made.ids == expected.ids
    assert made.log_prob == pytest.approx(expected.log_prob, abs=1e-4)
    assert made.score == pytest.approx(expected.score, abs=1e-4)
    assert [one.token for one in streamed] == expected.tokens
    if streamed:
        assert streamed[-1].text == expected.strip()
    if made.confidence:
        sure, wanted = made.confidence, expected.confidence
        assert [word.text for word in sure.words] == [word.text for word in wanted.words]
        assert sure.mean_token_probability == pytest.approx(wanted.mean_token_probability, abs=1e-5)


def test_tokens_are_as_sure_as_the_words_of_the_confidence(random_translator):
    *streamed, made = stream_translation(random_translator, "ka to mi", confidence=True)
    reported = [one.probability for one in streamed]  # every word is one token here
    assert reported == pytest.approx([word.probability for word in made.confidence.words], abs=1e-6)


def test_the_streamed_text_is_never_retracted(random_translator):
    *streamed, _ = stream_translation(random_translator, "ka to. mi re! so lu")
    texts = [one.text for one in streamed]
    assert all(later.startswith(sooner) for sooner, later in pairwise(texts))
    assert isinstance(streamed[0], PartialTranslation)


def test_rejects_what_the_search_would_reject(uppercaser):
    with pytest.raises(ConfigError, match="beam_sise"):
        list(stream_translation(uppercaser, "ka", beam_sise=1))
    with pytest.raises(InputError, match="cannot write"):
        list(stream_translation(uppercaser, "ka", prefix="☃"))
