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


def test_tells_word_by_word_and_the_whole_at_last(parrot):
    *spoken, made = stream_translation(parrot, "ka to mi")
    assert [(one.text, one.token) for one in spoken] == [
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
    *spoken, made = stream_translation(random_translator, text, **options)
    assert made == expected
    assert made.to_dict().keys() == expected.to_dict().keys()
    assert made.ids == expected.ids
    assert made.log_prob == pytest.approx(expected.log_prob, abs=1e-4)
    assert made.score == pytest.approx(expected.score, abs=1e-4)
    assert [one.token for one in spoken] == expected.tokens
    if spoken:
        assert spoken[-1].text == expected.strip()
    if made.confidence:
        sure, wanted = made.confidence, expected.confidence
        assert [word.text for word in sure.words] == [word.text for word in wanted.words]
        assert sure.mean == pytest.approx(wanted.mean, abs=1e-5)


def test_tokens_are_as_sure_as_the_words_of_the_confidence(random_translator):
    *spoken, made = stream_translation(random_translator, "ka to mi", confidence=True)
    told = [one.probability for one in spoken]  # every word is one token here
    assert told == pytest.approx([word.probability for word in made.confidence.words], abs=1e-6)


def test_what_was_said_is_never_taken_back(random_translator):
    *spoken, _ = stream_translation(random_translator, "ka to. mi re! so lu")
    texts = [one.text for one in spoken]
    assert all(later.startswith(sooner) for sooner, later in pairwise(texts))
    assert isinstance(spoken[0], PartialTranslation)


def test_refuses_what_the_search_would_refuse(parrot):
    with pytest.raises(ConfigError, match="beam_sise"):
        list(stream_translation(parrot, "ka", beam_sise=1))
    with pytest.raises(InputError, match="cannot write"):
        list(stream_translation(parrot, "ka", prefix="☃"))
