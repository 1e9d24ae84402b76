"""The paper's recipe (sections 5 and 6), the effects of Table 3, and what a finding is.

Table 3 varies one setting of the base model for English to German at a time and reports BLEU on
newstest2013; `attendo.model.presets` has its rows. A small corpus needs another recipe, so
differences that suit it are not faults.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from attendo.core.message import message
from attendo.model.presets import PRESETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attendo.diagnosis.run_summary import RunSummary

BATCH_TOKENS = 25_000
"""Tokens per step on each side, over all eight GPUs."""
WARMUP_STEPS = 4000
ADAM = {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9}
VOCAB_SIZE = 37_000
BEAM_SIZE, ALPHA = 4, 0.6
NUM_PAIRS = 4_500_000
"""Sentence pairs of WMT 2014 English-German."""
BIG_WIDTH, WIDE_ROW = 1024, "C-dmodel-1024"
BASE_BLEU = 25.8
"""BLEU of the base model on newstest2013."""
BASE_SETTINGS: Mapping[str, Any] = MappingProxyType(
    {
        "num_layers": 6,
        "d_model": 512,
        "d_ff": 2048,
        "num_heads": 8,
        "d_k": 64,
        "dropout": 0.1,
        "positions": "sinusoidal",
        "label_smoothing": 0.1,
    }
)
"""The settings that Table 3 varies."""

SMALL_CORPUS = 500_000
"""With fewer pairs the paper's recipe is not the best."""
TOLERANCE = 0.8
"""Counts of at least this share of the paper's are equal to them: the paper says "about"."""
LARGE_LOSS, MEDIUM_LOSS, SMALL_LOSS = 2.0, 0.5, 0.1
"""Estimated loss in BLEU of differences without a published number, used to sort them."""

Verdict = Literal["below", "measure", "on purpose", "no loss known", "as in the paper", "unknown"]
VERDICT_ORDER: tuple[Verdict, ...] = ("below", "measure", "on purpose", "no loss known")
"""A difference lowers the score, changes how it is measured, suits the corpus, or is harmless."""


class Finding(NamedTuple):
    """One aspect of a run, compared with the paper."""

    what: str
    verdict: Verdict
    ours: str = ""
    paper: str = ""
    effect: str = ""
    hint: str = ""
    estimated_loss: float = 0.0
    """Loss in BLEU, published or estimated; it only sorts the findings."""

    def to_json(self) -> dict[str, str]:
        """Return the finding as JSON, without the estimate."""
        return {name: value for name, value in self._asdict().items() if name != "estimated_loss"}


class Recipe(NamedTuple):
    """The recipe of one of the paper's two models."""

    name: str
    settings: dict[str, Any]
    """The settings that Table 3 varies."""
    max_steps: int
    average_checkpoints: int
    newstest2014: float
    """BLEU from English to German (Table 2): tokenized, compounds split."""


class Effect(NamedTuple):
    """The effect of a setting."""

    description: str
    bleu: float
    """Loss in BLEU."""


def choose_recipe(facts: RunSummary) -> Recipe:
    """Return the recipe of big for the preset big and for wide models, otherwise that of base."""
    is_wide = facts.model["d_model"] >= BIG_WIDTH and facts.preset != WIDE_ROW
    if facts.preset != "big" and not is_wide:
        return Recipe("base", dict(BASE_SETTINGS), 100_000, 5, 27.3)
    settings = dict(BASE_SETTINGS) | PRESETS["big"].options
    if facts.languages[1] == "fr":
        settings["dropout"] = 0.1  # section 6.1: big from English to French
    return Recipe("big", settings, 300_000, 20, 28.4)


def table_rows(key: str) -> dict[Any, float]:
    """Return BLEU by value, of the rows of Table 3 that vary this setting alone, and of base.

    >>> table_rows("num_layers")
    {6: 25.8, 2: 23.7, 4: 25.3, 8: 25.5}
    """
    rows = {BASE_SETTINGS[key]: BASE_BLEU}
    for preset in PRESETS.values():
        settings = dict(preset.options)
        if preset.label_smoothing != BASE_SETTINGS["label_smoothing"]:
            settings["label_smoothing"] = preset.label_smoothing
        if set(settings) == {key} and preset.published_bleu is not None:
            rows[settings[key]] = preset.published_bleu
    return rows


def table_effect(key: str, ours: Any) -> Effect | None:
    """Return the effect of a value by Table 3: its own row, the adjacent rows, or the nearest one.

    >>> table_effect("num_layers", 2)
    Effect(description='-2.1 BLEU on newstest2013 (Table 3: 23.7, base 25.8)', bleu=2.1)
    """
    rows = table_rows(key)
    if ours in rows:
        loss = round(BASE_BLEU - rows[ours], 1)
        return Effect(
            message(
                "{difference:+.1f} BLEU on newstest2013 (Table 3: {row}, base {base})",
                difference=-loss,
                row=rows[ours],
                base=BASE_BLEU,
            ),
            loss,
        )
    if not isinstance(ours, (int, float)):
        return None
    below = max((value for value in rows if value < ours), default=None)
    above = min((value for value in rows if value > ours), default=None)
    nearest = [value for value in (below, above) if value is not None]
    loss = BASE_BLEU - sum(rows[value] for value in nearest) / len(nearest)
    if below is not None and above is not None:
        description = message(
            "between two rows of Table 3: {below} has {below_bleu} and {above} has {above_bleu} "
            "BLEU on newstest2013, base {base}",
            below=below,
            below_bleu=rows[below],
            above=above,
            above_bleu=rows[above],
            base=BASE_BLEU,
        )
    else:
        description = message(
            "beyond the rows of Table 3: {nearest} has {bleu} BLEU on newstest2013, base {base}",
            nearest=nearest[0],
            bleu=rows[nearest[0]],
            base=BASE_BLEU,
        )
    return Effect(description, loss)


def is_small_corpus(facts: RunSummary) -> bool:
    """Return whether the corpus is too small for the paper's recipe."""
    return facts.num_pairs is not None and facts.num_pairs < SMALL_CORPUS


def excuse_small_corpus(facts: RunSummary, finding: Finding, source: str) -> Finding:
    """Return the finding, marked as intended if the corpus is small."""
    if not is_small_corpus(facts):
        return finding
    return finding._replace(verdict="on purpose", effect=source, hint="")
