"""Capture the forecast of one window as a record: input, forecast and attention weights.

The section `series` of the record (`inspection.record`), with S input steps and T forecast steps::

    {"features": ["sst"], "times": ["2023-07-15", ...], "values": [[26.1, null, ...]],   by feature
     "kind": "labels",                                            or "numbers"
     "targets": ["typhoon"], "tgt_times": ["2023-08-14", ...],
     "labels": ["calm", "typhoon"], "probabilities": [[0.9, 0.1], ...],     by step; of labels
     "numbers": null,                                             by target, then by step
     "observed_labels": ["calm", null, ...],                      true labels, if known
     "observed_numbers": null}                                    by target, then by step

`probabilities` are marginal; those of the record's `steps` are conditional on the labels before.
Both are over the labels alone, at the calibrated temperature of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.inspection.embeddings import NUM_POSITIONS, describe_positions
from attendo.inspection.head_metrics import compute_head_metrics
from attendo.inspection.record import KINDS, Alternative, Record, Step, Token, TokenSide
from attendo.tasks.forecasting.codec import NUM_SPECIAL_IDS
from attendo.text.tokenizer import START_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray
    from torch import Tensor

    from attendo.core.protocols import Explanation
    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.forecaster import Forecast, Forecaster

    Floats = NDArray[np.float64]
    Observed = Sequence[str | None] | ArrayLike

MISSING = "–"


class ForecastTokens(NamedTuple):
    """The forecast as decoder input and output."""

    texts: list[str]
    """The label or the numbers of each step."""
    ids: list[int]
    decoder_input: Tensor  # (1, T) ids or (1, T, K) numbers: the start, then all but the last


def capture_series(
    forecaster: Forecaster,
    window: ArrayLike,
    *,
    times: Sequence[str] | None = None,
    tgt_times: Sequence[str] | None = None,
    observed: Observed | None = None,
    top: int = 10,
    num_samples: int = 200,
    seed: int = 1,
) -> Record:
    """Forecast after a window and return the record of the forward pass.

    Args:
        forecaster: a time series model and its codec.
        window: (window, features) in the units of the file, NaN for missing values.
        times: the times of the rows of the window, as text; by default counted down to -1.
        tgt_times: the times of the forecast; by default "+1", "+2" ...
        observed: the true targets, to compare: labels or None, or numbers (horizon, targets).
        top: number of labels per step.
        num_samples: as for `Forecaster.predict`.
        seed: of the sampling.

    """
    codec = forecaster.codec
    values = forecaster.validate_windows(np.asarray(window, dtype=np.float64)[None])
    row_times = _check_times(times, codec)
    if top < 1:
        raise ConfigError(message("top = {top}: at least 1", top=top), hint="leave it out for 10")
    (forecast,) = forecaster.predict(
        values,
        times=None if tgt_times is None else [tgt_times],
        num_samples=num_samples,
        seed=seed,
    )
    target = _to_tokens(forecaster, forecast)
    explanation = _explain(forecaster, values, target)
    weights = {kind: _stack_layers(explanation[kind]) for kind in KINDS}
    steps = [] if forecast.labels is None else _describe_steps(forecaster, explanation, target, top)
    width = forecaster.model.config.attention_width
    return Record(
        model=_describe_model(forecaster),
        search=_describe_search(steps),
        src=_build_source(row_times, values[0]),
        tgt=_build_side(" ".join(target.texts), target.ids, target.texts, target.texts),
        weights=weights,
        steps=steps,
        measures={
            kind: []
            if kind_weights is None
            else compute_head_metrics(kind, kind_weights, width=width)
            for kind, kind_weights in weights.items()
        },
        positions=describe_positions(
            forecaster.model, max(codec.window, codec.horizon, NUM_POSITIONS)
        ),
        series=_describe_series(codec, row_times, values[0], forecast, observed),
        notes=_missing_value_notes(values[0]),
    )


def shorten_times(times: Sequence[str]) -> list[str]:
    """Return times without the year if all of them are dates.

    >>> shorten_times(["2023-08-14", "2023-08-15"]), shorten_times(["-2", "-1"])
    (['08-14', '08-15'], ['-2', '-1'])
    """
    is_date = all(time[:4].isdecimal() and time[4:5] == "-" and len(time) > 9 for time in times)
    return [time[5:].replace("T", " ") if is_date else time for time in times]


def _check_times(times: Sequence[str] | None, codec: SeriesCodec) -> list[str]:
    if times is None:
        return [str(step) for step in range(-codec.window, 0)]
    if len(times) != codec.window:
        reason = message(
            "{num_times} times for a window of {window} rows",
            num_times=len(times),
            window=codec.window,
        )
        raise InputError(reason, hint="give the time of each row, or none at all")
    return list(times)


def _to_tokens(forecaster: Forecaster, forecast: Forecast) -> ForecastTokens:
    device = next(forecaster.model.parameters()).device
    if forecast.labels is not None:
        ids = forecaster.codec.encode_labels(forecast.labels).tolist()
        decoder_input = torch.tensor([[START_ID, *ids[:-1]]], device=device)
        return ForecastTokens(forecast.labels, ids, decoder_input)
    numbers = np.asarray(forecast.values, dtype=np.float64)  # (T, K)
    shifted = np.full_like(numbers, np.nan)
    shifted[1:] = numbers[:-1]
    decoder_input = torch.from_numpy(forecaster.codec.normalize_targets(shifted)[None]).to(device)
    texts = [_format_numbers(row) for row in numbers]
    return ForecastTokens(texts, list(range(len(texts))), decoder_input)


@torch.inference_mode()
def _explain(forecaster: Forecaster, values: Floats, target: ForecastTokens) -> Explanation:
    """Run one teacher-forced pass: row t is the step that predicts token t."""
    model = forecaster.model
    src = torch.from_numpy(forecaster.codec.normalize(values)).to(target.decoder_input.device)
    full_mask = torch.ones(
        1, 1, target.decoder_input.size(1), dtype=torch.bool, device=target.decoder_input.device
    )
    was_training = model.training
    model.eval()
    try:
        return model.explain(src, target.decoder_input, tgt_mask=full_mask)
    finally:
        model.train(was_training)


def _stack_layers(layers: tuple[Tensor, ...]) -> NDArray[np.float32] | None:
    """Return the weights (L, H, T, S) of a batch of one."""
    if not layers:
        return None
    stacked: NDArray[np.float32] = torch.stack([layer[0] for layer in layers]).float().cpu().numpy()
    return stacked


def _describe_steps(
    forecaster: Forecaster, explanation: Explanation, target: ForecastTokens, top: int
) -> list[Step]:
    """Return the predicted label of each step, and the probabilities of the alternatives."""
    logits = explanation.logits[0, :, NUM_SPECIAL_IDS:].cpu().double() / forecaster.temperature
    log_probs = logits.log_softmax(-1)  # (T, L)
    entropies = torch.special.entr(log_probs.exp()).sum(-1).tolist()
    order = log_probs.argsort(stable=True, dim=-1, descending=True)[:, :top].tolist()
    steps = []
    for index, (number, top_labels) in enumerate(zip(target.ids, order, strict=True)):
        target_label = number - NUM_SPECIAL_IDS
        if target_label not in top_labels:
            top_labels.append(target_label)
        log_prob = float(log_probs[index, target_label])
        steps.append(
            Step(
                probability=_round_significant(np.exp(log_prob)),
                log_prob=_round_significant(log_prob),
                entropy=_round_significant(entropies[index]),
                top=[
                    Alternative(
                        id=NUM_SPECIAL_IDS + label,
                        piece=forecaster.codec.labels[label],
                        probability=_round_significant(float(log_probs[index, label].exp())),
                    )
                    for label in top_labels
                ],
            )
        )
    return steps


def _describe_model(forecaster: Forecaster) -> dict[str, Any]:
    config = forecaster.model.config
    return {
        "name": forecaster.about.get("name") or ", ".join(forecaster.codec.targets),
        "kind": forecaster.model.kind,
        "num_layers": config.num_layers,
        "num_decoder_layers": config.num_decoder_layers or config.num_layers,
        "num_heads": config.num_heads,
        "d_model": config.d_model,
        "num_parameters": sum(weight.numel() for weight in forecaster.model.parameters()),
        "src_lang": None,
        "tgt_lang": None,
    }


def _describe_search(steps: list[Step]) -> dict[str, Any]:
    """Return how the forecast was found: greedily for labels; numbers have no alternatives."""
    if not steps:
        nothing = dict.fromkeys(("beam_size", "alpha", "score", "log_prob"))
        return {"method": "numbers", **nothing, "is_finished": True}
    log_prob = _round_significant(sum(step["log_prob"] for step in steps))
    return {
        "method": "greedy",
        "beam_size": 1,
        "alpha": 0.0,
        "score": log_prob,
        "log_prob": log_prob,
        "is_finished": True,
    }


def _build_source(times: list[str], values: Floats) -> TokenSide:
    pieces = [_format_numbers(row) for row in values]
    text = f"{times[0]} … {times[-1]}"
    return _build_side(text, list(range(len(times))), pieces, shorten_times(times))


def _build_side(text: str, ids: list[int], pieces: list[str], texts: list[str]) -> TokenSide:
    """Return one token and one word per time step."""
    tokens = [
        Token(id=number, piece=piece, text=label, word=index)
        for index, (number, piece, label) in enumerate(zip(ids, pieces, texts, strict=True))
    ]
    return TokenSide(text=text, tokens=tokens, words=list(texts))


def _describe_series(
    codec: SeriesCodec,
    times: list[str],
    values: Floats,
    forecast: Forecast,
    observed: Observed | None,
) -> dict[str, Any]:
    is_labels = codec.kind == "labels"
    probabilities = forecast.probabilities
    return {
        "features": list(codec.features),
        "times": times,
        "values": _to_json_columns(values),
        "kind": codec.kind,
        "targets": list(codec.targets),
        "tgt_times": list(forecast.times),
        "labels": list(codec.labels) if is_labels else None,
        "probabilities": None
        if probabilities is None
        else [
            [_round_significant(step[label]) for label in codec.labels] for step in probabilities
        ],
        "numbers": None
        if forecast.values is None
        else _to_json_columns(np.asarray(forecast.values)),
        **_describe_observed(codec, observed),
    }


def _describe_observed(codec: SeriesCodec, observed: Observed | None) -> dict[str, Any]:
    section: dict[str, Any] = {"observed_labels": None, "observed_numbers": None}
    if observed is None:
        return section
    if codec.kind == "labels":
        labels = list(np.asarray(observed, dtype=object))
        is_right = len(labels) == codec.horizon
        section["observed_labels"] = [None if label is None else str(label) for label in labels]
    else:
        numbers = np.asarray(observed, dtype=np.float64)
        is_right = numbers.shape == (codec.horizon, len(codec.targets))
        section["observed_numbers"] = _to_json_columns(np.atleast_2d(numbers))
    if not is_right:
        reason = message(
            "`observed` does not have {horizon} steps of {num_targets} targets",
            horizon=codec.horizon,
            num_targets=len(codec.targets),
        )
        raise InputError(reason, hint="give one entry per step, None or NaN if it is unknown")
    return section


def _missing_value_notes(values: Floats) -> list[str]:
    missing = np.isnan(values)
    notes = []
    if missing.any():
        notes.append(f"window: {missing.sum()} of {missing.size} values are missing")
    num_empty = int(missing.all(axis=1).sum())
    if num_empty and num_empty < len(values):
        notes.append(f"window: {num_empty} steps without any value are masked")
    return notes


def _to_json_columns(values: NDArray[Any]) -> list[list[float | None]]:
    """Return columns as JSON, with None for NaN."""
    return [[None if np.isnan(one) else _round_significant(one) for one in row] for row in values.T]


def _format_numbers(row: NDArray[Any]) -> str:
    return " ".join(MISSING if np.isnan(one) else f"{one:.5g}" for one in row)


def _round_significant(number: float) -> float:
    """Return a number rounded to six significant digits."""
    return float(f"{number:.6g}")
