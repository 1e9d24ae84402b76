"""The results as tables, for the terminal (rich) and for Markdown, and their limits."""

from __future__ import annotations

from typing import Any

from benchmarks.sheets import Sheet, to_markdown_table

from .layers import KINDS

Results = dict[str, Any]


def make_sheets(results: Results) -> list[Sheet]:
    """Return all tables, beginning with the paper's Table 1."""
    return [
        _summary_table(results),
        _time_table(results),
        _memory_table(results),
        _operations_table(results),
        _path_table(results),
        _growth_table(results),
        _crossing_table(results),
        _width_table(results),
    ]


def describe_run(results: Results) -> str:
    """Return the setting in one line."""
    setting, machine = results["setting"], results["machine"]
    threads = "" if setting["device"] == "cuda" else f" (threads: {setting['threads']})"
    return (
        f"d = {setting['d_model']}, {setting['num_heads']} heads, LSTM, k = {setting['kernel']}, "
        f"r = {setting['width']}, batch {setting['batch']}, {setting['dtype']}, "
        f"{machine['device']}{threads}, torch {machine['torch']}, {results['seconds']:.0f} s in all"
    )


def to_markdown(results: Results) -> str:
    """Return the whole report in Markdown."""
    machine = results["machine"]
    busy = f"Load average before the run: {machine['load']} on {machine['cores']} cores."
    parts = ["# Why self-attention: Table 1 of the paper, measured"]
    parts.append(f"{describe_run(results)}. {busy}")
    parts.append("![Time, memory, path length and operations over n](why_self_attention.png)")
    for sheet in make_sheets(results):
        parts += [f"## {sheet.title}", sheet.note, to_markdown_table(sheet)]
    parts += ["## What this shows", _describe_findings(results)]
    parts += ["## What this does not show", LIMITS.format(**results["setting"])]
    return "\n\n".join(parts) + "\n"


def format_seconds(seconds: float | None) -> str:
    """Format seconds with three significant digits.

    >>> format_seconds(0.0123456), format_seconds(None)
    ('12.3 ms', '–')
    """
    if seconds is None:
        return "–"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def format_count(count: float | None) -> str:
    """Format a large number with three significant digits.

    >>> format_count(67_108_864), format_count(640)
    ('67.1 M', '640')
    """
    if count is None:
        return "–"
    for size, sign in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if count >= size:
            return f"{count / size:.3g}{sign}"
    return f"{count:.3g}"


def _format_exponent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _format_plain(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"


def _names() -> list[str]:
    return [kind.name for kind in KINDS.values()]


def _last(values: list[Any]) -> Any:
    """Return the last measured value."""
    return next((value for value in reversed(values) if value is not None), None)


def _summary_table(results: Results) -> Sheet:
    layers, seen = results["layers"], results["seen"]
    paths = layers["self_attention"]["path"]
    longest = max(n for n, path in zip(results["lengths"], paths, strict=True) if path is not None)
    rows = [
        [
            kind.name,
            f"O({kind.complexity})",
            f"O({kind.sequential})",
            _format_plain(_last(layers[key]["sequential"])),
            f"O({kind.path})",
            _format_plain(_last(layers[key]["path"])),
            _format_plain(seen[key]),
        ]
        for key, kind in KINDS.items()
    ]
    dilated = [
        "dilated",
        "–",
        "–",
        "–",
        "O(log_k n)",
        _format_plain(_last(results["dilated_path"])),
    ]
    rows.insert(list(KINDS).index("convolutional") + 1, [*dilated, "–"])
    headers = ["layer", "operations", "steps", "measured", "longest path", "measured"]
    headers += [f"sees of {seen['length']}"]
    note = (
        f"The paper's values, and the measured values at n = {longest:,}. Steps: the longest chain "
        "of dependent outputs of one layer. Longest path: stacked layers until the first input "
        "reaches the last output; for the LSTM, states. The paper's table has the path of dilated "
        "convolutions (dilation 1, k, k², ...), its text that of plain ones. Last column: how many "
        f"of {seen['length']} inputs the middle output of one layer depends on."
    )
    return Sheet("Table 1, compared with measurements", note, headers, rows)


def _by_length(results: Results, name: str, write: Any) -> list[list[str]]:
    columns = [results["layers"][key][name] for key in KINDS]
    return [
        [f"{n:,}", *(write(column[index]) for column in columns)]
        for index, n in enumerate(results["lengths"])
    ]


def _time_table(results: Results) -> Sheet:
    note = "One forward and backward pass: medians of alternating rounds."
    return Sheet("Time", note, ["n", *_names()], _by_length(results, "time", format_seconds))


def _memory_table(results: Results) -> Sheet:
    note = (
        "Peak allocation of forward and backward beyond weights and input. It includes the "
        "gradients of the weights, which do not grow with n."
    )

    def write(count: float | None) -> str:
        return "–" if count is None else f"{format_count(count)}B"

    return Sheet("Memory", note, ["n", *_names()], _by_length(results, "bytes", write))


def _operations_table(results: Results) -> Sheet:
    layers = results["layers"]
    projections = layers["self_attention"]["projections"]
    rows = _by_length(results, "mixing", format_count)
    for row, count in zip(rows, projections, strict=True):
        row.append(format_count(count))
    ratios = [layers[key]["mixing"][-1] / layers[key]["table_operations"][-1] for key in KINDS]
    rows.append(["× table", *(f"{ratio:.3g}" for ratio in ratios), "not in it"])
    note = (
        "Multiply-adds of the forward pass. The table omits the four projections of both "
        "attentions (4 n d²), listed separately. It also omits factors: attention multiplies "
        "twice (scores, weighted sum), an LSTM has four gates with two matrices each, and "
        "restricted attention by blocks computes more pairs than it keeps."
    )
    headers = ["n", *_names(), "projections"]
    return Sheet("Operations", note, headers, rows)


def _path_table(results: Results) -> Sheet:
    rows = _by_length(results, "path", _format_plain)
    for row, dilated in zip(rows, results["dilated_path"], strict=True):
        row.insert(4, _format_plain(dilated))
    headers = ["n", *_names()]
    headers.insert(4, "dilated")
    note = (
        "Stacked layers until the first input reaches the last output, from gradients; for the "
        "LSTM, the number of states. A filter of k adds (k - 1) / 2 positions per layer and "
        "restricted attention r / 2, a factor that O(n / k) and O(n / r) omit."
    )
    return Sheet("Longest path", note, headers, rows)


def _growth_table(results: Results) -> Sheet:
    growth = results["growth"]
    rows = []
    for key, kind in KINDS.items():
        found = growth["exponents"][key]
        fitted = [_format_exponent(found[name]) for name in ("mixing", "operations", "time")]
        fitted += [_format_exponent(found["bytes"])]
        paths = [str(kind.path_in_n), _format_exponent(found["path"])]
        rows.append([kind.name, str(kind.in_n), *fitted, *paths])
    dilated = ["dilated", *["–"] * 5, "log"]
    rows.append([*dilated, _format_exponent(growth["dilated_path"])])
    first, last = growth["lengths"][0], growth["lengths"][-1]
    note = (
        f"p of n^p, fitted from n = {first:,} to {last:,}: with twice the n, 1 doubles and 2 "
        "quadruples. Because of the projections, the operations of self-attention grow like n d² "
        "at first and like n² d only far beyond n = 2 d, and so does the time."
    )
    headers = ["layer", "table", "counted", "with proj.", "time", "memory"]
    return Sheet("Growth with n", note, [*headers, "table's path", "path"], rows)


def _crossing_table(results: Results) -> Sheet:
    lengths = results["lengths"]

    def write(value: float | None, last: int) -> str:
        if value is None:
            return f"not up to {last:,}"
        return f"n ≤ {value:,.0f}" if value <= lengths[0] else f"n = {value:,.0f}"

    rows = [
        [
            KINDS[key].name,
            f"n = {found['table']:,}",
            write(found["operations"], lengths[-1]),
            write(found["time"], results["growth"]["lengths"][-1]),
        ]
        for key, found in results["crossings"].items()
    ]
    note = "The n from which self-attention costs more than the other layer."
    headers = ["than", "by the table", "by all operations", "by time"]
    return Sheet("Crossings", note, headers, rows)


def _width_table(results: Results) -> Sheet:
    widths = results["widths"]
    low, high = widths["d_model"]
    rows = []
    for key, kind in KINDS.items():
        found = widths["layers"][key]
        fitted = [found["exponents"][name] for name in ("mixing", "operations", "time")]
        times = [format_seconds(seconds) for seconds in found["time"]]
        rows.append([kind.name, str(kind.in_d), *map(_format_exponent, fitted), *times])
    headers = ["layer", "table", "counted", "with proj.", "time"]
    headers += [f"d = {low}", f"d = {high}"]
    note = f"p of d^p, between d = {low} and {high}, at n = {widths['length']:,}."
    return Sheet("Growth with d", note, headers, rows)


def _describe_findings(results: Results) -> str:
    """Return the main findings as sentences."""
    layers, lengths = results["layers"], results["lengths"]
    lines = []
    last = next((i for i in range(len(lengths) - 1, -1, -1) if layers["recurrent"]["time"][i]), 0)
    own = layers["self_attention"]["time"]
    for n in (0, last):
        ratio = layers["recurrent"]["time"][n] / own[n]
        word = f"{ratio:.1f} times as long as" if ratio >= 1 else f"{ratio:.2f} of the time of"
        lines.append(f"- At n = {lengths[n]:,} the LSTM takes {word} self-attention.")
    crossing = results["crossings"]["recurrent"]
    lines.append(
        f"- By the table, self-attention has more operations than a recurrent layer from n = d = "
        f"{crossing['table']:,} on; by counted operations, from "
        + (f"n = {crossing['operations']:,.0f}" if crossing["operations"] else "none measured")
        + "; by time, from "
        + (f"n = {crossing['time']:,.0f}" if crossing["time"] else "none measured")
        + "."
    )
    paths = {key: _last(layers[key]["path"]) for key in KINDS}
    lines.append(
        f"- Between the ends of the longest sequence are {paths['recurrent']:,} states of an LSTM, "
        f"{paths['convolutional']:,} plain convolutions, {paths['restricted']:,} restricted "
        f"self-attentions, {_last(results['dilated_path'])} dilated convolutions, or "
        f"{paths['self_attention']} self-attention."
    )
    return "\n".join(lines)


LIMITS = """\
- The table counts operations, not time: overheads dominate short sequences, and the caches, kernels
  and threads of one machine affect every result. Ratios are more portable than milliseconds.
- Fused attention never stores the n × n weights, so its memory grows like n, not like n². Storing
  the weights for inspection needs n² per head.
- At batch {batch} a step of an LSTM is one small product that leaves most of a machine idle. A
  large batch would hide part of that, but not change the number of sequential steps.
- A path found by gradients shows that a signal can pass, not that it is learned, nor how much of it
  arrives.
- A real Transformer layer also has a feed-forward network (8 n d² with d_ff = 4 d), which the table
  does not count."""
