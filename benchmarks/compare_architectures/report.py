"""The results as tables, for the terminal and for Markdown, and their limits."""

from __future__ import annotations

from typing import Any

from benchmarks.sheets import Sheet, to_markdown_table

from .findings import LEVELS, REFERENCE

Results = dict[str, Any]
SEARCHES = ("greedy", "beam", "alone")
LIMITS = """\
- One run per system, one seed: the intervals (95 %, bootstrap over the 1,000 sentences) describe
  the variance of the test set, not that of the seed.
- 29,000 short captions (12 words on average, few above 20): long sentences, which are hardest for a
  single context vector and for recurrence, are rare; the table by length has their numbers.
- A tenth of the paper's model on a thousandth of its data: an ablation may matter more or less at
  that scale.
- Each architecture was trained with one or two settings of learning rate and dropout, selected on
  val; the Transformer was tuned before, so the others were tuned less. All have the same number of
  steps; some would gain from more.
- Speeds are of this code on this machine. The recurrent layers run in float32 with cuDNN's fused
  kernels, everything else in bfloat16; small models on a large GPU mostly wait for kernel launches,
  so the time of a step is not the cost of its arithmetic.
- Time to a level is the number of steps times the seconds per step measured alone: the runs shared
  the machine. Levels are greedy BLEU (13a) of 200 sentences of val, noisy by a point or two."""


def make_sheets(results: Results) -> list[Sheet]:
    """Return all tables, the main one first."""
    sheets = [_architecture_table(results), _length_table(results)]
    if any(results["systems"][name].get("speed") for name in results["chosen"]):
        sheets += [_speed_table(results), _level_table(results)]
    return [*sheets, _ablation_table(results), _variant_table(results)]


def describe_run(results: Results) -> str:
    """Return the setting in one line."""
    machine = results["machine"]
    return (
        f"Multi30k English to German, {results['num_steps']:,} steps of at most 4,096 tokens, "
        f"{machine['device']}, torch {machine['torch']}"
    )


def to_markdown(results: Results, pictures: list[str]) -> str:
    """Return the whole report in Markdown."""
    parts = ["# The Transformer and earlier architectures on Multi30k", f"{describe_run(results)}."]
    parts += [f"![{name}]({name})" for name in pictures if name.endswith(".png")]
    for sheet in make_sheets(results):
        parts += [f"## {sheet.title}", sheet.note, to_markdown_table(sheet)]
    parts += ["## What this does not show", LIMITS]
    return "\n\n".join(parts) + "\n"


def _select(results: Results, *, is_ablation: bool) -> list[dict[str, Any]]:
    """Return the selected architectures, or the Transformer and its ablations."""
    systems = [results["systems"][name] for name in results["chosen"]]
    own = [one for one in systems if one["is_ablation"] == is_ablation]
    return [one for one in systems if is_ablation and one["family"] == REFERENCE] + own


def _architecture_table(results: Results) -> Sheet:
    rows = [
        [
            one["title"],
            f"{one['num_parameters'] / 1e6:.2f}",
            f"{one['val']:.1f}",
            f"{one['test']:.1f}",
            _interval(one),
            _p_value(one),
        ]
        for one in _select(results, is_ablation=False)
    ]
    return Sheet(
        "Architectures",
        "Tokenized BLEU on the official lower-cased files, beam 5, alpha 1; parameters in "
        "millions; p: paired bootstrap against the Transformer.",
        ["architecture", "parameters", "val", "test 2016", "95 % interval", "p"],
        rows,
    )


def _length_table(results: Results) -> Sheet:
    systems = _select(results, is_ablation=False)
    labels = {_label(bucket): bucket["num_sentences"] for bucket in systems[0]["by_length"]}
    rows = [
        [one["title"], *(f"{bucket['bleu']:.1f}" for bucket in one["by_length"])] for one in systems
    ]
    return Sheet(
        "By source length",
        "BLEU of test 2016 by the number of source words (in brackets: sentences).",
        ["architecture", *(f"{label} ({count})" for label, count in labels.items())],
        rows,
    )


def _speed_table(results: Results) -> Sheet:
    rows = []
    for one in _select(results, is_ablation=False):
        speed = one.get("speed")
        if not speed:
            continue
        rows.append(
            [
                one["title"],
                f"{1000 * speed['step_seconds']:.1f}",
                f"{speed['train_tokens_per_second'] / 1000:,.0f}",
                *(_sentences(speed.get(f"{way}_sentences_per_second")) for way in SEARCHES),
            ]
        )
    return Sheet(
        "Speed, each alone on the machine",
        "Training: milliseconds per step and thousand target tokens per second. Translation: "
        "sentences per second, batched with greedy search and beam 5, and unbatched with beam 5.",
        ["architecture", "ms/step", "training tok/s (k)", "greedy", "beam 5", "unbatched"],
        rows,
    )


def _level_table(results: Results) -> Sheet:
    rows = []
    for one in _select(results, is_ablation=False):
        reached = {int(level): entry for level, entry in one["reached"].items()}
        rows.append([one["title"], *(_reached(reached.get(level)) for level in LEVELS)])
    return Sheet(
        "Time to a level",
        "Seconds of training alone until a validation (every 500 steps) first has this BLEU.",
        ["architecture", *map(str, LEVELS)],
        rows,
    )


def _sentences(speed: float | None) -> str:
    return "-" if speed is None else f"{speed:,.0f}"


def _reached(entry: dict[str, float | None] | None) -> str:
    if entry is None:
        return "-"
    seconds = entry["seconds"]
    return f"step {entry['step']:,}" if seconds is None else f"{seconds:.0f}"


def _ablation_table(results: Results) -> Sheet:
    systems = _select(results, is_ablation=True)
    whole = next((one for one in systems if one["family"] == REFERENCE), None)
    rows = [
        [
            one["title"],
            f"{one['val']:.1f}",
            f"{one['test']:.1f}",
            _interval(one),
            "" if whole in (None, one) else f"{one['test'] - whole['test']:+.1f}",
            _p_value(one),
            f"{one['dev']['perplexity']:.2f}",
        ]
        for one in systems
    ]
    return Sheet(
        "Ablations of the Transformer",
        "One change each, as in the paper's Table 3; perplexity per token on val.",
        ["system", "val", "test 2016", "95 % interval", "difference", "p", "perplexity"],
        rows,
    )


def _variant_table(results: Results) -> Sheet:
    rows = [
        [
            one["title"],
            f"{one['settings']['peak_lr']:g}",
            f"{one['settings']['dropout']:g}",
            f"{one['val']:.1f}",
            "chosen" if name in results["chosen"] else "",
        ]
        for name, one in results["systems"].items()
        if not one["is_ablation"]
    ]
    headers = ["architecture", "peak learning rate", "dropout", "val", ""]
    return Sheet("Variants", "Selected on val.", headers, rows)


def _label(bucket: dict[str, Any]) -> str:
    last = bucket["last"]
    return f"{bucket['first']}+" if last is None else f"{bucket['first']}-{last}"


def _interval(one: dict[str, Any]) -> str:
    low, high = one["interval"]
    return f"{low:.1f} to {high:.1f}"


def _p_value(one: dict[str, Any]) -> str:
    return "" if one["p_value"] is None else f"{one['p_value']:.3f}"
