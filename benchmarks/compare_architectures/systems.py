"""Five architectures of about 7.9 million parameters, and ablations of the Transformer.

All have the same vocabulary of 10,000 pieces and three-way tied embeddings of width 256, and the
same training: 4,096 tokens per step, label smoothing 0.1, the average of the last five checkpoints.
The variants differ in peak learning rate and dropout, which are selected on val.
"""

from __future__ import annotations

from typing import Any, NamedTuple

NUM_STEPS, WARMUP_STEPS = 4000, 1000
TRAIN: dict[str, Any] = {
    "batch_tokens": 4096,
    "schedule": "inverse_sqrt",
    "warmup_steps": WARMUP_STEPS,
    "validate_every": 500,
    "save_every": 250,
    "keep_last": 5,
    "average_checkpoints": 5,
    "compile": False,
}
TRANSFORMER = {"d_model": 256, "d_ff": 512, "num_heads": 4, "num_layers": 4}


class System(NamedTuple):
    """One trained model: a variant of an architecture, or an ablation of the Transformer."""

    name: str
    family: str
    """Systems of one family are variants; the best on val represents it."""
    title: str
    kind: str
    model: dict[str, Any]
    train: dict[str, Any]
    is_ablation: bool = False

    def settings(self, *, num_steps: int) -> dict[str, Any]:
        """Return the tables `model` and `train` of its config."""
        warmup = min(WARMUP_STEPS, max(1, num_steps // 4))
        steps = {"max_steps": num_steps, "warmup_steps": warmup}
        return {
            "model": {"kind": self.kind, "preset": "small", **self.model},
            "train": {**TRAIN, **steps, **self.train},
        }


def _variants(
    family: str, title: str, kind: str, model: dict[str, Any], *tried: tuple[float, float]
) -> list[System]:
    """Return one architecture at each (learning rate, dropout)."""
    return [
        System(
            f"{family}-{rate:g}-{dropout:g}",
            family,
            title,
            kind,
            {**model, "dropout": dropout},
            {"peak_lr": rate},
        )
        for rate, dropout in tried
    ]


RATE, DROPOUT = 2e-3, 0.3
ARCHITECTURES = [
    *_variants(
        "rnn-seq2seq",
        "RNN, one context vector",
        "rnn-seq2seq",
        {"d_model": 256, "d_state": 368, "num_layers": 2},
        (1e-3, 0.3),
        (2e-3, 0.3),
    ),
    *_variants(
        "rnn-attention",
        "RNN with attention",
        "rnn-attention",
        {"d_model": 256, "d_state": 280, "num_layers": 2},
        (1e-3, 0.3),
        (2e-3, 0.4),
    ),
    *_variants(
        "conv-s2s",
        "convolution with attention",
        "conv-s2s",
        {"d_model": 256, "num_layers": 5},
        (1e-3, 0.2),
        (2e-3, 0.3),
    ),
    *_variants(
        "restricted",
        "Transformer, width 5",
        "transformer",
        {**TRANSFORMER, "attention_width": 5},
        (RATE, DROPOUT),
    ),
    *_variants("transformer", "Transformer", "transformer", TRANSFORMER, (RATE, DROPOUT)),
]


def _without(name: str, title: str, *, model: dict[str, Any] | None = None, **train: Any) -> System:
    own = {**TRANSFORMER, "dropout": DROPOUT, **(model or {})}
    settings = {"peak_lr": RATE, **train}
    return System(f"less-{name}", name, title, "transformer", own, settings, is_ablation=True)


ABLATIONS = [
    _without("positions", "no positions", model={"positions": "none"}),
    _without("residuals", "no residual paths", model={"residual": False}),
    _without("scale", "no scaling by sqrt(d_k)", model={"scale": False}),
    _without("smoothing", "no label smoothing", label_smoothing=0.0),
    _without("heads", "one head of 256", model={"num_heads": 1}),
    _without("pre-norm", "pre-norm instead of post-norm", model={"norm": "pre"}),
]
SYSTEMS = {system.name: system for system in (*ARCHITECTURES, *ABLATIONS)}
