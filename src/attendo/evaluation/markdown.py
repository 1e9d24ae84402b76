"""A report as Markdown (`report.md`), and the tables that the command line prints.

Everything is taken from the dictionary that `report.json` holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

PLOT_TITLES = {
    "bleu_by_length.png": "BLEU by source length",
    "chrf_spread.png": "chrF of sentences",
}
"""Titles of the plots by file name."""


def render_markdown(report: dict[str, Any], plots: Sequence[str]) -> str:
    """Return a report as Markdown."""
    data, system = report["data"], report["system"]
    refs = " and ".join(f"`{name}`" for name in [data["ref"], *data.get("more_refs", ())])
    source = f", source `{data['src']}`" if data["src"] else ""
    parts = [
        f"# Evaluation of {system['name']}",
        f"{data['num_sentences']:,} sentences{source}, reference {refs}. "
        f"{describe_decoding(system)}",
        _render_scores(report),
        _render_comparison(report),
        _render_systems(report),
        _render_other_metrics(report),
        *(f"![{PLOT_TITLES[name]}]({name})" for name in plots),
        _render_lengths(system),
        _render_worst(system),
        _render_notes(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def describe_decoding(system: dict[str, Any]) -> str:
    """Describe the origin of the outputs."""
    if system["outputs"] is not None:
        return f"The outputs were read from `{system['outputs']}`."
    options = ", ".join(f"{key} {value}" for key, value in system["decoding"].items())
    return f"Translated by `{system['model']}` ({options or 'its own options'})."


def other_metrics(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the metrics other than scores: name and value, one column per system."""
    systems = [system for system in (report["system"], report["against"]) if system is not None]
    rows = [
        (
            "perplexity (per token of the model)",
            [_format_likelihood(one, "perplexity") for one in systems],
        ),
        (
            "token accuracy (teacher forcing)",
            [_format_likelihood(one, "accuracy") for one in systems],
        ),
        (
            "length ratio (output to reference, 13a words)",
            _format_column(systems, "length_ratio", ".3f"),
        ),
        (
            "sequence error rate (any reference)",
            [_format_error_rate(one, "sequence") for one in systems],
        ),
        (
            "token error rate (nearest reference)",
            [_format_error_rate(one, "token") for one in systems],
        ),
        ("outputs equal to the reference", _format_column(systems, "num_exact", ",")),
        (
            "empty outputs (of a source with text)",
            _format_column(systems, "num_empty_outputs", ","),
        ),
    ]
    return [(name, *values) for name, values in rows if any(values)]


def _format_column(systems: Sequence[dict[str, Any]], key: str, format_spec: str) -> list[str]:
    return [format(system[key], format_spec) for system in systems]


def _format_likelihood(system: dict[str, Any], key: str) -> str:
    likelihood = system["likelihood"]
    if likelihood is None:
        return ""
    return f"{likelihood[key]:.2%}" if key == "accuracy" else f"{likelihood[key]:,.3f}"


def _format_error_rate(system: dict[str, Any], key: str) -> str:
    rates = system["error_rates"]
    return "" if rates is None else f"{rates[key]:.2%} of {rates['num_cases']:,} cases"


def _render_scores(report: dict[str, Any]) -> str:
    scores = report["system"]["scores"]
    rows = [
        (
            metric_title(score),
            f"{score['value']:.2f}",
            format_interval(score),
        )
        for score in scores
    ]
    signatures = "\n".join(f"- {score['name']}: `{score['signature']}`" for score in scores)
    table = _markdown_table(("metric", "value", "95 % interval"), rows)
    return f"## Scores\n\n{table}\n\n{signatures}"


def _render_other_metrics(report: dict[str, Any]) -> str:
    headers = ("", "value") if report["against"] is None else ("", "evaluated", "against")
    return f"## Other metrics\n\n{_markdown_table(headers, other_metrics(report))}"


def _render_comparison(report: dict[str, Any]) -> str:
    if report["against"] is None:
        return ""
    rows = [
        (
            metric_title(row),
            f"{row['ours']:.2f}",
            f"{row['theirs']:.2f}",
            f"{row['difference']:+.2f}",
            format_p_value(row),
        )
        for row in report["comparison"]
    ]
    against = report["against"]
    return (
        f"## Against {against['name']}\n\n{describe_decoding(against)}\n\n"
        + _markdown_table(("measure", "evaluated", "against", "difference", "p"), rows)
        + "\n\np: paired bootstrap, two-sided."
    )


def systems_table(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headers and rows of all systems: scores and intervals; * if p < 0.05, ** if < 0.01."""
    systems = report.get("systems") or []
    scores = systems[0]["scores"] if systems else []
    headers = ["system", *(metric_title(score) for score in scores)]
    return headers, [[one["name"], *map(_format_system_score, one["scores"])] for one in systems]


def _format_system_score(score: dict[str, Any]) -> str:
    p_value = score["p_value"]
    stars = "" if p_value is None else "**" if p_value < 0.01 else "*" if p_value < 0.05 else ""
    text = f"{score['value']:.1f}{stars}"
    return text if score["low"] is None else f"{text} ({score['low']:.1f}-{score['high']:.1f})"


def _render_systems(report: dict[str, Any]) -> str:
    headers, rows = systems_table(report)
    if not rows:
        return ""
    escaped = [[cell.replace("*", "\\*").replace("|", "\\|") for cell in row] for row in rows]
    note = (
        f"In brackets: 95 % interval. Paired bootstrap against {rows[0][0]}, two-sided: "
        "\\* p < 0.05, \\*\\* p < 0.01."
    )
    return f"## Systems\n\n{_markdown_table(headers, escaped)}\n\n{note}"


def _render_lengths(system: dict[str, Any]) -> str:
    breakdown = system["by_source_length"]
    if breakdown is None:
        return ""
    rows = [
        (
            bucket["label"],
            f"{bucket['num_sentences']:,}",
            f"{bucket['bleu']:.2f}",
            format_interval(bucket),
        )
        for bucket in breakdown["buckets"]
    ]
    headers = (
        f"{breakdown['unit']} in the source",
        "sentences",
        breakdown["measure"],
        "95 % interval",
    )
    return f"## By source length\n\n{_markdown_table(headers, rows)}"


def _render_worst(system: dict[str, Any]) -> str:
    blocks = []
    for sentence in system["worst"]:
        reference = sentence["log_prob"]
        details = (
            ""
            if reference is None
            else f", log-probability of the reference {reference:.2f} per token"
        )
        lines = [f"{side:<11}{sentence[side]}" for side in ("source", "output", "reference")]
        text = "\n".join(lines if sentence["source"] else lines[1:])
        blocks.append(
            f"Line {sentence['line']}, chrF {sentence['chrf']:.1f}{details}:"
            f"\n\n```text\n{text}\n```"
        )
    return "## Worst sentences\n\n" + "\n\n".join(blocks) if blocks else ""


def _render_notes(report: dict[str, Any]) -> str:
    notes = collect_notes(report)
    return "## Notes\n\n" + "\n".join(f"- {note}" for note in notes) if notes else ""


def collect_notes(report: dict[str, Any]) -> list[str]:
    """Return the notes of the report and of single scores."""
    scores = report["system"]["scores"]
    score_notes = [f"{score['name']}: {score['note']}" for score in scores if score["note"]]
    return [*report["notes"], *score_notes]


def metric_title(score: dict[str, Any]) -> str:
    """Return the name of a metric; an arrow marks that lower is better.

    >>> metric_title({"name": "TER", "lower_is_better": True})
    'TER ↓'
    """
    return f"{score['name']} ↓" if score["lower_is_better"] else str(score["name"])


def format_interval(score: dict[str, Any]) -> str:
    """Return an interval as text, or an empty string.

    >>> format_interval({"low": 33.321, "high": 36.4})
    '33.32 to 36.40'
    """
    return "" if score["low"] is None else f"{score['low']:.2f} to {score['high']:.2f}"


def format_p_value(row: dict[str, Any]) -> str:
    """Return a p-value as text, or an empty string."""
    return "" if row["p_value"] is None else f"{row['p_value']:.3f}"


def _markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
