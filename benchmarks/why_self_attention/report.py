"""The figures as tables, for the terminal (rich) and for Markdown, and what they do not show."""

from __future__ import annotations

from typing import Any

from benchmarks.sheets import Sheet, to_markdown_table

from .layers import KINDS

Results = dict[str, Any]


def make_sheets(results: Results) -> list[Sheet]:
    """Make all tables, the one like the paper's first."""
    return [
        _sum_up(results),
        _list_times(results),
        _list_bytes(results),
        _list_operations(results),
        _list_paths(results),
        _list_growth(results),
        _list_crossings(results),
        _list_widths(results),
    ]


def describe_run(results: Results) -> str:
    """Tell in one line what was measured on what."""
    setting, machine = results["setting"], results["machine"]
    threads = "" if setting["device"] == "cuda" else f" (threads: {setting['threads']})"
    return (
        f"d = {setting['d_model']}, {setting['num_heads']} heads, LSTM, k = {setting['kernel']}, "
        f"r = {setting['width']}, batch {setting['batch']}, {setting['dtype']}, "
        f"{machine['device']}{threads}, torch {machine['torch']}, {results['seconds']:.0f} s in all"
    )


def to_markdown(results: Results) -> str:
    """Write the whole report."""
    machine = results["machine"]
    busy = f"Load average before the run: {machine['load']} on {machine['cores']} cores."
    parts = ["# Why self-attention: Table 1 of the paper, measured"]
    parts.append(f"{describe_run(results)}. {busy}")
    parts.append("![Time, memory, path length and operations over n](why_self_attention.png)")
    for sheet in make_sheets(results):
        parts += [f"## {sheet.title}", sheet.note, to_markdown_table(sheet)]
    parts += ["## What this shows", _tell_findings(results)]
    parts += ["## What this does not show", LIMITS.format(**results["setting"])]
    return "\n\n".join(parts) + "\n"


def write_seconds(seconds: float | None) -> str:
    """Write seconds with three digits that matter.

    >>> write_seconds(0.0123456), write_seconds(None)
    ('12.3 ms', '–')
    """
    if seconds is None:
        return "–"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def write_count(count: float | None) -> str:
    """Write a large number with three digits that matter.

    >>> write_count(67_108_864), write_count(640)
    ('67.1 M', '640')
    """
    if count is None:
        return "–"
    for size, sign in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if count >= size:
            return f"{count / size:.3g}{sign}"
    return f"{count:.3g}"


def _write_exponent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _write_plain(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"


def _names() -> list[str]:
    return [kind.name for kind in KINDS.values()]


def _last(values: list[Any]) -> Any:
    """Give the last that was measured."""
    return next((value for value in reversed(values) if value is not None), None)


def _sum_up(results: Results) -> Sheet:
    layers, seen = results["layers"], results["seen"]
    paths = layers["self_attention"]["path"]
    longest = max(n for n, path in zip(results["lengths"], paths, strict=True) if path is not None)
    rows = [
        [
            kind.name,
            f"O({kind.complexity})",
            f"O({kind.sequential})",
            _write_plain(_last(layers[key]["sequential"])),
            f"O({kind.path})",
            _write_plain(_last(layers[key]["path"])),
            _write_plain(seen[key]),
        ]
        for key, kind in KINDS.items()
    ]
    dilated = ["dilated", "–", "–", "–", "O(log_k n)", _write_plain(_last(results["dilated_path"]))]
    rows.insert(list(KINDS).index("convolutional") + 1, [*dilated, "–"])
    headers = ["layer", "operations", "steps", "found", "longest path", "found"]
    headers += [f"sees of {seen['length']}"]
    note = (
        f"What the paper says, and what was found at n = {longest:,}. Steps: the longest chain of "
        "outputs of one layer that need each other. Longest path: stacked layers until the first "
        "input reaches the last output, for the LSTM states. The paper's table gives convolutions "
        "the path of dilated ones (gaps of 1, k, k², ...), its text that of plain ones. Last: how "
        f"many of {seen['length']} inputs the middle output of one layer sees."
    )
    return Sheet("Table 1, beside what was found", note, headers, rows)


def _by_length(results: Results, name: str, write: Any) -> list[list[str]]:
    columns = [results["layers"][key][name] for key in KINDS]
    return [
        [f"{n:,}", *(write(column[place]) for column in columns)]
        for place, n in enumerate(results["lengths"])
    ]


def _list_times(results: Results) -> Sheet:
    note = "One forward and backward pass: medians of rounds in which the layers take turns."
    return Sheet("Time", note, ["n", *_names()], _by_length(results, "time", write_seconds))


def _list_bytes(results: Results) -> Sheet:
    note = (
        "Peak of what forward and backward allocate beyond weights and input; the gradients of the "
        "weights are in it, a part that does not grow with n."
    )

    def write(count: float | None) -> str:
        return "–" if count is None else f"{write_count(count)}B"

    return Sheet("Memory", note, ["n", *_names()], _by_length(results, "bytes", write))


def _list_operations(results: Results) -> Sheet:
    layers = results["layers"]
    projections = layers["self_attention"]["projections"]
    rows = _by_length(results, "mixing", write_count)
    for row, count in zip(rows, projections, strict=True):
        row.append(write_count(count))
    ratios = [layers[key]["mixing"][-1] / layers[key]["table_operations"][-1] for key in KINDS]
    rows.append(["× table", *(f"{ratio:.3g}" for ratio in ratios), "not in it"])
    note = (
        "Multiply-adds of the forward pass. The table leaves out the four projections of both "
        "attentions (4 n d²), so they stand apart. It also drops factors: attention multiplies "
        "twice (scores, weighted sum), an LSTM has four gates with two matrices each, and "
        "restricted attention by blocks computes more pairs than it keeps."
    )
    headers = ["n", *_names(), "projections"]
    return Sheet("Operations", note, headers, rows)


def _list_paths(results: Results) -> Sheet:
    rows = _by_length(results, "path", _write_plain)
    for row, dilated in zip(rows, results["dilated_path"], strict=True):
        row.insert(4, _write_plain(dilated))
    headers = ["n", *_names()]
    headers.insert(4, "dilated")
    note = (
        "Layers that must be stacked until the first input reaches the last output, found by "
        "gradients; for the LSTM, states that lie between. A filter of k brings (k - 1) / 2 places "
        "a layer and restricted attention r / 2, a factor that O(n / k) and O(n / r) leave out."
    )
    return Sheet("Longest path", note, headers, rows)


def _list_growth(results: Results) -> Sheet:
    growth = results["growth"]
    rows = []
    for key, kind in KINDS.items():
        found = growth["exponents"][key]
        fitted = [_write_exponent(found[name]) for name in ("mixing", "operations", "time")]
        fitted += [_write_exponent(found["bytes"])]
        paths = [str(kind.path_in_n), _write_exponent(found["path"])]
        rows.append([kind.name, str(kind.in_n), *fitted, *paths])
    dilated = ["dilated", *["–"] * 5, "log"]
    rows.append([*dilated, _write_exponent(growth["dilated_path"])])
    first, last = growth["lengths"][0], growth["lengths"][-1]
    note = (
        f"p of n^p, fitted from n = {first:,} to {last:,}: with twice the n, 1 doubles and 2 "
        "quadruples. The projections hold back self-attention's operations: these grow like n d² "
        "at first and like n² d only far beyond n = 2 d; time can follow no earlier."
    )
    headers = ["layer", "table", "counted", "with proj.", "time", "memory"]
    return Sheet("Growth with n", note, [*headers, "table's path", "path"], rows)


def _list_crossings(results: Results) -> Sheet:
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
    note = "From which n on self-attention costs more than the other, and stays so."
    headers = ["than", "by the table", "by all operations", "by time"]
    return Sheet("Crossings", note, headers, rows)


def _list_widths(results: Results) -> Sheet:
    widths = results["widths"]
    low, high = widths["d_model"]
    rows = []
    for key, kind in KINDS.items():
        found = widths["layers"][key]
        fitted = [found["exponents"][name] for name in ("mixing", "operations", "time")]
        times = [write_seconds(seconds) for seconds in found["time"]]
        rows.append([kind.name, str(kind.in_d), *map(_write_exponent, fitted), *times])
    headers = ["layer", "table", "counted", "with proj.", "time"]
    headers += [f"d = {low}", f"d = {high}"]
    note = f"p of d^p, between d = {low} and {high}, at n = {widths['length']:,}."
    return Sheet("Growth with d", note, headers, rows)


def _tell_findings(results: Results) -> str:
    """Word the main figures; each sentence is made from them."""
    layers, lengths = results["layers"], results["lengths"]
    lines = []
    place = next((i for i in range(len(lengths) - 1, -1, -1) if layers["recurrent"]["time"][i]), 0)
    own = layers["self_attention"]["time"]
    for n in (0, place):
        ratio = layers["recurrent"]["time"][n] / own[n]
        word = f"{ratio:.1f} times as long as" if ratio >= 1 else f"{ratio:.2f} of the time of"
        lines.append(f"- At n = {lengths[n]:,} the LSTM takes {word} self-attention.")
    crossing = results["crossings"]["recurrent"]
    lines.append(
        f"- By the table self-attention does more than a recurrent layer from n = d = "
        f"{crossing['table']:,} on; by the operations that both really do, from "
        + (f"n = {crossing['operations']:,.0f}" if crossing["operations"] else "none measured")
        + "; by time, from "
        + (f"n = {crossing['time']:,.0f}" if crossing["time"] else "none measured")
        + "."
    )
    paths = {key: _last(layers[key]["path"]) for key in KINDS}
    lines.append(
        f"- Between the ends of the longest sequence lie {paths['recurrent']:,} states of an LSTM, "
        f"{paths['convolutional']:,} plain convolutions, {paths['restricted']:,} restricted "
        f"self-attentions, {_last(results['dilated_path'])} dilated convolutions, or "
        f"{paths['self_attention']} self-attention."
    )
    return "\n".join(lines)


LIMITS = """\
- The table counts operations, not time: short sequences are ruled by overheads, and one machine's
  caches, kernels and threads are in every figure. Ratios travel better than milliseconds.
- Fused attention never holds the n × n weights, so its memory grows like n, not like n². Whoever
  keeps the weights to look at them pays n² for each head.
- At batch {batch} an LSTM's step is one small product that leaves most of a machine idle. A large
  batch would hide part of that, and the number of sequential steps would stay what it is.
- A path found by gradients says that a signal can pass, not that it is learnt. It says nothing
  about how much of it is left on arrival.
- A real Transformer layer has a feed-forward network as well (8 n d² with d_ff = 4 d), which no
  row of the table counts."""
