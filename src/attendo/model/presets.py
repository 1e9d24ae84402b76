"""Named sizes: tiny, small, base, big, and every row of the paper's Table 3.

A preset has the options of the model and, for the rows of the table, the training settings of the
row and the results that the paper reports for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message


@dataclass(frozen=True, slots=True)
class Preset:
    """One named size."""

    name: str
    about: str
    options: dict[str, Any] = field(default_factory=dict)
    """Options that differ from the defaults of `TransformerConfig`, the paper's base model."""
    label_smoothing: float = 0.1
    train_steps: int = 100_000
    published_parameters: float | None = None
    """Millions, as printed in Table 3."""
    published_perplexity: float | None = None
    """Per word piece, on newstest2013 (the paper's development set)."""
    published_bleu: float | None = None
    """On newstest2013."""


def _table3_row(name: str, about: str, perplexity: float, bleu: float, **settings: Any) -> Preset:
    """Return a row of Table 3; settings that are not given are those of the base model."""
    preset_fields = {
        key: settings.pop(key)
        for key in ("label_smoothing", "train_steps", "published_parameters")
        if key in settings
    }
    return Preset(
        name,
        f"Table 3, {about}",
        settings,
        published_perplexity=perplexity,
        published_bleu=bleu,
        **preset_fields,
    )


_PRESETS = (
    Preset(
        "tiny",
        "for small corpora and two CPU cores (the Transformer-Tiny of Wu et al. 2021)",
        {"d_model": 128, "d_ff": 256, "num_heads": 4, "num_layers": 4, "dropout": 0.3},
    ),
    Preset(
        "small",
        "for some hundred thousand sentence pairs, or a small GPU",
        {"d_model": 256, "d_ff": 1024, "num_heads": 4, "num_layers": 4},
    ),
    _table3_row("base", "base", 4.92, 25.8, published_parameters=65),
    _table3_row(
        "big",
        "big",
        4.33,
        26.4,
        d_model=1024,
        d_ff=4096,
        num_heads=16,
        dropout=0.3,
        train_steps=300_000,
        published_parameters=213,
    ),
    _table3_row("A-heads-1", "row A: 1 head of 512", 5.29, 24.9, num_heads=1),
    _table3_row("A-heads-4", "row A: 4 heads of 128", 5.00, 25.5, num_heads=4),
    _table3_row("A-heads-16", "row A: 16 heads of 32", 4.91, 25.8, num_heads=16),
    _table3_row("A-heads-32", "row A: 32 heads of 16", 5.01, 25.4, num_heads=32),
    _table3_row("B-dk-16", "row B: keys of 16", 5.16, 25.1, d_k=16, published_parameters=58),
    _table3_row("B-dk-32", "row B: keys of 32", 5.01, 25.4, d_k=32, published_parameters=60),
    _table3_row("C-layers-2", "row C: 2 layers", 6.11, 23.7, num_layers=2, published_parameters=36),
    _table3_row("C-layers-4", "row C: 4 layers", 5.19, 25.3, num_layers=4, published_parameters=50),
    _table3_row("C-layers-8", "row C: 8 layers", 4.88, 25.5, num_layers=8, published_parameters=80),
    _table3_row(
        "C-dmodel-256", "row C: d_model 256", 5.75, 24.5, d_model=256, published_parameters=28
    ),
    _table3_row(
        "C-dmodel-1024", "row C: d_model 1024", 4.66, 26.0, d_model=1024, published_parameters=168
    ),
    _table3_row("C-dff-1024", "row C: d_ff 1024", 5.12, 25.4, d_ff=1024, published_parameters=53),
    _table3_row("C-dff-4096", "row C: d_ff 4096", 4.75, 26.2, d_ff=4096, published_parameters=90),
    _table3_row("D-dropout-0.0", "row D: no dropout", 5.77, 24.6, dropout=0.0),
    _table3_row("D-dropout-0.2", "row D: dropout 0.2", 4.95, 25.5, dropout=0.2),
    _table3_row("D-smoothing-0.0", "row D: no label smoothing", 4.67, 25.3, label_smoothing=0.0),
    _table3_row("D-smoothing-0.2", "row D: label smoothing 0.2", 5.47, 25.7, label_smoothing=0.2),
    _table3_row("E-learned", "row E: learned positions", 4.92, 25.7, positions="learned"),
)

PRESETS = {preset.name: preset for preset in _PRESETS}


def get_preset(name: str) -> Preset:
    """Return a preset by its name; upper and lower case are equal.

    >>> get_preset("C-layers-2").published_parameters
    36
    """
    for preset in _PRESETS:
        if preset.name.casefold() == name.casefold():
            return preset
    raise ConfigError(message("no preset '{name}'", name=name), hint=suggest(name, PRESETS))
