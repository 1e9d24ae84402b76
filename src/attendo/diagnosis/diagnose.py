"""Compare a run with the paper's recipe: what lowers its score, and what to do about it.

Each difference comes with its published effect and the source; without a published number, none is
given. A small corpus needs another recipe than the paper's: differences that suit it are not
faults, and keeping the paper's recipe may be one.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.message import join_messages, message
from attendo.diagnosis.checks import (
    check_adam,
    check_averaging,
    check_batch,
    check_length,
    check_schedule,
    check_warmup_end,
)
from attendo.diagnosis.paper_recipe import (
    ALPHA,
    BASE_SETTINGS,
    BEAM_SIZE,
    MEDIUM_LOSS,
    NUM_PAIRS,
    SMALL_LOSS,
    TOLERANCE,
    VERDICT_ORDER,
    VOCAB_SIZE,
    Finding,
    Recipe,
    Verdict,
    choose_recipe,
    excuse_small_corpus,
    is_small_corpus,
    table_effect,
)
from attendo.model.presets import get_preset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attendo.diagnosis.run_summary import RunSummary

SIZE_OPTIONS = ("num_layers", "d_model", "d_ff", "num_heads")
LOW_RESOURCE_EFFECT = (
    "settings tuned for small corpora are up to 7.3 BLEU better than the defaults "
    "(Araabi and Monz 2020)"
)
PRE_NORM_EFFECT = (
    "pre-norm trains with a short warm-up and a high rate (Xiong et al. 2020), which suits small "
    "corpora"
)
OPTION_EFFECTS: dict[str, tuple[Verdict, str]] = {
    "norm": ("below", "post-norm is better up to six layers (Takase et al. 2023)"),
    "tie_embeddings": ("no loss known", "tying saves memory without loss (Press and Wolf 2017)"),
    "num_decoder_layers": ("below", "fewer layers translate worse (Table 3, row C)"),
    "attention_width": ("below", "the paper proposes it (section 4) without a number"),
    "activation": ("no loss known", "used in later models"),
    "attention_dropout": ("no loss known", "used in later models"),
    "activation_dropout": ("no loss known", "used in later models"),
}
PAPER_OPTION_VALUES = {"norm": "post", "tie_embeddings": "three-way", "activation": "relu"}


class Diagnosis(NamedTuple):
    """A run compared with the paper's recipe."""

    recipe: Recipe
    findings: list[Finding]
    """The differences, the most costly first."""
    matching: list[str]
    unknown: list[str]


def diagnose(facts: RunSummary) -> Diagnosis:
    """Compare a run with the paper's base model, or with big if it is as wide."""
    recipe = choose_recipe(facts)
    findings = [finding for check in CHECKS for finding in check(facts, recipe)]
    differences = [finding for finding in findings if finding.verdict in VERDICT_ORDER]
    differences.sort(
        key=lambda finding: (VERDICT_ORDER.index(finding.verdict), -finding.estimated_loss)
    )
    matching, unknown = (
        [finding.what for finding in findings if finding.verdict == verdict]
        for verdict in ("as in the paper", "unknown")
    )
    return Diagnosis(recipe, differences, matching, unknown)


# -- the model


def check_table_3(facts: RunSummary, recipe: Recipe) -> Iterator[Finding]:
    """Compare the settings that Table 3 varies."""
    for key, expected in recipe.settings.items():
        section = "train" if key == "label_smoothing" else "model"
        ours = (facts.train if section == "train" else facts.model).get(key)
        if key == "d_k":
            expected = facts.model["d_model"] // facts.model["num_heads"]
            if ours in (None, expected):
                continue  # it follows from the others
        if ours is None or ours == expected:
            yield Finding(key, "unknown" if ours is None else "as in the paper")
        else:
            yield _compare_setting(facts, recipe, f"{section}.{key}", ours, expected)


def _compare_setting(
    facts: RunSummary, recipe: Recipe, setting: str, ours: Any, expected: Any
) -> Finding:
    key = setting.rpartition(".")[2]
    effect = table_effect(key, ours) if expected == BASE_SETTINGS[key] else None
    description, size = effect or ("no number: Table 3 varies the base model only", SMALL_LOSS)
    preset = get_preset(facts.preset).options if facts.preset else {}
    is_from_preset = preset.get(key) == ours
    hint = f"--preset {recipe.name}" if is_from_preset else f"--set {setting}={expected}"
    verdict: Verdict = "below" if size > 0 else "no loss known"
    finding = Finding(key, verdict, str(ours), str(expected), description, hint, size)
    fits_small = ours > expected if key == "dropout" else key in SIZE_OPTIONS and ours < expected
    return excuse_small_corpus(facts, finding, LOW_RESOURCE_EFFECT) if fits_small else finding


def check_options(facts: RunSummary, _recipe: Recipe) -> Iterator[Finding]:
    """Compare the settings that the paper does not vary."""
    for key, (verdict, effect) in OPTION_EFFECTS.items():
        ours, expected = facts.model.get(key), PAPER_OPTION_VALUES.get(key)
        if key == "tie_embeddings" and not facts.tokenizer.get("shared", True):
            continue  # two vocabularies cannot share a matrix: see check_vocabulary
        if key == "num_decoder_layers" and (ours or 0) >= facts.model["num_layers"]:
            ours = None
        if (ours or None) == expected:
            if expected:
                yield Finding(key, "as in the paper")
            continue
        hint = f"--set model.{key}={expected}"
        if not expected:
            hint = message("leave {key} out", key=f"model.{key}")
        size = SMALL_LOSS if verdict == "below" else 0.0
        finding = Finding(key, verdict, str(ours), expected or "none", effect, hint, size)
        yield excuse_small_corpus(facts, finding, PRE_NORM_EFFECT) if key == "norm" else finding


def check_corpus(facts: RunSummary, recipe: Recipe) -> Iterator[Finding]:
    """Compare the corpus, and the model with its size."""
    if facts.num_pairs is None:
        yield Finding(message("corpus"), "unknown")
    elif facts.num_pairs >= TOLERANCE * NUM_PAIRS:
        yield Finding(message("corpus"), "as in the paper")
    elif not is_small_corpus(facts):
        effect = (
            "less text lowers scores: 16 instead of 58 million pairs cost about 1 BLEU "
            "(Popel and Bojar 2018, section 4.2)"
        )
        ours = message("{count:,} pairs", count=facts.num_pairs)
        paper = message("{count:,} pairs", count=NUM_PAIRS)
        yield Finding(
            message("corpus"),
            "below",
            ours,
            paper,
            effect,
            "add more corpora: repeat --src and --tgt",
            MEDIUM_LOSS,
        )
    elif (
        facts.model["d_model"] >= BASE_SETTINGS["d_model"]
        and facts.model["dropout"] <= BASE_SETTINGS["dropout"]
    ):
        yield Finding(
            message("model for a small corpus"),
            "below",
            message(
                "{name} sizes, dropout {dropout}, {count:,} pairs",
                name=recipe.name,
                dropout=facts.model["dropout"],
                count=facts.num_pairs,
            ),
            message("{count:,} pairs", count=NUM_PAIRS),
            message(
                "the paper's recipe is not the best here: {effect}",
                effect=message(LOW_RESOURCE_EFFECT),
            ),
            "--preset tiny or small, --set model.dropout=0.3",
            7.3,
        )


def check_vocabulary(facts: RunSummary, _recipe: Recipe) -> Iterator[Finding]:
    """Compare the tokenizer: byte pairs, one vocabulary for both sides, its size."""
    kind, shared = facts.tokenizer.get("kind"), facts.tokenizer.get("shared")
    if kind not in (None, "bpe"):
        harmless = kind == "unigram"
        effect = "subwords translate rare words better (Sennrich et al. 2016)"
        effect = "no number is known" if harmless else effect
        verdict: Verdict = "no loss known" if harmless else "below"
        hint = "--set data.tokenizer.kind=bpe"
        yield Finding(message("tokenizer"), verdict, str(kind), "bpe", effect, hint, MEDIUM_LOSS)
    if shared is False:
        effect = "no shared embeddings (section 3.4); no number is known"
        hint = "--set data.tokenizer.shared=true"
        yield Finding(
            message("vocabulary"), "no loss known", "one a side", "one for both", effect, hint
        )
    size = facts.vocab_size
    if size is None:
        yield Finding(message("vocabulary size"), "unknown")
    elif size >= TOLERANCE * VOCAB_SIZE:
        yield Finding(message("vocabulary size"), "as in the paper")
    else:
        effect = "a smaller vocabulary cuts words into more pieces; no number is known"
        hint = f"--set data.tokenizer.vocab_size={VOCAB_SIZE}"
        details = (
            f"{size:,}",
            message("about {size:,}", size=VOCAB_SIZE),
            effect,
            hint,
            SMALL_LOSS,
        )
        source = "rare pieces cannot be learned there (Sennrich and Zhang 2019)"
        yield excuse_small_corpus(
            facts, Finding(message("vocabulary size"), "below", *details), source
        )


# -- the score


def check_search(facts: RunSummary, _recipe: Recipe) -> Iterator[Finding]:
    """Compare the decoding behind the score."""
    description = str(facts.dev.get("decoding", ""))
    paper = message(
        "beam {beam}, alpha {alpha}, at most source + 50 tokens", beam=BEAM_SIZE, alpha=ALPHA
    )
    numbers = [re.search(rf"{word}\D*([\d.]+\d|\d)", description) for word in ("beam", "alpha")]
    values = [float(number[1]) if number else None for number in numbers]
    if not description:
        yield Finding(message("search"), "unknown")
    elif values == [BEAM_SIZE, ALPHA]:
        yield Finding(message("search"), "as in the paper")
    else:
        effect = (
            "beam search finds better translations than greedy search; the paper chose beam size "
            "and alpha on dev (section 6.1); no number"
        )
        model_dir = _quoted_model_dir(facts)
        command = f"attendo evaluate {model_dir} --src FILE --ref FILE"
        hint = message("{command} decodes as in the paper", command=command)
        yield Finding(message("search"), "measure", description, paper, effect, hint, MEDIUM_LOSS)


def check_score(facts: RunSummary, _recipe: Recipe) -> Iterator[Finding]:
    """Report that sacreBLEU on dev is not the BLEU of the paper."""
    signature = str(facts.dev.get("bleu_signature", "case:mixed|tok:13a")).split("|")
    signature_parts = [part for part in signature if part.startswith(("case:", "tok:"))]
    effect: str = message("tokenization alone changes BLEU by up to 1.8 (Post 2018)")
    hint = "compare only scores with the same signature"
    target = facts.languages[1]
    if target == "de" or (target is None and not is_small_corpus(facts)):
        offset = message(
            "the paper's BLEU is 0.7 (29.3 instead of 28.6, Ott et al. 2018) to 1.5 higher "
            "(29.0 instead of 27.5, tensor2tensor issue 317)"
        )
        effect = join_messages("; ", (effect, offset))
        files = "--src newstest2014.en --ref newstest2014.de"
        command = f"attendo evaluate {_quoted_model_dir(facts)} {files}"
        hint = message("{command} reports both", command=command)
    paper = "tokenized, compounds split, newstest2014"
    description = message("sacreBLEU {signature} on dev", signature=" ".join(signature_parts))
    yield Finding(message("score"), "measure", description, paper, effect, hint, 1.0)


def _quoted_model_dir(facts: RunSummary) -> str:
    return shlex.quote(str(facts.model_dir))


CHECKS = (
    check_table_3,
    check_options,
    check_corpus,
    check_batch,
    check_schedule,
    check_warmup_end,
    check_length,
    check_adam,
    check_averaging,
    check_vocabulary,
    check_search,
    check_score,
)
