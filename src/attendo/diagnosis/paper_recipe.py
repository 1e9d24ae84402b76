"""The recipe of the paper (sections 5 and 6), what Table 3 says of departing from it, and findings.

Table 3 varies the base model for English to German, one thing at a time, and prints BLEU on
newstest2013. `attendo.model.presets` holds its rows; here they are looked up. A small corpus wants
another recipe: what departs for its sake is no fault.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from attendo.model.presets import PRESETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attendo.diagnosis.run_summary import RunSummary

BATCH_TOKENS = 25_000
"""Of a step, on either side, over all eight GPUs."""
WARMUP_STEPS = 4000
ADAM = {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9}
VOCAB_SIZE = 37_000
BEAM_SIZE, ALPHA = 4, 0.6
NUM_PAIRS = 4_500_000
"""WMT 2014 English-German."""
BIG_WIDTH, WIDE_ROW = 1024, "C-dmodel-1024"
BASE_BLEU = 25.8
"""On newstest2013."""
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
"""What Table 3 varies."""

SMALL_CORPUS = 500_000
"""Pairs below which the paper's recipe is not the one to follow."""
TOLERANCE = 0.8
"""Counts of at least this share of the paper's pass for the paper's, which says "about" itself."""
LARGE_LOSS, MEDIUM_LOSS, SMALL_LOSS = 2.0, 0.5, 0.1
"""Where a departure without a number is listed: our judgement of what it may cost."""

Verdict = Literal["below", "measure", "on purpose", "no loss known", "as in the paper", "unknown"]
VERDICT_ORDER: tuple[Verdict, ...] = ("below", "measure", "on purpose", "no loss known")
"""A departure keeps a run below the paper, measures it otherwise, is meant so, or does no harm."""


class Finding(NamedTuple):
    """One thing in which a run is, or is not, as in the paper."""

    what: str
    verdict: Verdict
    ours: str = ""
    paper: str = ""
    effect: str = ""
    hint: str = ""
    estimated_loss: float = 0.0
    """BLEU that it may cost, by the source or by our judgement: for the order of the list only."""

    def to_json(self) -> dict[str, str]:
        """Give what is known, without the judgement."""
        return {name: value for name, value in self._asdict().items() if name != "size"}


class Recipe(NamedTuple):
    """What the paper did for one of its two models."""

    name: str
    settings: dict[str, Any]
    """Those that Table 3 varies."""
    max_steps: int
    average_last: int
    newstest2014: float
    """BLEU from English to German (Table 2): tokenised, compounds split."""


class Effect(NamedTuple):
    """What a value costs."""

    description: str
    bleu: float
    """Above zero is a loss."""


def choose_recipe(facts: RunSummary) -> Recipe:
    """Take big for the preset big, and for a d_model of 1024 that is no row of Table 3."""
    is_wide = facts.model["d_model"] >= BIG_WIDTH and facts.preset != WIDE_ROW
    if facts.preset != "big" and not is_wide:
        return Recipe("base", dict(BASE_SETTINGS), 100_000, 5, 27.3)
    settings = dict(BASE_SETTINGS) | PRESETS["big"].options
    if facts.languages[1] == "fr":
        settings["dropout"] = 0.1  # section 6.1: big from English to French
    return Recipe("big", settings, 300_000, 20, 28.4)


def table_rows(key: str) -> dict[Any, float]:
    """Give the rows of Table 3 that vary one setting alone, with their BLEU; base among them.

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
    """Say what Table 3 tells of a value: its own row, those around it, or the nearest one.

    >>> table_effect("num_layers", 2)
    Effect(told='-2.1 BLEU on newstest2013 (Table 3: 23.7, base 25.8)', bleu=2.1)
    """
    rows = table_rows(key)
    if ours in rows:
        loss = round(BASE_BLEU - rows[ours], 1)
        return Effect(
            f"{-loss:+.1f} BLEU on newstest2013 (Table 3: {rows[ours]}, base {BASE_BLEU})", loss
        )
    if not isinstance(ours, (int, float)):
        return None
    below = max((value for value in rows if value < ours), default=None)
    above = min((value for value in rows if value > ours), default=None)
    nearest = [value for value in (below, above) if value is not None]
    neighbors = " and ".join(f"{value} has {rows[value]}" for value in nearest)
    position = "between two rows" if len(nearest) > 1 else "beyond the rows"
    loss = BASE_BLEU - sum(rows[value] for value in nearest) / len(nearest)
    return Effect(
        f"{position} of Table 3: {neighbors} BLEU on newstest2013, base {BASE_BLEU}", loss
    )


def is_small_corpus(facts: RunSummary) -> bool:
    """Tell whether the corpus is too small for the paper's recipe."""
    return facts.num_pairs is not None and facts.num_pairs < SMALL_CORPUS


def excuse_small_corpus(facts: RunSummary, finding: Finding, source: str) -> Finding:
    """Call a departure no fault where the corpus is small, and say why."""
    if not is_small_corpus(facts):
        return finding
    return finding._replace(verdict="on purpose", effect=source, hint="")
