"""A report as words: the page `report.md`, and what the command line shows of the same figures.

Everything is read off the dictionary that `report.json` holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

PICTURES = {"bleu_by_length.png": "BLEU by source length", "chrf_spread.png": "chrF of sentences"}
"""The pictures a page may show, by their files."""


def render(report: dict[str, Any], pictures: Sequence[str]) -> str:
    """Write a report as Markdown."""
    data, system = report["data"], report["system"]
    source = f", source `{data['src']}`" if data["src"] else ""
    parts = [
        f"# Evaluation of {system['name']}",
        f"{data['num_sentences']:,} sentences{source}, reference `{data['ref']}`. "
        f"{describe_decoding(system)}",
        _render_scores(report),
        _render_comparison(report),
        _render_figures(report),
        *(f"![{PICTURES[name]}]({name})" for name in pictures),
        _render_lengths(system),
        _render_worst(system),
        _render_notes(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def describe_decoding(system: dict[str, Any]) -> str:
    """Say where the outputs come from."""
    if system["outputs"] is not None:
        return f"The outputs were read from `{system['outputs']}`."
    options = ", ".join(f"{key} {value}" for key, value in system["decoding"].items())
    return f"Translated by `{system['model']}` ({options or 'its own options'})."


def other_figures(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """List what is no score: name and value, for both systems where there are two."""
    systems = [system for system in (report["system"], report["against"]) if system is not None]
    rows = [
        ("perplexity (by the model's own tokens)", [_figure(one, "perplexity") for one in systems]),
        ("token accuracy (teacher forcing)", [_figure(one, "accuracy") for one in systems]),
        ("length ratio (output to reference, 13a words)", _column(systems, "length_ratio", ".3f")),
        ("sequence error rate (any reference)", [_error_rate(one, "sequence") for one in systems]),
        ("token error rate (nearest reference)", [_error_rate(one, "token") for one in systems]),
        ("outputs equal to the reference", _column(systems, "num_exact", ",")),
        ("empty outputs (of a source with text)", _column(systems, "num_empty_outputs", ",")),
    ]
    return [(name, *values) for name, values in rows if any(values)]


def _column(systems: Sequence[dict[str, Any]], key: str, form: str) -> list[str]:
    return [format(system[key], form) for system in systems]


def _figure(system: dict[str, Any], key: str) -> str:
    likelihood = system["likelihood"]
    if likelihood is None:
        return ""
    return f"{likelihood[key]:.2%}" if key == "accuracy" else f"{likelihood[key]:,.3f}"


def _error_rate(system: dict[str, Any], key: str) -> str:
    rates = system["error_rates"]
    return "" if rates is None else f"{rates[key]:.2%} of {rates['num_cases']:,} cases"


def _render_scores(report: dict[str, Any]) -> str:
    scores = report["system"]["scores"]
    rows = [
        (
            title(score),
            f"{score['value']:.2f}",
            interval(score),
        )
        for score in scores
    ]
    signatures = "\n".join(f"- {score['name']}: `{score['signature']}`" for score in scores)
    return f"## Scores\n\n{_table(('measure', 'value', '95 % interval'), rows)}\n\n{signatures}"


def _render_figures(report: dict[str, Any]) -> str:
    heads = ("", "value") if report["against"] is None else ("", "evaluated", "against")
    return f"## Other figures\n\n{_table(heads, other_figures(report))}"


def _render_comparison(report: dict[str, Any]) -> str:
    if report["against"] is None:
        return ""
    rows = [
        (
            title(row),
            f"{row['ours']:.2f}",
            f"{row['theirs']:.2f}",
            f"{row['difference']:+.2f}",
            p_value(row),
        )
        for row in report["comparison"]
    ]
    against = report["against"]
    return (
        f"## Against {against['name']}\n\n{describe_decoding(against)}\n\n"
        + _table(("measure", "evaluated", "against", "difference", "p"), rows)
        + "\n\np: paired bootstrap; how often chance alone would part two equal systems as far."
    )


def _render_lengths(system: dict[str, Any]) -> str:
    breakdown = system["by_source_length"]
    if breakdown is None:
        return ""
    rows = [
        (bucket["label"], f"{bucket['num_sentences']:,}", f"{bucket['bleu']:.2f}", interval(bucket))
        for bucket in breakdown["buckets"]
    ]
    heads = (
        f"{breakdown['unit']} in the source",
        "sentences",
        breakdown["measure"],
        "95 % interval",
    )
    return f"## By source length\n\n{_table(heads, rows)}"


def _render_worst(system: dict[str, Any]) -> str:
    blocks = []
    for sentence in system["worst"]:
        expected = sentence["log_prob"]
        told = (
            "" if expected is None else f", log-probability of the reference {expected:.2f} a token"
        )
        lines = [f"{side:<11}{sentence[side]}" for side in ("source", "output", "reference")]
        text = "\n".join(lines if sentence["source"] else lines[1:])
        blocks.append(
            f"Line {sentence['line']}, chrF {sentence['chrf']:.1f}{told}:\n\n```text\n{text}\n```"
        )
    return "## The worst sentences\n\n" + "\n\n".join(blocks) if blocks else ""


def _render_notes(report: dict[str, Any]) -> str:
    notes = gather_notes(report)
    return "## Notes\n\n" + "\n".join(f"- {note}" for note in notes) if notes else ""


def gather_notes(report: dict[str, Any]) -> list[str]:
    """List what is worth a line: of the whole, and of single scores."""
    scores = report["system"]["scores"]
    own = [f"{score['name']}: {score['note']}" for score in scores if score["note"]]
    return [*report["notes"], *own]


def title(figure: dict[str, Any]) -> str:
    """Write the name of a measure; an arrow says that lower is better.

    >>> title({"name": "TER", "lower_is_better": True})
    'TER ↓'
    """
    return f"{figure['name']} ↓" if figure["lower_is_better"] else str(figure["name"])


def interval(figure: dict[str, Any]) -> str:
    """Write an interval, or nothing where none was measured.

    >>> interval({"low": 33.321, "high": 36.4})
    '33.32 to 36.40'
    """
    return "" if figure["low"] is None else f"{figure['low']:.2f} to {figure['high']:.2f}"


def p_value(row: dict[str, Any]) -> str:
    """Write a p-value, or nothing where none was measured."""
    return "" if row["p_value"] is None else f"{row['p_value']:.3f}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
