"""The figures as tables, for the terminal and for Markdown, and what they do not show."""

from __future__ import annotations

from typing import Any

from benchmarks.sheets import Sheet, to_markdown_table

from .findings import LEVELS, REFERENCE

Results = dict[str, Any]
WAYS = ("greedy", "beam", "alone")
LIMITS = """\
- One run a system, one seed: intervals (95 %, bootstrap over the 1,000 sentences) tell the chance
  in the test set, not that of another seed.
- 29,000 short captions (12 words on average, few above 20): long sentences, where the one context
  vector and recurrence suffer most, are rare here; the ranges by length say how many there are.
- A tenth of the paper's model on a thousandth of its data: what a part is worth here need not be
  what it is worth there.
- Each architecture was tried in one or two settings of rate and dropout, chosen on val; the
  Transformer's had been found before, so the others were tuned less. Steps are the same for all;
  some would gain by more.
- Speeds are of this code on this machine. The recurrent layers run in float32 through cuDNN's fused
  kernels, everything else in bfloat16; small models on a large GPU mostly wait for kernels to be
  launched, so a step is not what the arithmetic costs.
- Time to a level is steps to it times seconds a step measured alone: the runs themselves shared the
  machine. Levels are greedy BLEU (13a) of 200 sentences of val, noisy by a point or two."""


def make_sheets(results: Results) -> list[Sheet]:
    """Make all tables, the main one first."""
    sheets = [_list_architectures(results), _list_lengths(results)]
    if any(results["systems"][name].get("speed") for name in results["chosen"]):
        sheets += [_list_speeds(results), _list_levels(results)]
    return [*sheets, _list_ablations(results), _list_tried(results)]


def describe_run(results: Results) -> str:
    """Tell in one line what was trained on what."""
    machine = results["machine"]
    return (
        f"Multi30k English to German, {results['num_steps']:,} steps of at most 4,096 tokens, "
        f"{machine['device']}, torch {machine['torch']}"
    )


def to_markdown(results: Results, pictures: list[str]) -> str:
    """Write the whole report."""
    parts = ["# What the Transformer replaced, on Multi30k", f"{describe_run(results)}."]
    parts += [f"![{name}]({name})" for name in pictures if name.endswith(".png")]
    for sheet in make_sheets(results):
        parts += [f"## {sheet.title}", sheet.note, to_markdown_table(sheet)]
    parts += ["## What this does not show", LIMITS]
    return "\n\n".join(parts) + "\n"


def _pick(results: Results, *, is_ablation: bool) -> list[dict[str, Any]]:
    """Give the chosen systems of one sort; the whole Transformer heads its ablations."""
    systems = [results["systems"][name] for name in results["chosen"]]
    own = [one for one in systems if one["is_ablation"] == is_ablation]
    return [one for one in systems if is_ablation and one["family"] == REFERENCE] + own


def _list_architectures(results: Results) -> Sheet:
    rows = [
        [
            one["title"],
            f"{one['num_parameters'] / 1e6:.2f}",
            f"{one['val']:.1f}",
            f"{one['test']:.1f}",
            _interval(one),
            _p_value(one),
        ]
        for one in _pick(results, is_ablation=False)
    ]
    return Sheet(
        "Architectures",
        "Tokenised BLEU on the official lower-cased files, beam 5, alpha 1; parameters in "
        "millions; p: paired bootstrap against the Transformer.",
        ["architecture", "parameters", "val", "test 2016", "95 % interval", "p"],
        rows,
    )


def _list_lengths(results: Results) -> Sheet:
    systems = _pick(results, is_ablation=False)
    labels = {_label(bucket): bucket["num_sentences"] for bucket in systems[0]["by_length"]}
    rows = [
        [one["title"], *(f"{bucket['bleu']:.1f}" for bucket in one["by_length"])] for one in systems
    ]
    return Sheet(
        "By the length of the source",
        "BLEU of test 2016 by the number of source words (in brackets: sentences).",
        ["architecture", *(f"{label} ({count})" for label, count in labels.items())],
        rows,
    )


def _list_speeds(results: Results) -> Sheet:
    rows = []
    for one in _pick(results, is_ablation=False):
        speed = one.get("speed")
        if not speed:
            continue
        rows.append(
            [
                one["title"],
                f"{1000 * speed['step_seconds']:.1f}",
                f"{speed['train_tokens_per_second'] / 1000:,.0f}",
                *(_sentences(speed.get(f"{way}_sentences_per_second")) for way in WAYS),
            ]
        )
    return Sheet(
        "Speed, each alone on the machine",
        "Training: milliseconds a step and thousand target tokens a second. Translating: sentences "
        "a second, in batches greedily and with beam 5, and one by one with beam 5.",
        ["architecture", "ms a step", "training tok/s (k)", "greedy", "beam 5", "one by one"],
        rows,
    )


def _list_levels(results: Results) -> Sheet:
    rows = []
    for one in _pick(results, is_ablation=False):
        reached = {int(level): told for level, told in one["reached"].items()}
        rows.append([one["title"], *(_reached(reached.get(level)) for level in LEVELS)])
    return Sheet(
        "Time to a level",
        "Seconds of training alone until a validation (every 500 steps) first has this BLEU.",
        ["architecture", *map(str, LEVELS)],
        rows,
    )


def _sentences(speed: float | None) -> str:
    return "-" if speed is None else f"{speed:,.0f}"


def _reached(told: dict[str, float | None] | None) -> str:
    if told is None:
        return "-"
    seconds = told["seconds"]
    return f"step {told['step']:,}" if seconds is None else f"{seconds:.0f}"


def _list_ablations(results: Results) -> Sheet:
    systems = _pick(results, is_ablation=True)
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
        "The Transformer, less one part",
        "The same settings but for the part that is named, as in the paper's Table 3; perplexity a "
        "piece on val.",
        ["system", "val", "test 2016", "95 % interval", "difference", "p", "perplexity"],
        rows,
    )


def _list_tried(results: Results) -> Sheet:
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
    headers = ["architecture", "highest rate", "dropout", "val", ""]
    return Sheet("What was tried", "The choice is made on val alone.", headers, rows)


def _label(bucket: dict[str, Any]) -> str:
    last = bucket["last"]
    return f"{bucket['first']}+" if last is None else f"{bucket['first']}-{last}"


def _interval(one: dict[str, Any]) -> str:
    low, high = one["interval"]
    return f"{low:.1f} to {high:.1f}"


def _p_value(one: dict[str, Any]) -> str:
    return "" if one["p_value"] is None else f"{one['p_value']:.3f}"
