"""Default settings of classifiers and taggers. This module loads no tensor library."""

from __future__ import annotations

from typing import Any


def apply_label_defaults(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a run, with other defaults if it is a classifier or a tagger.

    That is an encoder on pairs, or any run whose tokenizer keeps each target whole (`tgt_kind =
    "label"`). A label is much shorter than its text, many texts share it, and its probability
    should not be smoothed.
    """
    data, model = settings["data"], settings["model"]
    tokenizer = data.get("tokenizer", {})
    is_monolingual = any(corpus.get("text") is not None for corpus in data.get("corpora", ()))
    is_encoder = model.get("kind") == "encoder" and not is_monolingual
    if not is_encoder and tokenizer.get("tgt_kind") != "label":
        return settings
    is_tagger = model.get("reads") == "each"
    tokenizer_defaults = {"tgt_kind": "word" if is_tagger else "label", "shared": False}
    tokenizer_defaults |= {"kind": "word"} if is_tagger else {}  # one tag per word needs words
    model_defaults = {} if is_tagger or not is_encoder else {"tgt_length": 1}
    cleaning_defaults = {"max_length_ratio": None, "max_copy_words": None}
    return {
        **settings,
        "data": {
            "disjoint": "source",
            **data,
            "tokenizer": {**tokenizer_defaults, **tokenizer},
            "cleaning": {**cleaning_defaults, **data.get("cleaning", {})},
        },
        "model": {**model_defaults, **model},
        "train": {"label_smoothing": 0.0, **settings.get("train", {})},
    }
